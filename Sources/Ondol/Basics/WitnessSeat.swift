// The place of the witness of a database's commits. The catalog has it, because every preparation
// of a commit has the catalog. What sits there is a CommitWitness, of a higher floor.

internal import OndolEngine
internal import Synchronization

/// A place for one object.
final class WitnessSeat: Sendable {
  private let isTaken = Atomic(false)
  private let object = Guarded<(any AnyObject & Sendable)?>(nil)

  /// Whether somebody is there: all that a database without a witness looks at.
  var isOccupied: Bool { isTaken.load(ordering: .acquiring) }

  var occupant: (any AnyObject & Sendable)? { isOccupied ? object.withLock { $0 } : nil }

  /// Replaces `old` with `new`; false when another object is there.
  func exchange(
    _ old: (any AnyObject & Sendable)?, for new: (any AnyObject & Sendable)?
  ) -> Bool {
    object.withLock { object in
      guard object === old else { return false }
      object = new
      isTaken.store(new != nil, ordering: .releasing)
      return true
    }
  }
}
