// The order of commits without an engine: whatever the order in which writes and syncs end, the
// published commits are a prefix of the placed ones, as long as durabilities allow and no longer.

import OndolTestKit
import Testing

@testable import OndolEngine

@Suite struct CommitStateTests {
  /// A whole commit, as the test remembers it.
  private struct Placed {
    var sequence: UInt64
    var start: UInt64
    var end: UInt64
    var durability: Durability
    var isWritten = false
  }

  /// The commits that must be published, from the full history.
  private func published(_ commits: [Placed], syncedThrough: UInt64) -> UInt64 {
    let written = commits.first { !$0.isWritten }?.start ?? .max
    let reached = commits.prefix { commit in
      switch commit.durability {
      case .memory: true
      case .process, .periodic: commit.end <= written
      case .power: commit.end <= syncedThrough
      }
    }
    return reached.last?.sequence ?? 0
  }

  @Test(arguments: Seeds.first(20))
  func `The published commits are a prefix, as long as possible`(seed: UInt64) {
    var random = OndolTestKit.SeededRandom(seed: seed)
    var state = CommitState(sequence: .zero, time: 0, end: .zero)
    var commits: [Placed] = []
    var syncedThrough: UInt64 = 0
    for _ in 0..<400 {
      switch random.below(4) {
      case 0, 1:
        let start = state.placedEnd
        let end = LogPosition(rawValue: start.rawValue + UInt64(8 + random.below(100)))
        let durability = random.pick([
          Durability.memory, .process, .periodic(microseconds: 5), .power,
        ])
        let time = state.nextTime(now: Int64(random.below(1_000)))
        #expect(time > state.lastTime)
        let sequence = state.place(
          time: time, end: end, durability: durability, writtenFrom: start)
        commits.append(
          Placed(
            sequence: sequence.rawValue, start: start.rawValue, end: end.rawValue,
            durability: durability))
      case 2:
        let open = commits.indices.filter { !commits[$0].isWritten }
        if open.isEmpty { continue }
        let index = random.pick(open)
        commits[index].isWritten = true
        state.endWrite(at: LogPosition(rawValue: commits[index].start))
      default:
        let reachable = commits.first { !$0.isWritten }?.start ?? state.placedEnd.rawValue
        #expect(state.writtenThrough.rawValue == reachable, "SEED=\(seed)")
        let wanted = commits.contains {
          $0.durability == .power && $0.end > syncedThrough && $0.end <= reachable
        }
        #expect(state.wantsSync == wanted, "SEED=\(seed)")
        state.markSynced(through: state.writtenThrough)
        syncedThrough = max(syncedThrough, reachable)
      }
      let before = state.published
      let moved = state.publish()
      let expected = published(commits, syncedThrough: syncedThrough)
      #expect(state.published.rawValue == expected, "SEED=\(seed)")
      #expect(moved == (expected > before.rawValue ? state.published : nil), "SEED=\(seed)")
    }
  }

  @Test func `Each waiting commit is released once, in order, when its place is reached`() {
    var line = WaitLine<Int, String>()
    #expect(line.earliest == nil)
    for (name, position) in [("a", 5), ("b", 3), ("c", 9), ("d", 5)] {
      line.add(name, for: position)
    }
    #expect(line.earliest == 3)
    expect(line.take(through: 2) == [])
    expect(line.take(through: 5) == ["a", "b", "d"])
    expect(line.take(through: 5) == [])
    #expect(line.earliest == 9)
    expect(line.takeAll() == ["c"])
    #expect(line.earliest == nil)
  }
}

/// Works as `#expect` for expressions with side effects, which a macro would take apart.
func expect(
  _ isTrue: Bool, _ comment: Comment? = nil, at location: SourceLocation = #_sourceLocation
) {
  #expect(isTrue, comment, sourceLocation: location)
}
