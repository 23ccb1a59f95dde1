// What the floor above walks over: the visible rows of a snapshot within a range of keys, in either
// direction, deletions left out. Keys and values are borrowed; the next step ends the borrow. A
// cursor that may not block throws `.wouldBlock` where it needs a block from disk.
//
// A step is mostly taken here, within a window of rows that lie side by side; everything else is
// SnapshotWalk's.

/// A position among the rows of a snapshot.
package struct Cursor: ~Copyable {
  private let walk: SnapshotWalk
  /// The walk's, kept here to be reached without it.
  private let place: WindowPlace

  init(_ walk: SnapshotWalk) {
    self.walk = walk
    place = walk.place
  }

  /// Whether there is a current row. Without one, only seeking is allowed. A move that throws
  /// leaves none behind.
  package var isValid: Bool { place.isValid }

  /// The key of the current row, put together at each call.
  package var key: RawSpan {
    @_lifetime(borrow self)
    get { place.key(heldBy: self) }
  }

  /// The value of the current row. A large one is only read when it is asked for, and blocks the
  /// thread when it must come from disk.
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

  /// Moves to the row before.
  package mutating func previous() throws(EngineError) {
    if !place.stepBackward() { try walk.leaveWindowBackward() }
  }

  /// Moves on by up to `count` rows, forward or backward, as far as they lie side by side with the
  /// current one.
  ///
  /// - Returns: by how many; 0 says nothing about what follows.
  package mutating func skip(atMost count: Int, backward: Bool = false) -> Int {
    place.skip(atMost: count, backward: backward)
  }

  /// Moves on, forward or backward, from the current row to the first that is wanted, and looks at
  /// `count` rows at most that lie side by side. A row whose value is read only when it is asked
  /// for counts as wanted.
  ///
  /// - Parameter isUnwanted: is shown values; must not use the cursor.
  /// - Returns: the rows looked at, and whether the last of them, now the current one, is wanted.
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
