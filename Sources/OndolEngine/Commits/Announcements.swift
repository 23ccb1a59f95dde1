// Stage 6 of the write path: the database's follower receives each commit, one after the other, in
// the order of commits and once it is visible. A note travels with its batch through the sequencer,
// which alone knows that order. A committer delivers it, never the thread that syncs.

/// A commit that has become visible.
package struct Announcement: Sendable {
  package var sequence: SequenceNumber
  /// Microseconds since 1970.
  package var time: Int64
  /// The note of the batch.
  package var note: any AnyObject & Sendable
}

/// Announcements between the sequencer and the follower.
struct Announcements: Sendable {
  typealias Follower = @Sendable (Announcement) -> Void

  /// The recipient; none at first.
  var follower: Follower?
  /// Announcements of placed commits that were not delivered yet, in order.
  private var waiting: [Announcement] = []
  /// Whether a thread is delivering at the moment.
  private var isDelivering = false
  /// The first of those being delivered.
  private var delivered: SequenceNumber?

  mutating func add(_ announcement: Announcement) {
    if follower != nil { waiting.append(announcement) }
  }

  /// The next announcements to deliver, and their recipient: of commits up to `published`, which
  /// are visible. The caller delivers them and calls this again until it returns nil. Nil when
  /// there is nothing, or another thread is delivering.
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

  /// Whether all up to `sequence` have been delivered.
  func isDone(through sequence: SequenceNumber) -> Bool {
    [waiting.first?.sequence, delivered].allSatisfy { $0.map { $0 > sequence } ?? true }
  }
}
