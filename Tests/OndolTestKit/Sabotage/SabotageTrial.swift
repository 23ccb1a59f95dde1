// How soon the suites notice what was planted. A suite that finds nothing shows something only if
// it finds what is there: so promises are broken on purpose, one at a time, and the crashes,
// histories or rows until that is noticed are counted.

internal import Ondol
internal import OndolEngine

/// A promise that can be broken.
package enum PlantedFault: Sendable, Hashable {
  /// The disk swallows syncs of one kind.
  case swallowedSync(Sabotage)
  /// `.power` is acknowledged as early as `.process`.
  case acknowledgesEarly
  /// A task breaks the rules of transactions.
  case task(DocumentHistory.Mistake)

  package static let all: [PlantedFault] =
    Sabotage.allCases.map { .swallowedSync($0) } + [.acknowledgesEarly]
    + DocumentHistory.Mistake.allCases.map { .task($0) }

  package var name: String {
    switch self {
    case .swallowedSync(let sabotage): "\(sabotage.rawValue) is swallowed"
    case .acknowledgesEarly: "acknowledges early"
    case .task(.unguardedReads): "reads that nothing guards (write skew)"
    case .task(.unguardedQueries): "queries that nothing guards (write skew)"
    case .task(.staleSnapshots): "stale reads"
    case .task(.lostTransfers): "lost updates"
    }
  }

  /// What is counted, as in `crashes`.
  package var cases: String {
    if case .task = self { "histories" } else { "crashes" }
  }

  /// Cases until it is noticed; nil when it is not within `limit`.
  package func casesUntilNoticed(seed: UInt64, limit: Int) throws -> Int? {
    switch self {
    case .swallowedSync(let sabotage):
      let open: OpenSubject =
        switch sabotage {
        case .contentSync: { try await BlobSubject.open($0, $1) }
        default: { try await DocumentSubject.open($0, $1) }
        }
      return crash(CrashTest(seed: seed, sabotage: sabotage, open: open), limit)
    case .acknowledgesEarly:
      let test = CrashTest(seed: seed) { environment, options in
        try await DocumentSubject.open(environment, options, mistake: .acknowledgesEarly)
      }
      return crash(test, limit)
    case .task(let mistake):
      for number in 0..<limit
      where try HistoryTrial.runInOrder(
        seed: SeededRandom.derive(seed, number), mistake: mistake) != nil
      {
        return number + 1
      }
      return nil
    }
  }

  private func crash(_ test: CrashTest, _ limit: Int) -> Int? {
    let report = test.crashUntilBroken(limit)
    // The crash at which it was noticed is not in the count of those that were survived.
    return report.violation == nil ? nil : report.crashes + 1
  }
}

/// Rows taken away from a sound database, one at a time, and what `verify` says to that.
package struct LostRows: Sendable, CustomStringConvertible {
  package var rows = 0
  package var noticed = 0
  /// The keys of those that were not.
  package var missed: [[UInt8]] = []

  package var description: String { "\(noticed) of \(rows) rows that were taken away" }

  /// Takes away every row of the indexes of a database of twenty commits.
  package static func ofIndexes(seed: UInt64) throws -> LostRows {
    let fileSystem = SimulatedFileSystem()
    try inSimulation(fileSystem, seed) { environment in
      let subject = try await DocumentSubject.open(environment, roomy)
      for number in 1...20 {
        try await subject.commitSample(Int(truncatingIfNeeded: seed) &* 100 + number)
      }
      try await subject.settle()
      try await subject.close()
    }
    let keys = try inSimulation(fileSystem, seed) { environment in
      try await withEngine(environment, indexKeys)
    }
    var lost = LostRows()
    for key in keys {
      let copy = SimulatedFileSystem(storage: fileSystem.storage)
      let findings = try inSimulation(copy, seed) { environment in
        try await withEngine(environment) { engine in
          var batch = Batch()
          batch.delete(key.bytes)
          _ = try await engine.commit(batch, durability: .power)
        }
        return try await Database.verify(
          at: DocumentSubject.path, depth: .full, environment: environment)
      }
      lost.rows += 1
      if findings.contains(where: { $0.severity == .error }) {
        lost.noticed += 1
      } else {
        lost.missed.append(key)
      }
    }
    return lost
  }

  private static let roomy = SubjectOptions(
    shardCount: 2, memtableSize: 64 << 10, logSize: 64 << 10, manifestSize: 16 << 10,
    segmentSize: 1 << 20, blockSize: 1 << 10, deferredBytes: 100, runLimit: 2)

  private static func inSimulation<Success: Sendable>(
    _ fileSystem: SimulatedFileSystem, _ seed: UInt64,
    _ body: @escaping @Sendable (Environment) async throws -> Success
  ) throws -> Success {
    try SimulationExecutor.run(seed: seed) { executor in
      try await body(
        SimulatedWorld(fileSystem: fileSystem, seed: seed, threads: executor).environment)
    }
  }

  private static func withEngine<Success>(
    _ environment: Environment, _ body: (Engine) async throws -> Success
  ) async throws -> Success {
    let engine = try await Engine.open(
      at: DocumentSubject.path, options: EngineOptions(), environment: environment)
    let result = try await body(engine)
    try await engine.close()
    return result
  }

  /// The keys of rows that have no value, which are those of indexes.
  private static func indexKeys(of engine: Engine) throws -> [[UInt8]] {
    var keys: [[UInt8]] = []
    for family in 1..<8 as Range<UInt32> {
      var (lower, upper): ([UInt8], [UInt8]) = ([], [])
      lower.appendBigEndian(family << 12)
      upper.appendBigEndian((family + 1) << 12)
      var cursor = try engine.snapshot().cursor(from: lower, to: upper)
      try cursor.seekToFirst()
      while cursor.isValid {
        if try cursor.value.byteCount == 0 { keys.append(cursor.key.array) }
        try cursor.next()
      }
    }
    return keys
  }
}
