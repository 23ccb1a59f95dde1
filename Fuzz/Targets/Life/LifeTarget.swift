// Whole lives. Bytes become the limits of a database and its history (commits one by one and in
// groups, flushes, merges, closing and opening), on files in memory. Before operations that the
// bytes choose, its power is cut or its process killed. The recovered state must be one that the
// crash allows. The model and the check are those of the crash tests, but a fuzzer makes the
// choices instead of a seed, and it knows which choices reached new code.

import OndolEngine

@testable import OndolTestKit

enum LifeTarget: FuzzTarget {
  static let name = "life"

  static func run(_ bytes: [UInt8]) {
    var input = FuzzInput(bytes)
    let floor = input.below(8)
    let open: OpenSubject =
      switch floor {
      case 0...4: { try await EngineSubject.open($0, $1) }
      case 5, 6: { try await DocumentSubject.open($0, $1) }
      default: { try await BlobSubject.open($0, $1) }
      }
    let options = input.subjectOptions()
    let mostSteps = floor <= 4 ? 16 : 6
    let steps = (0...input.below(mostSteps)).map { _ in input.step() }
    let workload = Workload(seed: UInt64(input.below(1 << 16)), options: options, steps: steps)
    var trial = CrashTrial(seed: workload.seed, open: open)
    do throws(CrashTrial.Failure) {
      let life = try trial.firstLife(workload)
      for _ in 0...input.below(4) where !life.pictures.isEmpty {
        let picture = life.pictures[input.below(1 << 16) % life.pictures.count]
        _ = try trial.crash(life, at: picture, again: input.oneIn(3))
      }
    } catch {
      demand(false, "\(error.reason)\n\(error.place)\n\(workload)")
    }
  }

  // MARK: - Seeds

  static func seeds() -> [[UInt8]] {
    var chance = Chance(13)
    return (0..<8).flatMap { floor in [60, 200].map { [UInt8(floor)] + chance.bytes($0) } }
  }
}

extension FuzzInput {
  fileprivate mutating func subjectOptions() -> SubjectOptions {
    SubjectOptions(
      shardCount: 1 + below(3), memtableSize: pick([1 << 10, 4 << 10, 16 << 10]),
      logSize: pick([6 << 10, 12 << 10, 64 << 10]), manifestSize: pick([500, 2 << 10, 16 << 10]),
      segmentSize: pick([1 << 10, 8 << 10, 1 << 20]), blockSize: pick([256, 1_024, 4_096]),
      deferredBytes: pick([100, 1 << 10, 1 << 20]), runLimit: 1 + below(4), callersSync: flag(),
      smallShardSize: pick([0, 6 << 10]), valueThreshold: pick([0, 16, 600, .max]),
      valueFileSize: pick([1, 1 << 10, 8 << 10]), historySize: pick([nil, 0, 16 << 10]))
  }

  fileprivate mutating func step() -> Workload.Step {
    switch below(12) {
    case 0...5: .commit(changes(), durability())
    case 6, 7:
      .together(
        (0..<(2 + below(3))).map { _ in
          Workload.Commit(changes: changes(), durability: durability())
        }, alsoFlush: oneIn(4))
    case 8: .synchronize
    case 9: .flush
    case 10: .settle
    default: .reopen
    }
  }

  private mutating func durability() -> Durability {
    pick([.power, .process, .periodic(microseconds: 500), .memory])
  }

  private mutating func changes() -> [Change] {
    (0...(oneIn(8) ? below(24) : below(4))).map { _ in
      var key: [UInt8] = []
      key.appendBigEndian(pick([0, 0x1000, 0x1001, 0x2000, 0x3000] as [UInt32]))
      key += [UInt8](repeating: 0x6B, count: below(3)) + [UInt8(below(8))]
      return Change(key: key, value: oneIn(4) ? nil : value())
    }
  }

  private mutating func value() -> [UInt8] {
    let count = oneIn(10) ? 500 + below(3_000) : below(60)
    if flag() { return [UInt8](repeating: byte(), count: count) }
    var chance = Chance(UInt64(byte()))
    return chance.bytes(count)
  }
}
