// A database's life before the power cut: a list of steps from a seed, small enough to try a crash
// at every one of its writes. There are only a few dozen keys, so that rows are overwritten and
// deleted all the time. Limits are so low that a few commits flush a memtable and replace a log.

package import OndolEngine

package struct Workload: Sendable {
  package struct Commit: Sendable {
    package var changes: [Change]
    package var durability: Durability
  }

  package enum Step: Sendable {
    case commit([Change], Durability)
    /// Concurrent commits by as many tasks, perhaps with a flush among them.
    case together([Commit], alsoFlush: Bool)
    case synchronize
    case flush
    case settle
    case reopen
  }

  /// The keyspaces in use have numbers below this, times 4,096.
  static let keyspaceGroups: UInt32 = 4

  package var seed: UInt64
  package var options: SubjectOptions
  package var steps: [Step]
}

extension Workload {
  /// The workload of `seed`.
  package init(seed: UInt64) {
    var draw = WorkloadDraw(random: SeededRandom(seed: seed))
    self.seed = seed
    options = draw.options()
    steps = draw.steps()
  }

  /// The steps after a recovery, enough to show that the database can be written again, with limits
  /// of their own.
  static func continuation(seed: UInt64) -> Workload {
    var draw = WorkloadDraw(random: SeededRandom(seed: seed))
    let options = draw.options()
    let steps = (0..<(1 + draw.random.below(4))).map { _ in draw.step() }
    return Workload(seed: seed, options: options, steps: steps)
  }
}

extension Workload {
  /// The changes of one commit, and its durability.
  static func commit(seed: UInt64) -> Commit {
    var draw = WorkloadDraw(random: SeededRandom(seed: seed))
    return draw.commit()
  }
}

private struct WorkloadDraw {
  /// More than one frame's payload.
  private static let bigValue = 4 << 20

  var random: SeededRandom

  mutating func options() -> SubjectOptions {
    // From a copy, so that the steps do not depend on it.
    var own = random
    return SubjectOptions(
      shardCount: 1 + random.below(3),
      memtableSize: random.pick([1 << 10, 4 << 10, 16 << 10]),
      logSize: random.pick([6 << 10, 12 << 10, 64 << 10]),
      manifestSize: random.pick([500, 2 << 10, 16 << 10]),
      segmentSize: random.pick([1 << 10, 8 << 10, 1 << 20]),
      blockSize: random.pick([256, 1_024, 4_096]),
      deferredBytes: random.pick([100, 1 << 10, 1 << 20]),
      runLimit: 1 + random.below(4),
      callersSync: own.chance(1, in: 2),
      smallShardSize: own.pick([0, 0, 0, 6 << 10]),
      valueThreshold: own.pick([0, 16, 600, .max]),
      valueFileSize: own.pick([1, 1 << 10, 8 << 10]),
      historySize: own.pick([nil, nil, 0, 16 << 10]),
      manifestFrameSize: own.pick([64, 700, 4 << 20]))
  }

  mutating func steps() -> [Workload.Step] {
    if random.chance(1, in: 64) {
      return [step(), bigCommit(), step(), step()]
    }
    return (0..<(6 + random.below(30))).map { _ in step() }
  }

  mutating func step() -> Workload.Step {
    switch random.below(100) {
    case 0..<62: .commit(changes(), durability())
    case 62..<77: .together(commits(), alsoFlush: random.chance(1, in: 4))
    case 77..<80: .synchronize
    case 80..<88: .flush
    case 88..<93: .settle
    default: .reopen
    }
  }

  private mutating func commits() -> [Workload.Commit] {
    (0..<(2 + random.below(3))).map { _ in commit() }
  }

  mutating func commit() -> Workload.Commit {
    Workload.Commit(changes: changes(), durability: durability())
  }

  private mutating func bigCommit() -> Workload.Step {
    var changes = changes()
    changes.append(
      Change(key: key(), value: [UInt8](repeating: 0xAB, count: Self.bigValue) + random.bytes(9)))
    return .commit(changes, durability())
  }

  private mutating func durability() -> Durability {
    random.pick([
      .power, .power, .power, .process, .process, .process, .periodic(microseconds: 500), .memory,
    ])
  }

  private mutating func changes() -> [Change] {
    let count = random.chance(1, in: 8) ? 10 + random.below(20) : 1 + random.below(4)
    return (0..<count).map { _ in
      Change(key: key(), value: random.chance(1, in: 4) ? nil : value())
    }
  }

  /// A keyspace, of which several share a shard, and one of sixteen keys in it.
  private mutating func key() -> [UInt8] {
    var key: [UInt8] = []
    key.appendBigEndian(random.pick([0, 0x1000, 0x1001, 0x2000, 0x3000] as [UInt32]))
    key.append(contentsOf: [UInt8](repeating: 0x6B, count: random.below(3)))
    key.append(UInt8(random.below(8)))
    return key
  }

  private mutating func value() -> [UInt8] {
    let count = random.chance(1, in: 10) ? 500 + random.below(3_000) : random.below(60)
    // Half the values can be compressed.
    guard random.chance(1, in: 2) else { return random.bytes(count) }
    return [UInt8](repeating: UInt8(random.below(256)), count: count)
  }
}

extension Workload: CustomStringConvertible {
  /// One step a line, as short as possible but still readable.
  package var description: String {
    let lines = steps.enumerated().map { "  \($0 + 1). \($1)" }
    return (["\(options)"] + lines).joined(separator: "\n")
  }
}

extension Workload.Step: CustomStringConvertible {
  package var description: String {
    switch self {
    case .commit(let changes, let durability): Self.describe(changes, durability)
    case .together(let commits, let alsoFlush):
      "at once: "
        + commits.map { Self.describe($0.changes, $0.durability) }.joined(separator: "; ")
        + (alsoFlush ? "; flush" : "")
    case .synchronize: "synchronize"
    case .flush: "flush"
    case .settle: "settle"
    case .reopen: "close and open"
    }
  }

  private static func describe(_ changes: [Change], _ durability: Durability) -> String {
    let shown = changes.prefix(4).map { change in
      let key = change.key.map { String($0, radix: 16) }.joined(separator: ".")
      return change.value.map { "\(key)=<\($0.count)>" } ?? "delete \(key)"
    }
    let rest = changes.count > 4 ? " and \(changes.count - 4) more" : ""
    return "commit .\(durability) \(shown.joined(separator: ", "))\(rest)"
  }
}
