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
  /// Of commits that have their place and are not visible yet, in order.
  private var placed: [Announcement] = []
  /// Of commits that are visible, in order.
  private var published: [Announcement] = []
  /// Whether somebody hands them over right now.
  private var isDelivering = false
  /// The first of those that are being handed over.
  private var delivered: SequenceNumber?

  mutating func add(_ announcement: Announcement) {
    if follower != nil { placed.append(announcement) }
  }

  /// Notes that all commits up to `sequence` are visible.
  mutating func publish(through sequence: SequenceNumber) {
    let count = placed.prefix { $0.sequence <= sequence }.count
    guard count > 0 else { return }
    if count == placed.count {
      if published.isEmpty { swap(&published, &placed) } else { published += placed }
      placed.removeAll(keepingCapacity: true)
    } else {
      published += placed.prefix(count)
      placed.removeFirst(count)
    }
  }

  /// What is to be handed over next, and to whom, by the caller, who comes back until there is
  /// nothing. Nil when there is nothing, or somebody else is at it.
  mutating func take(goingOn: Bool) -> (announcements: [Announcement], follower: Follower)? {
    guard goingOn || !isDelivering else { return nil }
    isDelivering = !published.isEmpty
    delivered = published.first?.sequence
    guard isDelivering, let follower else { return nil }
    defer { published = [] }
    return (published, follower)
  }

  /// Whether all up to `sequence` have been handed over.
  func isDone(through sequence: SequenceNumber) -> Bool {
    [placed.first?.sequence, published.first?.sequence, delivered].allSatisfy {
      $0.map { $0 > sequence } ?? true
    }
  }
}

extension Sequencer {
  func setFollower(_ follower: @escaping Announcements.Follower) {
    state.withLock { $0.announcements.follower = follower }
  }

  /// Hands over what has become visible. Whoever finds another at it leaves it to that one.
  func deliverAnnouncements() {
    var next = state.withLock { $0.announcements.take(goingOn: false) }
    while let (announcements, follower) = next {
      for announcement in announcements { follower(announcement) }
      next = state.withLock { $0.announcements.take(goingOn: true) }
    }
  }

  /// Whether whoever follows has been told of all commits up to `sequence`.
  func hasAnnounced(through sequence: SequenceNumber) -> Bool {
    state.withLock { $0.announcements.isDone(through: sequence) }
  }
}
