// What the floor above walks over: the visible rows of a snapshot within a range of keys, in either
// direction, deletions left out. Keys and values are borrowed; the next step ends the borrow.

/// A position among the rows of a snapshot.
package struct Cursor: ~Copyable {
  private var merge: MergeCursor
  private let lower: [UInt8]
  private let upper: [UInt8]
  /// Keeps memtables and files alive.
  private let view: View

  /// Rows with keys from `lower` on and before `upper`; no upper bound when `upper` is empty.
  init(_ merge: consuming MergeCursor, from lower: [UInt8], to upper: [UInt8], in view: View) {
    self.merge = merge
    self.lower = lower
    self.upper = upper
    self.view = view
  }

  /// Whether there is a current row. Without one, only seeking is allowed.
  package private(set) var isValid = false

  package var key: RawSpan {
    @_lifetime(borrow self)
    get { merge.key }
  }

  /// The current row's value. A large one is only read when it is asked for, and blocks the thread
  /// when it must come from disk.
  package var value: RawSpan {
    @_lifetime(borrow self)
    get throws(EngineError) { try merge.resolvedValue }
  }

  package mutating func seekToFirst() throws(EngineError) {
    let lower = lower
    if lower.isEmpty { try merge.seekToFirst() } else { try merge.seek(atOrAfter: lower.bytes) }
    try settleForward()
  }

  package mutating func seekToLast() throws(EngineError) {
    let upper = upper
    if upper.isEmpty {
      try merge.seekToLast()
    } else {
      try merge.seek(atOrBefore: upper.bytes)
      let isAtUpper = merge.isValid && merge.key.compare(upper.bytes) == 0
      if isAtUpper { try merge.previous() }
    }
    try settleBackward()
  }

  /// Moves to the first row at or after `key`, within the range.
  package mutating func seek(atOrAfter key: RawSpan) throws(EngineError) {
    guard key.compare(lower.bytes) > 0 else { return try seekToFirst() }
    try merge.seek(atOrAfter: key)
    try settleForward()
  }

  /// Moves to the last row at or before `key`, within the range.
  package mutating func seek(atOrBefore key: RawSpan) throws(EngineError) {
    guard upper.isEmpty || key.compare(upper.bytes) < 0 else { return try seekToLast() }
    try merge.seek(atOrBefore: key)
    try settleBackward()
  }

  package mutating func next() throws(EngineError) {
    try merge.next()
    try settleForward()
  }

  package mutating func previous() throws(EngineError) {
    try merge.previous()
    try settleBackward()
  }

  private mutating func settleForward() throws(EngineError) {
    while merge.isValid, merge.kind == .delete { try merge.next() }
    isValid = merge.isValid && (upper.isEmpty || merge.key.compare(upper.bytes) < 0)
  }

  private mutating func settleBackward() throws(EngineError) {
    while merge.isValid, merge.kind == .delete { try merge.previous() }
    isValid = merge.isValid && merge.key.compare(lower.bytes) >= 0
  }
}
