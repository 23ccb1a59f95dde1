// Databases that are encrypted, decrypted and moved to other keys during use, under power cuts and
// kills before any operation. They keep the usual promises for every later open, and no nonce is
// used twice with a key.

import Ondol
import OndolEngine
import OndolTestKit
import Testing

@Suite struct `A database whose keys change` {
  private static func oracle() -> SealOracle {
    SealOracle(keys: [TestedEncryption.key, [UInt8](repeating: 9, count: 32)])
  }

  @Test(arguments: Seeds.first(2))
  func `keeps the engine's promises, and uses no nonce twice`(seed: UInt64) {
    let oracle = Self.oracle()
    let test = CrashTest(seed: seed) { environment, options in
      let base = try await RekeyedSubject.open(environment, oracle) { environment in
        try await EngineSubject.open(environment, options)
      }
      return RekeyedSubject(base, base.engine, oracle, seed: environment.random())
    }
    let report = test.run(crashes: 900)
    #expect(report.violation == nil, "\(report)")
    #expect(oracle.repeated == nil, "SEED=\(seed): \(oracle.repeated ?? "")")
    #expect(oracle.count > 5_000)
  }

  @Test(arguments: Seeds.first(1))
  func `keeps documents and their changes`(seed: UInt64) {
    Self.test(seed, { try await DocumentSubject.open($0, $1) }, { $0.database })
  }

  @Test(arguments: Seeds.first(1))
  func `keeps blobs`(seed: UInt64) {
    Self.test(seed, { try await BlobSubject.open($0, $1) }, { $0.database })
  }

  /// Crashes a database that resumes a change of keys when it is reopened.
  private static func test<Subject: CrashSubject>(
    _ seed: UInt64,
    _ open: @escaping @Sendable (Environment, SubjectOptions) async throws -> Subject,
    _ database: @escaping @Sendable (Subject) -> Database
  ) {
    let oracle = oracle()
    let test = CrashTest(seed: seed) { environment, options in
      let base = try await RekeyedSubject.open(environment, oracle) { environment in
        try await open(environment, options)
      }
      let database = database(base)
      return RekeyedSubject(
        base, database.engine, oracle, seed: environment.random(),
        goOn: { try await database.goOnChangingKeys() })
    }
    let report = test.run(crashes: 150)
    #expect(report.violation == nil, "\(report)")
    #expect(oracle.repeated == nil, "SEED=\(seed): \(oracle.repeated ?? "")")
  }
}
