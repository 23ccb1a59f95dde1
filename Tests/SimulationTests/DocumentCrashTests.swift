// Documents and indexes of every kind under power cuts, kills and failing disks: the crash tests of
// the engine, with the whole database as their subject. These tests can also fail: on a disk that
// drops syncs, with a subject that acknowledges early, and with a row that is removed without the
// database's knowledge.

import Ondol
import OndolEngine
import OndolTestKit
import Testing

private let openDocuments: OpenSubject = { environment, options in
  try await DocumentSubject.open(environment, options)
}

@Suite struct `A database of documents` {
  @Test(arguments: Seeds.first(1))
  func `keeps every promise in a power cut`(seed: UInt64) {
    let report = CrashTest(seed: seed, open: openDocuments).run(crashes: 300)
    #expect(report.violation == nil, "\(report)")
    #expect(report.points >= 60)
  }

  @Test(arguments: Seeds.first(1))
  func `finds nothing wrong with itself after a power cut`(seed: UInt64) {
    let test = CrashTest(seed: seed &+ 100) { environment, options in
      try await DocumentSubject.open(environment, options, verifies: true)
    }
    let report = test.run(crashes: 60)
    #expect(report.violation == nil, "\(report)")
  }

  /// With seed 3 a transaction's catalog once had to come from disk during its commit, and the app
  /// got that error.
  @Test(arguments: Seeds.first(3))
  func `tells the truth when a disk fails`(seed: UInt64) {
    let report = FaultTest(seed: seed, open: openDocuments).run(faults: 60)
    #expect(report.violation == nil, "\(report)")
  }

  /// Each sync is necessary. Two workloads show that for the log; the others need more.
  @Test(arguments: Sabotage.ofRows)
  func `is seen to lose data on a disk that lies`(sabotage: Sabotage) {
    let report = CrashTest(seed: 1, sabotage: sabotage, open: openDocuments).crashUntilBroken(5_000)
    #expect(report.violation != nil, "\(sabotage.rawValue) went unnoticed in \(report)")
  }

  @Test func `is seen to acknowledge early`() {
    let test = CrashTest(seed: 1) { environment, options in
      try await DocumentSubject.open(environment, options, mistake: .acknowledgesEarly)
    }
    #expect(test.crashUntilBroken(5_000).violation != nil)
  }
}

@Suite struct `The audit of a database` {
  /// Rows of documents and of indexes of every kind: the loss of any is noticed.
  @Test func `misses each row that is taken away`() throws {
    let fileSystem = SimulatedFileSystem()
    let whole = try RowRemoval.inSimulation(fileSystem, seed: 1) { environment in
      let subject = try await DocumentSubject.open(environment, RowRemoval.options)
      for number in 1...20 { try await subject.commitSample(number) }
      try await subject.settle()
      let contents = try await subject.contents()
      try await subject.close()
      return contents
    }
    let keys = try RowRemoval.inSimulation(fileSystem, seed: 1) { environment in
      // Without the accounts and the diary, which may be absent.
      try await RowRemoval.keys(environment) { key, _ in
        let text = String(decoding: key.dropFirst(4), as: UTF8.self)
        return !["entry", "follower", "a0", "a1", "a2"].contains { text.contains($0) }
      }
    }
    var random = SeededRandom(seed: 1)
    for _ in 0..<24 {
      let key = random.pick(keys)
      let copy = SimulatedFileSystem(storage: fileSystem.storage)
      try RowRemoval.inSimulation(copy, seed: 1) { environment in
        try await RowRemoval.remove(key, environment)
      }
      // Only the database's own check reads the catalog's mirror (keyspace 4096).
      let isMirrors = key.starts(with: [0, 0, 0x10, 0])
      let found = try? RowRemoval.inSimulation(copy, seed: 1) { environment in
        let subject = try await DocumentSubject.open(
          environment, RowRemoval.options, makesIndexes: false, verifies: isMirrors)
        return try await subject.contents()
      }
      let isNoticed = found?.rows != whole.rows || found?.sequence != whole.sequence
      #expect(isNoticed, "the row \(key) is gone and nobody noticed")
    }
  }
}
