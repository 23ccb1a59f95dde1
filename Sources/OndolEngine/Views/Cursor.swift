// The upper floor's walk: the visible rows of a snapshot within a range of keys, in either
// direction, without deleted rows. Keys and values are borrowed; the next step ends the borrow. A
// cursor that may not block throws `.wouldBlock` when it needs a block from disk.
//
// Most steps are taken here, within a window of rows that are side by side. SnapshotWalk does
// everything else.

/// A position among the rows of a snapshot.
package struct Cursor: ~Copyable {
  private let walk: SnapshotWalk
  /// The walk's place, kept here for direct access.
  private let place: WindowPlace

  init(_ walk: SnapshotWalk) {
    self.walk = walk
    place = walk.place
  }

  /// Whether there is a current row. Without one, only seeking is allowed. After a move that throws
  /// there is none.
  package var isValid: Bool { place.isValid }

  /// The key of the current row, assembled at each call.
  package var key: RawSpan {
    @_lifetime(borrow self)
    get { place.key(heldBy: self) }
  }

  /// The value of the current row. A large one is read only on request, and blocks the thread when
  /// it must come from disk.
  package var value: RawSpan {
    @_lifetime(borrow self)
    get throws(EngineError) {
      if place.isPointer { return try walk.separatedValue(heldBy: self) }
      return place.value(heldBy: self)
    }
  }

  /// Moves to the next row.
  package mutating func next() throws(EngineError) {
    if !place.stepForward() { try walk.leaveWindowForward() }
  }

  /// Moves to the previous row.
  package mutating func previous() throws(EngineError) {
    if !place.stepBackward() { try walk.leaveWindowBackward() }
  }

  /// Moves on by up to `count` rows, forward or backward, as far as they are side by side with the
  /// current one.
  ///
  /// - Returns: how many; 0 says nothing about what follows.
  package mutating func skip(atMost count: Int, backward: Bool = false) -> Int {
    place.skip(atMost: count, backward: backward)
  }

  /// Moves on, forward or backward, from the current row to the first wanted one, and looks at no
  /// more than `count` rows that are side by side. A row whose value is read only on request counts
  /// as wanted.
  ///
  /// - Parameter isUnwanted: receives values; must not use the cursor.
  /// - Returns: the number of rows looked at, and whether the last of them, now the current one, is
  ///   wanted.
  package mutating func search(
    atMost count: Int, backward: Bool = false, past isUnwanted: (RawSpan) -> Bool
  ) -> (looked: Int, isFound: Bool) {
    place.search(atMost: count, backward: backward, past: isUnwanted)
  }

  /// Moves to the first row of the range.
  package mutating func seekToFirst() throws(EngineError) {
    try walk.seekToFirst()
  }

  /// Moves to the last row of the range.
  package mutating func seekToLast() throws(EngineError) {
    try walk.seekToLast()
  }

  /// Moves to the first row at or after `key`, within the range.
  package mutating func seek(atOrAfter key: RawSpan) throws(EngineError) {
    try walk.seek(atOrAfter: key)
  }

  /// Moves to the last row at or before `key`, within the range.
  package mutating func seek(atOrBefore key: RawSpan) throws(EngineError) {
    try walk.seek(atOrBefore: key)
  }
}
