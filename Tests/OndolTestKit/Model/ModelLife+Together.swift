// Concurrent commits, reads and upkeep. The order of the commits is unknown beforehand, so each
// task records the answers and its reads, and the model judges after all have ended. Commits have
// their reported sequences. A snapshot shows exactly the commits up to its own sequence, including
// those acknowledged before it was taken. No guarded row changed between a batch's basis and its
// commit.

internal import OndolEngine

/// An acknowledged commit.
private struct AcknowledgedCommit: Sendable {
  var changes: [DrawnChange]
  var receipt: CommitReceipt
  var durability: Durability
  /// The basis of the batch, and the rows that it relied on.
  var basis: UInt64?
  var guarded: [[UInt8]] = []
}

/// A reader's observation.
private struct Observation: Sendable {
  var snapshot: Snapshot
  var group: UInt32
  var rows: [ModelRow]
}

/// A task's records.
private struct Notes: Sendable {
  var commits: [AcknowledgedCommit] = []
  var observations: [Observation] = []
}

extension ModelLife {
  func together(_ engine: Engine) async throws {
    let before = history.newest
    let acknowledged = Guarded(before)
    let tasks = (0..<(2 + draw.random.below(4))).map { _ in
      TaskDraw(
        draw: ModelDraw(random: SeededRandom(seed: draw.random.next()), known: draw.known),
        acknowledged: acknowledged)
    }
    let notes = try await withThrowingTaskGroup(of: Notes.self) { group in
      for task in tasks {
        group.addTask { @concurrent in
          var task = task
          return try await task.run(engine)
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    let commits = notes.flatMap(\.commits)
    for commit in commits {
      try acknowledge(commit.changes, commit.receipt, commit.durability)
      hit(.commitsAtOnce)
    }
    guard history.newest == before + UInt64(commits.count) else {
      throw ModelFailure("\(commits.count) commits at once lead to \(history.newest)")
    }
    noteFlushAtOnce()
    for commit in commits { try check(commit) }
    for observation in notes.flatMap(\.observations) {
      try await check(observation)
      hit(.readsAtOnce)
    }
    try history.checkOrder()
  }

  private func check(_ commit: AcknowledgedCommit) throws {
    guard let basis = commit.basis else { return }
    let sequence = commit.receipt.sequence.rawValue
    for key in commit.guarded where history.hasChange(of: key, after: basis, before: sequence) {
      throw ModelFailure("commit \(sequence) was accepted: \(shown(key)) changed after \(basis)")
    }
  }

  /// Checks an observation, and whether it can still be made.
  private func check(_ observation: Observation) async throws {
    let snapshot = CheckedSnapshot(snapshot: observation.snapshot, shardCount: shardCount)
    let expected = history.rows(
      from: ModelDraw.groupStart(observation.group),
      to: ModelDraw.groupStart(observation.group + 1), at: snapshot.sequence)
    guard observation.rows.count == expected.count,
      zip(observation.rows, expected).allSatisfy({ seen, row in
        byteOrder(seen.key, row.key) == 0 && byteOrder(seen.value, row.value) == 0
      })
    else {
      throw ModelFailure(
        "beside commits a scan of group \(observation.group) at \(snapshot.sequence) had "
          + "\(observation.rows.count) rows, not \(expected.count) or not the same")
    }
    if draw.random.chance(1, in: 3) { try await snapshot.checkGets(4, history, &draw) }
  }
}

/// One of the concurrent tasks.
private struct TaskDraw: Sendable {
  var draw: ModelDraw
  /// The newest acknowledged commit of all tasks.
  let acknowledged: Guarded<UInt64>

  private static let attempts = 10_000

  mutating func run(_ engine: Engine) async throws -> Notes {
    switch draw.random.below(10) {
    case 0..<4: try await write(engine)
    case 4..<6: try await count(engine)
    case 6..<9: try await read(engine)
    default: try await keepUp(engine)
    }
  }

  private mutating func write(_ engine: Engine) async throws -> Notes {
    var notes = Notes()
    for _ in 0..<(1 + draw.random.below(4)) {
      let changes = draw.changes()
      let durability = draw.durability()
      switch await engine.attempt(Batch(changes), durability) {
      case .success(let receipt):
        note(receipt)
        notes.commits.append(
          AcknowledgedCommit(changes: changes, receipt: receipt, durability: durability))
      case .failure(.tooLarge): continue
      case .failure(let error): throw error
      }
    }
    return notes
  }

  /// Writes rows derived from its reads, and repeats that until no other commit intervenes.
  private mutating func count(_ engine: Engine) async throws -> Notes {
    var notes = Notes()
    for _ in 0..<(1 + draw.random.below(3)) {
      notes.commits.append(try await countOnce(engine))
    }
    return notes
  }

  private mutating func countOnce(_ engine: Engine) async throws -> AcknowledgedCommit {
    let key = ModelDraw.groupStart(UInt32(draw.random.below(2))) + [0x63]
    let durability = draw.durability()
    for _ in 0..<Self.attempts {
      let snapshot = try takeSnapshot(engine)
      let count = try await snapshot.get(key)?.first ?? 0
      let changes = [DrawnChange(key: key, value: [count &+ 1])]
      var batch = Batch(changes)
      batch.basis = snapshot.sequence
      batch.guardUnchanged(key.bytes)
      switch await engine.attempt(batch, durability) {
      case .success(let receipt):
        note(receipt)
        return AcknowledgedCommit(
          changes: changes, receipt: receipt, durability: durability,
          basis: snapshot.sequence.rawValue, guarded: [key])
      case .failure(.stale):
        // The error comes only after the commit that made it stale is readable.
        guard try takeSnapshot(engine).sequence > snapshot.sequence else {
          throw ModelFailure("stale since \(snapshot.sequence), but nothing newer is visible")
        }
      case .failure(let error): throw error
      }
    }
    throw ModelFailure("a batch was stale \(Self.attempts) times")
  }

  private mutating func read(_ engine: Engine) async throws -> Notes {
    var notes = Notes()
    for _ in 0..<(1 + draw.random.below(3)) {
      let group = UInt32(draw.random.below(Int(ModelDraw.groups)))
      let snapshot = try takeSnapshot(engine)
      let rows = try await scan(snapshot, group)
      for row in rows where draw.random.chance(1, in: 8) {
        guard try await snapshot.get(row.key) == row.value else {
          throw ModelFailure("a get finds something else than a scan at \(shown(row.key))")
        }
      }
      notes.observations.append(Observation(snapshot: snapshot, group: group, rows: rows))
    }
    return notes
  }

  /// Scans a group, and sometimes lets others run first.
  private mutating func scan(_ snapshot: Snapshot, _ group: UInt32) async throws -> [ModelRow] {
    var cursor = snapshot.cursor(
      from: ModelDraw.groupStart(group), to: ModelDraw.groupStart(group + 1))
    var rows: [ModelRow] = []
    let isBackward = draw.random.chance(1, in: 3)
    if isBackward { try cursor.seekToLast() } else { try cursor.seekToFirst() }
    while cursor.isValid {
      rows.append(ModelRow(key: cursor.key.array, value: try cursor.value.array))
      if isBackward { try cursor.previous() } else { try cursor.next() }
      if draw.random.chance(1, in: 8) { await Task.yield() }
    }
    return isBackward ? rows.reversed() : rows
  }

  private mutating func keepUp(_ engine: Engine) async throws -> Notes {
    switch draw.random.below(4) {
    case 0: try await engine.flush()
    case 1: try await engine.compact()
    case 2: try await engine.synchronize()
    default: _ = engine.metrics
    }
    return Notes()
  }

  private func note(_ receipt: CommitReceipt) {
    acknowledged.withLock { $0 = max($0, receipt.sequence.rawValue) }
  }

  /// A snapshot, which must include everything acknowledged before.
  private func takeSnapshot(_ engine: Engine) throws -> Snapshot {
    let least = acknowledged.withLock { $0 }
    let snapshot = try engine.snapshot()
    guard snapshot.sequence.rawValue >= least else {
      throw ModelFailure("a snapshot at \(snapshot.sequence) lacks commit \(least)")
    }
    return snapshot
  }
}
