// How soon the suites notice a planted fault. A suite that finds nothing means something only if it
// finds existing faults. So promises are broken on purpose, one at a time, and the trial counts the
// crashes, histories or rows until a suite notices.

internal import Ondol
internal import OndolEngine

/// A promise that can be broken.
package enum PlantedFault: Sendable, Hashable {
  /// The disk drops syncs of one kind.
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

  /// The noun of the cases, as in `crashes`.
  package var cases: String {
    if case .task = self { "histories" } else { "crashes" }
  }

  /// Returns the number of cases until it is noticed; nil if it is not noticed within `limit`.
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
    // The crash that noticed it is not in the count of those that were survived.
    return report.violation == nil ? nil : report.crashes + 1
  }
}

/// The rows removed from a sound database, one at a time, and the result of `verify`.
package struct LostRows: Sendable, CustomStringConvertible {
  package var rows = 0
  package var noticed = 0
  /// The keys of the missed ones.
  package var missed: [[UInt8]] = []

  package var description: String { "\(noticed) of \(rows) rows that were taken away" }

  /// Removes every row of the indexes of a database of twenty commits.
  package static func ofIndexes(seed: UInt64) throws -> LostRows {
    let fileSystem = SimulatedFileSystem()
    try RowRemoval.inSimulation(fileSystem, seed: seed) { environment in
      let subject = try await DocumentSubject.open(environment, RowRemoval.options)
      for number in 1...20 {
        try await subject.commitSample(Int(truncatingIfNeeded: seed) &* 100 + number)
      }
      try await subject.settle()
      try await subject.close()
    }
    let keys = try RowRemoval.inSimulation(fileSystem, seed: seed) { environment in
      // Rows without a value belong to indexes.
      try await RowRemoval.keys(environment) { _, valueLength in valueLength == 0 }
    }
    var lost = LostRows()
    for key in keys {
      let copy = SimulatedFileSystem(storage: fileSystem.storage)
      let findings = try RowRemoval.inSimulation(copy, seed: seed) { environment in
        try await RowRemoval.remove(key, environment)
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
}
