// The part of a cursor that is called once for each window: it merges the snapshot's memtables and
// runs, skips deletions, and cuts windows at the bounds of the range.

/// A walk over the visible rows of a snapshot within a range of keys.
final class SnapshotWalk {
  private var merge: MergeCursor
  private let lower: [UInt8]
  private let upper: [UInt8]
  /// Keeps memtables and files alive.
  private let view: View
  /// The current row and its neighbours that are in the range and not tombstones. During a move
  /// there is none, so that a failed move leaves no invalid reference.
  let place = WindowPlace()

  /// Rows with keys from `lower` on and before `upper`; no upper bound when `upper` is empty.
  init(
    _ merge: consuming MergeCursor, from lower: [UInt8], to upper: [UInt8], mayBlock: Bool,
    in view: View
  ) {
    self.merge = merge
    self.lower = lower
    self.upper = upper
    self.view = view
    if !mayBlock { self.merge.forbidBlocking() }
  }

  deinit {
    place.free()
  }

  // MARK: - Moves

  /// - Throws: `.locked` when there are rows whose key is missing: returning none would be wrong.
  private func begin() throws(EngineError) {
    place.window = RowWindow()
    let lower = lower
    try view.refuseLocked(lower.bytes)
  }

  func seekToFirst() throws(EngineError) {
    try begin()
    try goToFirst()
  }

  func seekToLast() throws(EngineError) {
    try begin()
    try goToLast()
  }

  func seek(atOrAfter key: RawSpan) throws(EngineError) {
    try begin()
    let lower = lower
    guard key.compare(lower.bytes) > 0 else { return try goToFirst() }
    try merge.seek(atOrAfter: key)
    try refuseDisorder(isBehind: merge.isValid && merge.compare(key) < 0)
    try settleForward()
  }

  func seek(atOrBefore key: RawSpan) throws(EngineError) {
    try begin()
    let upper = upper
    guard upper.isEmpty || key.compare(upper.bytes) < 0 else { return try goToLast() }
    try merge.seek(atOrBefore: key)
    try refuseDisorder(isBehind: merge.isValid && merge.compare(key) > 0)
    try settleBackward()
  }

  /// Throws when a seek led to the wrong side of its target: continuing from there could loop for
  /// ever.
  private func refuseDisorder(isBehind: Bool) throws(EngineError) {
    guard isBehind else { return }
    throw .corrupt(
      file: merge.currentSource.fileName ?? "memory", offset: 0,
      reason: "its rows are out of order: a search leads astray")
  }

  /// Continues from the window's last row, which the caller has stepped off.
  @inline(never)
  func leaveWindowForward() throws(EngineError) {
    leaveWindow(at: place.window.row - 1)
    try merge.next()
    try settleForward()
  }

  /// Continues from the window's first row, which the caller has stepped off.
  @inline(never)
  func leaveWindowBackward() throws(EngineError) {
    leaveWindow(at: place.window.row + 1)
    try merge.previous()
    try settleBackward()
  }

  /// Positions the merge on `row` of the window.
  private func leaveWindow(at row: Int) {
    precondition(row < place.window.end, "a cursor that is nowhere")
    place.window = RowWindow()
    merge.move(to: row)
  }

  /// The value that the current row points to. Blocks the thread when it must come from disk.
  @inline(never)
  @_lifetime(borrow owner)
  func separatedValue<Owner: ~Copyable>(
    heldBy owner: borrowing Owner
  ) throws(EngineError) -> RawSpan {
    merge.move(to: place.window.row)
    let source = merge.currentSource
    return try source.resolvedValue(heldBy: owner)
  }

  // MARK: - Moving

  private func goToFirst() throws(EngineError) {
    let lower = lower
    if lower.isEmpty {
      try merge.seekToFirst()
    } else {
      try merge.seek(atOrAfter: lower.bytes)
      try refuseDisorder(isBehind: merge.isValid && merge.compare(lower.bytes) < 0)
    }
    try settleForward()
  }

  private func goToLast() throws(EngineError) {
    let upper = upper
    if upper.isEmpty {
      try merge.seekToLast()
    } else {
      try merge.seek(atOrBefore: upper.bytes)
      try refuseDisorder(isBehind: merge.isValid && merge.compare(upper.bytes) > 0)
      if merge.isValid, merge.compare(upper.bytes) == 0 { try merge.previous() }
    }
    try settleBackward()
  }

  // Deletions are skipped only within the range: beyond its end there may be any number.

  private func settleForward() throws(EngineError) {
    let upper = upper
    while merge.isValid, merge.kind == .delete {
      guard upper.isEmpty || merge.compare(upper.bytes) < 0 else { return }
      try merge.next()
    }
    var window = merge.window
    guard window.isValid, upper.isEmpty || window.cut(from: upper.bytes) else { return }
    window.cutInFront()
    window.cutAtTombstones()
    place.window = window
  }

  private func settleBackward() throws(EngineError) {
    let lower = lower
    while merge.isValid, merge.kind == .delete {
      guard merge.compare(lower.bytes) >= 0 else { return }
      try merge.previous()
    }
    var window = merge.window
    guard window.isValid, window.cut(below: lower.bytes) else { return }
    window.cutBehind()
    window.cutAtTombstones()
    place.window = window
  }
}
