// A watch by itself, with a view that a test can tell to go stale.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

/// Counts documents, but for one whose change does not say what the count is.
private struct Tally: LiveView {
  var count: Int
  private(set) var isStale = false

  init(count: Int) {
    self.count = count
  }

  func isSame(as other: Tally) -> Bool { count == other.count }

  mutating func apply(_ changes: some Collection<ObservedChange>) -> Bool {
    let isConfusing = changes.contains { $0.path.documentID == "confusing" }
    count += changes.count - (isConfusing ? 1 : 0)
    isStale = isConfusing
    return !isStale
  }
}

@Suite struct WatchTests {
  private func change(_ path: String) throws -> ObservedChange {
    ObservedChange(path: try DocumentPath(path), before: nil, after: [:], stamps: .unread)
  }

  /// A live count was one behind until the next change: the view that had gone stale had counted
  /// the document already, so the evaluation that followed seemed to bring nothing new.
  @Test func `An evaluation is told when nobody was told what it brings`() async throws {
    let truth = Guarded((count: 1, sequence: UInt64(1)))
    let watch = Watch<Tally> { () throws(DatabaseError) in
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
}
