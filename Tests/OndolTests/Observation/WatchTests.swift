// A watch by itself, with a view that a test can make stale.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

/// Counts documents, except for one whose change does not reveal the count.
private struct Tally: LiveView {
  var count: Int
  private(set) var isStale = false

  init(count: Int) {
    self.count = count
  }

  func isSame(as other: Tally) -> Bool { count == other.count }

  mutating func apply(_ changes: some Collection<ObservedChange>) -> Bool {
    let isConfusing = changes.contains { $0.path.documentID == "confusing" }
    for change in changes where change.path.documentID != "confusing" {
      count += (change.after == nil ? 0 : 1) - (change.before == nil ? 0 : 1)
    }
    isStale = isConfusing
    return !isStale
  }
}

@Suite struct WatchTests {
  private func change(_ path: String, isRemoval: Bool = false) throws -> ObservedChange {
    ObservedChange(
      path: try DocumentPath(path), before: isRemoval ? [:] : nil, after: isRemoval ? nil : [:],
      stamps: .unread)
  }

  /// A live count was once off by one until the next change. The stale view had already counted the
  /// document, so the evaluation that followed seemed to bring nothing new.
  @Test func `An evaluation notifies if its result was not delivered yet`() async throws {
    let truth = Guarded((count: 1, sequence: UInt64(1)))
    let watch = Watch<Tally>(Outages(nil)) { (_) throws(DatabaseError) in
      let (count, sequence) = truth.withLock { $0 }
      return Evaluation(
        view: Tally(count: count),
        point: CommitPoint(sequence: SequenceNumber(rawValue: sequence), time: 0))
    }
    let listener = Listening()
    let first = try await watch.next(after: nil, for: listener)
    #expect(first?.view.count == 1)
    truth.withLock { $0 = (2, 2) }
    var wakeups: [Wakeup] = []
    watch.take([try change("c/new"), try change("c/confusing")], Version(rawValue: 2), &wakeups)
    let second = try await ManualClock().watch { try await watch.next(after: first, for: listener) }
    #expect(second?.view.count == 2)
  }

  /// A slow listener once received the same result twice: the change that another one had been
  /// shown in between was undone by the time it asked.
  @Test func `A change that was undone is not delivered to a listener that missed it`() async throws
  {
    let watch = Watch<Tally>(Outages(nil)) { (_) throws(DatabaseError) in
      Evaluation(
        view: Tally(count: 1),
        point: CommitPoint(sequence: SequenceNumber(rawValue: 1), time: 0))
    }
    let first = try await watch.next(after: nil, for: Listening())
    var wakeups: [Wakeup] = []
    watch.take([try change("c/new")], Version(rawValue: 2), &wakeups)
    let second = watch.nextAtOnce(after: first)
    #expect(second?.view.count == 2)
    watch.take([try change("c/new", isRemoval: true)], Version(rawValue: 3), &wakeups)
    #expect(watch.nextAtOnce(after: second)?.view.count == 1)
    #expect(watch.nextAtOnce(after: first) == nil)
    let slow = Listening()
    let told = try await ManualClock().watch {
      async let told = watch.next(after: first, for: slow)
      await Task.yield()
      var wakeups: [Wakeup] = []
      watch.take([try change("c/newer")], Version(rawValue: 4), &wakeups)
      for wakeup in wakeups { wakeup.resume() }
      return try await told?.view.count
    }
    #expect(told == 2)
  }
}
