// Encrypted databases under power cuts, kills and failing disks. They keep the same promises as
// plain ones, and no nonce is used twice with a key, whatever was lost and repeated. One oracle
// watches all lives of a database, including those that begin from the same disk, because two
// copies of a directory must diverge.

import OndolEngine
import OndolTestKit
import Testing

@Suite struct `An encrypted database` {
  @Test(arguments: Seeds.first(1))
  func `keeps the engine's promises, and uses no nonce twice`(seed: UInt64) {
    let oracle = SealOracle()
    let test = CrashTest(seed: seed) { environment, options in
      try await EngineSubject.open(environment.watched(by: oracle), options)
    }
    let report = test.run(crashes: 700)
    #expect(report.violation == nil, "\(report)")
    #expect(oracle.repeated == nil, "SEED=\(seed): \(oracle.repeated ?? "")")
    #expect(oracle.count > 10_000)
  }

  @Test(arguments: Seeds.first(1))
  func `tells the truth when a disk fails, and uses no nonce twice`(seed: UInt64) {
    let oracle = SealOracle()
    let test = FaultTest(seed: seed) { environment, options in
      try await EngineSubject.open(environment.watched(by: oracle), options)
    }
    let report = test.run(faults: 150)
    #expect(report.violation == nil, "\(report)")
    #expect(oracle.repeated == nil, "SEED=\(seed): \(oracle.repeated ?? "")")
  }

  @Test(arguments: Seeds.first(1))
  func `keeps documents and blobs, and uses no nonce twice`(seed: UInt64) {
    let oracle = SealOracle()
    let documents = CrashTest(seed: seed) { environment, options in
      try await DocumentSubject.open(environment.watched(by: oracle), options)
    }
    var report = documents.run(crashes: 120)
    #expect(report.violation == nil, "\(report)")
    let blobs = CrashTest(seed: seed) { environment, options in
      try await BlobSubject.open(environment.watched(by: oracle), options)
    }
    report = blobs.run(crashes: 120)
    #expect(report.violation == nil, "\(report)")
    #expect(oracle.repeated == nil, "SEED=\(seed): \(oracle.repeated ?? "")")
  }

  /// The oracle works: it sees a repeated nonce.
  @Test func `has a witness that sees a repeated nonce`() throws {
    let oracle = SealOracle()
    let (key, _) = try oracle.makeKey(for: [UInt8](repeating: 1, count: 16))
    let nonce = SealNonce(place: 3, extra: 4)
    for file in [1, 2, 1] as [UInt8] {
      #expect(oracle.repeated == nil)
      var bytes: [UInt8] = [5, 6]
      key.cipher(for: [file]).seal(&bytes, from: 0, nonce: nonce, context: [])
    }
    #expect(oracle.repeated != nil)
  }
}

extension Environment {
  fileprivate func watched(by oracle: SealOracle) -> Environment {
    var environment = self
    environment.vault = oracle
    return environment
  }
}
