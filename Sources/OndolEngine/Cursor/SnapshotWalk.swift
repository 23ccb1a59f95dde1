// The part of a cursor that is asked once a window: merges what the snapshot's memtables and runs
// have, passes over deletions, and cuts windows at the bounds of the range.
//
// A walk that may not block gives a move up when it meets a block that is not in memory, and keeps
// what it was to do; `load` does it from the start on the thread for cold reads, where it may wait.

/// A walk over the visible rows of a snapshot within a range of keys.
final class SnapshotWalk: @unchecked Sendable {
  // Safe: one cursor uses it, and while the thread for cold reads does, the cursor waits.

  /// What a walk that may not block was asked for; steps name the row they began at.
  private enum Move {
    case first
    case last
    case atOrAfter([UInt8])
    case atOrBefore([UInt8])
    case next([UInt8])
    case previous([UInt8])
  }

  private var merge: MergeCursor
  private let lower: [UInt8]
  private let upper: [UInt8]
  private let mayBlock: Bool
  /// The move that was given up.
  private var pending: Move?
  /// Keeps memtables and files alive.
  private let view: View
  /// The current row and its neighbours that are in the range and no tombstones; nowhere while a
  /// move is under way, so that one that fails leaves nothing behind that is not there any more.
  let place = WindowPlace()

  /// Rows with keys from `lower` on and before `upper`; no upper bound when `upper` is empty.
  init(
    _ merge: consuming MergeCursor, from lower: [UInt8], to upper: [UInt8], mayBlock: Bool,
    in view: View
  ) {
    self.merge = merge
    self.lower = lower
    self.upper = upper
    self.mayBlock = mayBlock
    self.view = view
    if !mayBlock { self.merge.setMayBlock(false) }
  }

  deinit {
    place.free()
  }

  // MARK: - Moves

  func seekToFirst() throws(EngineError) {
    place.window = RowWindow()
    if mayBlock { try goToFirst() } else { try attempt(.first) }
  }

  func seekToLast() throws(EngineError) {
    place.window = RowWindow()
    if mayBlock { try goToLast() } else { try attempt(.last) }
  }

  func seek(atOrAfter key: RawSpan) throws(EngineError) {
    place.window = RowWindow()
    if mayBlock { try go(atOrAfter: key) } else { try attempt(.atOrAfter(key.array)) }
  }

  func seek(atOrBefore key: RawSpan) throws(EngineError) {
    place.window = RowWindow()
    if mayBlock { try go(atOrBefore: key) } else { try attempt(.atOrBefore(key.array)) }
  }

  /// Goes on from the window's last row, which the caller has stepped off.
  @inline(never)
  func leaveWindowForward() throws(EngineError) {
    let key = returnToWindow(at: place.window.row - 1)
    do throws(EngineError) {
      try merge.next()
      try settleForward()
    } catch {
      try giveUp(.next(key), error)
    }
  }

  /// Goes on from the window's first row, which the caller has stepped off.
  @inline(never)
  func leaveWindowBackward() throws(EngineError) {
    let key = returnToWindow(at: place.window.row + 1)
    do throws(EngineError) {
      try merge.previous()
      try settleBackward()
    } catch {
      try giveUp(.previous(key), error)
    }
  }

  /// Has the merge stand on `row` of the window, and leaves the window. Gives back the row's key if
  /// it may be needed to do the step again.
  private func returnToWindow(at row: Int) -> [UInt8] {
    var window = place.window
    precondition(row < window.end, "a cursor that is nowhere")
    window.row = row
    let key = mayBlock ? [] : window.key.array
    place.window = RowWindow()
    merge.move(to: row)
    return key
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

  // MARK: - Moves that may not block

  /// Whether a move waits for `load`.
  var isWaiting: Bool { pending != nil }

  /// Does the move that was given up.
  func load() async throws(EngineError) {
    guard pending != nil else { return }
    try await view.reads.perform { [self] () throws(EngineError) in try makeUp() }
  }

  private func makeUp() throws(EngineError) {
    guard let move = pending else { return }
    pending = nil
    merge.setMayBlock(true)
    defer { merge.setMayBlock(false) }
    try carryOut(move)
    if case .next = move { merge.readAhead() }
  }

  private func attempt(_ move: Move) throws(EngineError) {
    pending = nil
    do throws(EngineError) {
      try carryOut(move)
    } catch {
      try giveUp(move, error)
    }
  }

  private func giveUp(_ move: Move, _ error: EngineError) throws(EngineError) {
    guard error == .wouldBlock else { throw error }
    pending = move
  }

  private func carryOut(_ move: Move) throws(EngineError) {
    switch move {
    case .first: try goToFirst()
    case .last: try goToLast()
    case .atOrAfter(let key): try go(atOrAfter: key.bytes)
    case .atOrBefore(let key): try go(atOrBefore: key.bytes)
    case .next(let key):
      try merge.seek(atOrAfter: key.bytes)
      if merge.isValid, merge.compare(key.bytes) == 0 { try merge.next() }
      try settleForward()
    case .previous(let key):
      try merge.seek(atOrBefore: key.bytes)
      if merge.isValid, merge.compare(key.bytes) == 0 { try merge.previous() }
      try settleBackward()
    }
  }

  // MARK: - Going places

  private func goToFirst() throws(EngineError) {
    let lower = lower
    if lower.isEmpty { try merge.seekToFirst() } else { try merge.seek(atOrAfter: lower.bytes) }
    try settleForward()
  }

  private func goToLast() throws(EngineError) {
    let upper = upper
    if upper.isEmpty {
      try merge.seekToLast()
    } else {
      try merge.seek(atOrBefore: upper.bytes)
      if merge.isValid, merge.compare(upper.bytes) == 0 { try merge.previous() }
    }
    try settleBackward()
  }

  private func go(atOrAfter key: RawSpan) throws(EngineError) {
    let lower = lower
    guard key.compare(lower.bytes) > 0 else { return try goToFirst() }
    try merge.seek(atOrAfter: key)
    try settleForward()
  }

  private func go(atOrBefore key: RawSpan) throws(EngineError) {
    let upper = upper
    guard upper.isEmpty || key.compare(upper.bytes) < 0 else { return try goToLast() }
    try merge.seek(atOrBefore: key)
    try settleBackward()
  }

  private func settleForward() throws(EngineError) {
    while merge.isValid, merge.kind == .delete { try merge.next() }
    let upper = upper
    var window = merge.window
    guard window.isValid, upper.isEmpty || window.cut(from: upper.bytes) else { return }
    window.cutInFront()
    window.cutAtTombstones()
    place.window = window
  }

  private func settleBackward() throws(EngineError) {
    while merge.isValid, merge.kind == .delete { try merge.previous() }
    let lower = lower
    var window = merge.window
    guard window.isValid, window.cut(below: lower.bytes) else { return }
    window.cutBehind()
    window.cutAtTombstones()
    place.window = window
  }
}
