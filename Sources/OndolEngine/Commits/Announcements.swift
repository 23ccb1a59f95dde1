// Stage 6 of the write path: whoever follows the database is told of each commit, one after the
// other, in the order of commits and once it is visible. A note travels with its batch through the
// sequencer, which is the only one who knows that order, and is handed over by a committer, never
// by the thread that syncs.

/// A commit that has become visible.
package struct Announcement: Sendable {
  package var sequence: SequenceNumber
  /// Microseconds since 1970.
  package var time: Int64
  /// What the batch carried.
  package var note: any AnyObject & Sendable
}

/// Announcements on their way from the sequencer to the one who follows.
struct Announcements: Sendable {
  typealias Follower = @Sendable (Announcement) -> Void

  /// Who is told; nobody at first.
  var follower: Follower?
  /// Of commits that have their place and were not handed over yet, in order.
  private var waiting: [Announcement] = []
  /// Whether somebody hands them over right now.
  private var isDelivering = false
  /// The first of those that are being handed over.
  private var delivered: SequenceNumber?

  mutating func add(_ announcement: Announcement) {
    if follower != nil { waiting.append(announcement) }
  }

  /// What is to be handed over next, and to whom, by the caller, who comes back until there is
  /// nothing: of commits up to `published`, which are visible. Nil when there is nothing, or
  /// somebody else is at it.
  mutating func take(
    through published: SequenceNumber, goingOn: Bool
  ) -> (announcements: [Announcement], follower: Follower)? {
    guard goingOn || !isDelivering else { return nil }
    let visible = waiting.prefix { $0.sequence <= published }
    isDelivering = !visible.isEmpty
    delivered = visible.first?.sequence
    guard isDelivering, let follower else { return nil }
    let announcements = visible.count == waiting.count ? waiting : Array(visible)
    waiting.removeFirst(announcements.count)
    return (announcements, follower)
  }

  /// Whether all up to `sequence` have been handed over.
  func isDone(through sequence: SequenceNumber) -> Bool {
    [waiting.first?.sequence, delivered].allSatisfy { $0.map { $0 > sequence } ?? true }
  }
}
