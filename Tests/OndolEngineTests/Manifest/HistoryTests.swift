// The logs that the manifest keeps in addition to those for recovery, as a value.

import OndolTestKit
import Testing

@testable import OndolEngine

@Suite struct HistoryTests {
  private func point(_ sequence: UInt64) -> CommitPoint {
    CommitPoint(
      sequence: SequenceNumber(rawValue: sequence), time: Int64(clamping: sequence) &* 100)
  }

  private func start(_ number: UInt64, at base: UInt64, after sequence: UInt64) -> LogStart {
    LogStart(
      number: FileNumber(rawValue: number), base: LogPosition(rawValue: base),
      sequence: SequenceNumber(rawValue: sequence), time: Int64(sequence) * 100)
  }

  private func kept(_ number: UInt64, after sequence: UInt64, length: UInt64 = 5_000) -> KeptLog {
    KeptLog(number: FileNumber(rawValue: number), length: length, before: point(sequence))
  }

  /// The floor is log 10, after commit 50.
  private func state(_ changes: [ManifestChange] = []) throws -> ManifestState {
    var state = ManifestState(
      nextFile: FileNumber(rawValue: 20), floor: start(10, at: 90_000, after: 50),
      newestLog: FileNumber(rawValue: 10), shards: [ShardState()])
    for change in changes { try state.apply(change) }
    return state
  }

  @Test func `the rewritten manifest keeps the same logs`() throws {
    let state = try state([
      .history(after: point(12)), .keepLog(kept(3, after: 10)), .keepLog(kept(7, after: 30)),
    ])
    var bytes: [UInt8] = []
    for change in state.asChanges { change.encode(into: &bytes) }
    var again = ManifestState(
      nextFile: .zero, floor: start(0, at: 0, after: 0), newestLog: .zero, shards: [ShardState()])
    for change in try ManifestChange.decodeAll(bytes.bytes) { try again.apply(change) }
    #expect(again == state)
    let present = [2, 3, 4, 7, 9, 10, 11].filter {
      state.references(log: FileNumber(rawValue: UInt64($0)))
    }
    #expect(present == [3, 7, 10, 11])
  }

  @Test func `history that begins later drops logs that end before`() throws {
    var state = try state([
      .history(after: point(10)), .keepLog(kept(3, after: 10)), .keepLog(kept(7, after: 30)),
    ])
    try state.apply(.history(after: point(29)))
    #expect(state.history?.logs.map(\.number.rawValue) == [3, 7])
    try state.apply(.history(after: point(30)))
    #expect(state.history?.logs.map(\.number.rawValue) == [7])
    try state.apply(.history(after: point(50)))
    #expect(state.history?.logs == [])
    try state.apply(.history(after: nil))
    #expect(state.history == nil)
  }

  @Test func `impossible kept logs are refused`() throws {
    let begun = ManifestChange.history(after: point(10))
    let changes: [[ManifestChange]] = [
      [.keepLog(kept(3, after: 10))],
      [begun, .keepLog(kept(10, after: 10))],
      [begun, .keepLog(kept(11, after: 10))],
      [begun, .keepLog(kept(3, after: 51))],
      [begun, .keepLog(kept(3, after: 10)), .keepLog(kept(3, after: 20))],
      [begun, .keepLog(kept(3, after: 10)), .keepLog(kept(2, after: 20))],
      [begun, .keepLog(kept(3, after: 20)), .keepLog(kept(4, after: 20))],
      [begun, .keepLog(kept(3, after: 10, length: .max))],
      [begun, .keepLog(kept(3, after: .max))],
      [.history(after: CommitPoint(sequence: SequenceNumber(rawValue: .max), time: 0))],
    ]
    for changes in changes {
      #expect(throws: MalformedBytes.self) { try state(changes) }
    }
    var bytes: [UInt8] = []
    begun.encode(into: &bytes)
    bytes[1] += 1
    bytes.append(0)
    #expect(throws: MalformedBytes.self) { try ManifestChange.decodeAll(bytes.bytes) }
  }

  @Test func `logs go by age and by bytes, and empty ones are not kept`() {
    let starts = [
      start(2, at: 0, after: 0), start(3, at: 5_000, after: 0), start(4, at: 9_000, after: 20),
      start(6, at: 19_000, after: 40), start(10, at: 20_000, after: 50),
    ]
    var whole = History(start: point(0))
    whole.keep(starts)
    #expect(whole.logs.map(\.number.rawValue) == [3, 4, 6])
    #expect(whole.logs.map(\.length) == [4_000, 10_000, 1_000])
    var some = whole
    some.trim(
      to: HistoryRetention(microseconds: .max, bytes: 11_000), before: starts[4], now: .max)
    #expect(some.logs.map(\.number.rawValue) == [4, 6])
    #expect(some.start == point(20))
    some.trim(
      to: HistoryRetention(microseconds: 1_000, bytes: .max), before: starts[4], now: 5_500)
    #expect(some.logs.map(\.number.rawValue) == [6])
    some.trim(to: HistoryRetention(microseconds: 100, bytes: .max), before: starts[4], now: .max)
    #expect(some.logs.isEmpty && some.start == point(50))
    // A log whose commits have no annotations does not belong to it.
    var late = History(start: point(20))
    late.keep(starts)
    #expect(late.logs.map(\.number.rawValue) == [4, 6])
  }
}
