// The operations of a model trial, one after another, and their required results.
//
// The rules: an acknowledged commit has the next sequence and is in every later snapshot. A guarded
// batch whose rows changed is always refused. One whose rows did not change may be refused only if
// rows of their shard were flushed after its basis. Closing keeps everything. A kill keeps
// everything up to the last commit that asked for it, and a whole number of commits after that.

internal import OndolEngine

final class ModelLife {
  let seed: UInt64
  var environment: Environment
  let path: String
  /// The files, if they can be killed.
  private var simulated: SimulatedFileSystem?
  var draw: ModelDraw
  var options: EngineOptions
  /// A database keeps the number from its creation.
  let shardCount: Int
  var history = RowHistory()
  var points: [ModelPoint: Int] = [:]
  /// Every commit up to here survives a kill.
  var kept: UInt64 = 0

  private let journal: ModelJournal
  private var held: [CheckedSnapshot] = []
  private var cursors: [HeldCursor] = []
  /// Snapshots of closed engines. Nothing reads them, but their late release must not harm the next
  /// engine's files.
  private var leftBehind: [Snapshot] = []
  /// The newest commit at the last possible flush of a memtable, in a roomy database.
  private var lastFlush: UInt64 = 0

  init(
    seed: UInt64, environment: Environment, path: String, _ journal: ModelJournal,
    simulated: SimulatedFileSystem?
  ) {
    self.seed = seed
    self.journal = journal
    self.environment = environment
    self.path = path
    self.simulated = simulated
    draw = ModelDraw(random: SeededRandom(seed: seed))
    options = EngineOptions.drawn(&draw.random)
    shardCount = options.shardCount
  }

  func run(_ operations: Int) async throws -> ModelSummary {
    var engine = try await open()
    for _ in 0..<operations {
      journal.begin()
      engine = try await step(engine)
    }
    journal.begin()
    try await finish(engine)
    return ModelSummary(
      seed: seed, operations: operations, commits: history.newest, points: points)
  }

  func hit(_ point: ModelPoint) { points[point, default: 0] += 1 }

  private func note(_ text: String) { journal.note(text) }

  private func open() async throws -> Engine {
    journal.opened(options.summary)
    return try await Engine.open(at: path, options: options, environment: environment)
  }

  // MARK: - Operations

  private func step(_ engine: Engine) async throws -> Engine {
    switch draw.random.below(100) {
    case 0..<38: try await commit(engine)
    case 38..<46: try await commitGuarded(engine)
    case 46..<56: try await together(engine)
    case 56..<64: try hold(engine)
    case 64..<72: try await readHeld()
    case 72..<82: try await readCurrent(engine)
    case 82..<86: try await flush(engine)
    case 86..<89: try await settle(engine)
    case 89..<92: try await synchronize(engine)
    case 92..<95: try look(engine)
    case 95..<98: return try await reopen(engine)
    default: return try await kill(engine)
    }
    return engine
  }

  private func commit(_ engine: Engine) async throws {
    let changes = draw.changes()
    let durability = draw.durability()
    let batch = Batch(changes)
    note("commit \(changes.count) for .\(durability), \(batch.payloadLength) bytes")
    let isTooLarge = batch.payloadLength > options.commitLimit
    switch await engine.attempt(batch, durability) {
    case .success(let receipt):
      guard !isTooLarge else { throw ModelFailure("a commit over the limit was accepted") }
      if changes.isEmpty { hit(.emptyCommit) }
      if batch.payloadLength > options.memtableSize { hit(.bigCommit) }
      try acknowledge(changes, receipt, durability)
      guard receipt.sequence.rawValue == history.newest else {
        throw ModelFailure("the commit is \(receipt.sequence), not \(history.newest)")
      }
    case .failure(.tooLarge) where isTooLarge: hit(.refusedAsTooLarge)
    case .failure(let error): throw error
    }
  }

  func acknowledge(
    _ changes: [DrawnChange], _ receipt: CommitReceipt, _ durability: Durability
  ) throws {
    try history.record(changes.map { $0.stamped(receipt) }, receipt)
    draw.known = history.keys
    if durability != .memory { kept = max(kept, receipt.sequence.rawValue) }
  }

  /// A batch with guards and a possibly old basis.
  private func commitGuarded(_ engine: Engine) async throws {
    let newest = history.newest
    let age = draw.random.chance(1, in: 3) ? 0 : UInt64(draw.random.below(8))
    let guarded = (0..<(1 + draw.random.below(3))).map { _ in
      draw.random.chance(7, in: 8) ? draw.metKey() : draw.newKey()
    }
    let changes = draw.changes().prefix(4).filter { ($0.value ?? []).count < 4 << 10 }
    var batch = Batch(changes)
    batch.basis = SequenceNumber(rawValue: newest - min(newest, age))
    for key in guarded { batch.guardUnchanged(key.bytes) }
    try await commit(batch, changes, guarded, engine)
  }

  private func commit(
    _ batch: Batch, _ changes: [DrawnChange], _ guarded: [[UInt8]], _ engine: Engine
  ) async throws {
    let basis = batch.basis?.rawValue ?? 0
    let isStale = guarded.contains { history.hasChange(of: $0, after: basis, before: .max) }
    note("commit \(changes.count), \(guarded.count) guarded since \(basis), stale: \(isStale)")
    switch await engine.attempt(batch, .process) {
    case .success(let receipt):
      guard !isStale else { throw ModelFailure("a stale batch was accepted") }
      hit(.guardedCommit)
      try acknowledge(changes, receipt, .process)
    case .failure(.stale):
      hit(isStale ? .refusedAsStale : .refusedCautiously)
      guard isStale || mayRefuse(guarded, basis, engine) else {
        throw ModelFailure("a batch whose rows have not changed was refused as stale")
      }
    case .failure(let error): throw error
    }
  }

  /// Whether a flush may have hidden which rows changed.
  private func mayRefuse(_ guarded: [[UInt8]], _ basis: UInt64, _ engine: Engine) -> Bool {
    let shards = Set(guarded.map { ModelDraw.shard(of: $0, count: shardCount) })
    let hasNews = history.hasChange(after: basis) {
      shards.contains(ModelDraw.shard(of: $0, count: shardCount))
    }
    return hasNews && !(options.isRoomy && basis >= lastFlush)
  }

  private func hold(_ engine: Engine) throws {
    let snapshot = try current(engine)
    note("hold a snapshot at \(snapshot.sequence)")
    held.append(snapshot)
    if draw.random.chance(1, in: 2) {
      let cursor = HeldCursor(snapshot.drawnCursor(history, &draw))
      try cursor.wander(4, &draw)
      cursors.append(cursor)
    }
    if held.count > 4 { held.remove(at: draw.random.below(held.count)) }
    if cursors.count > 3 { cursors.remove(at: draw.random.below(cursors.count)) }
  }

  private func readHeld() async throws {
    note("read held snapshots")
    for cursor in cursors {
      try cursor.wander(8, &draw)
      hit(.heldCursor)
    }
    guard !held.isEmpty else { return }
    try await read(draw.random.pick(held))
    hit(.heldSnapshot)
  }

  private func readCurrent(_ engine: Engine) async throws {
    note("read")
    let snapshot = try current(engine)
    try await read(snapshot)
    if draw.random.chance(1, in: 4) { try snapshot.checkAll(history) }
  }

  private func read(_ snapshot: CheckedSnapshot) async throws {
    try await snapshot.checkGets(20, history, &draw)
    try snapshot.checkScan(group: UInt32(draw.random.below(Int(ModelDraw.groups))), history)
    var cursor = snapshot.drawnCursor(history, &draw)
    try cursor.wander(16, &draw)
  }

  /// A snapshot, which must show everything acknowledged.
  private func current(_ engine: Engine) throws -> CheckedSnapshot {
    let snapshot = try engine.snapshot()
    guard snapshot.sequence.rawValue == history.newest else {
      throw ModelFailure("a snapshot is at \(snapshot.sequence), not at \(history.newest)")
    }
    return CheckedSnapshot(snapshot: snapshot, shardCount: shardCount)
  }

  // MARK: - Upkeep

  private func flush(_ engine: Engine) async throws {
    note("flush")
    try await engine.flush()
    noteFlush()
    hit(.flush)
    let rows = engine.metrics.shards.map(\.memtableRows).reduce(0, +)
    guard rows == 0 else { throw ModelFailure("\(rows) rows are in memory after a flush") }
  }

  private func settle(_ engine: Engine) async throws {
    note("settle")
    try await engine.compact()
    noteFlush()
    hit(.settle)
    guard engine.metrics.shards.allSatisfy({ $0.runs <= 1 && $0.memtableRows == 0 }) else {
      throw ModelFailure("after settling the shards are \(engine.metrics.shards)")
    }
  }

  private func synchronize(_ engine: Engine) async throws {
    note("synchronize")
    try await engine.synchronize()
    kept = history.newest
    hit(.synchronize)
  }

  private func noteFlush() {
    noteFlushAtOnce()
    kept = history.newest
  }

  /// Records that rows may have been flushed, up to an unknown commit.
  func noteFlushAtOnce() { lastFlush = history.newest }

  private func look(_ engine: Engine) throws {
    note("status")
    let status = engine.metrics
    hit(.status)
    guard status.sequence.rawValue == history.newest, status.shards.count == shardCount,
      status.cachedBytes >= 0
    else { throw ModelFailure("the status is \(status)") }
  }

  // MARK: - Opening again

  private func reopen(_ engine: Engine) async throws -> Engine {
    note("close and open")
    hit(.reopening)
    try await engine.close()
    noteFlush()
    for snapshot in held.prefix(1) {
      // Correct, as far as it is in memory; on a real disk, a file may be gone.
      do {
        try await read(snapshot)
      } catch EngineError.closed {}
      hit(.closedSnapshot)
    }
    return try await openAgain()
  }

  /// Ends the engine's life without asking it, and continues with its writes so far.
  private func kill(_ engine: Engine) async throws -> Engine {
    guard let files = simulated else { return try await reopen(engine) }
    note("kill and open")
    hit(.kill)
    let left = files.kill()
    try await engine.close()
    simulated = left
    environment.fileSystem = left
    return try await openAgain(mayLoseAfter: kept)
  }

  /// Reopens the database with other options and checks all of it.
  private func openAgain(mayLoseAfter kept: UInt64? = nil) async throws -> Engine {
    leftBehind = held.map(\.snapshot)
    held = []
    cursors = []
    options = EngineOptions.drawn(&draw.random)
    let engine = try await open()
    if draw.random.chance(1, in: 2) { leftBehind = [] }
    let found = try engine.snapshot().sequence.rawValue
    if let kept, found >= kept, found < history.newest {
      hit(.lostInKill)
      history.forget(after: found)
    }
    self.kept = found
    lastFlush = found
    try current(engine).checkAll(history)
    return engine
  }

  private func finish(_ engine: Engine) async throws {
    try current(engine).checkAll(history)
    for snapshot in held { try await read(snapshot) }
    let engine = try await reopen(engine)
    try await readCurrent(engine)
    try await engine.close()
    try history.checkOrder()
  }
}

extension Engine {
  /// Commits, and returns the error as a value.
  func attempt(
    _ batch: Batch, _ durability: Durability
  ) async -> Result<CommitReceipt, EngineError> {
    do throws(EngineError) {
      return .success(try await commit(batch, durability: durability))
    } catch {
      return .failure(error)
    }
  }
}

extension Batch {
  init(_ changes: some Sequence<DrawnChange>) {
    self.init()
    for change in changes {
      let keyStamps = [change.keyStamp].compactMap { $0 }
      if let value = change.value {
        put(
          change.key.bytes, value.bytes, stamps: [change.valueStamp].compactMap { $0 },
          keyStamps: keyStamps)
      } else {
        delete(change.key.bytes, keyStamps: keyStamps)
      }
    }
  }
}
