// Databases with keyed groups under power cuts, kills, failing disks and changes of keys. They keep
// the usual promises, no nonce is used twice with a key, and a dropped group leaves no key in the
// file of keys.

import OndolEngine
import OndolTestKit
import Testing

@Suite struct `A database with keyed groups` {
  @Test(arguments: Seeds.first(2))
  func `keeps the engine's promises, and uses no nonce twice`(seed: UInt64) {
    let oracle = SealOracle()
    let test = CrashTest(seed: seed) { environment, options in
      var environment = environment
      environment.vault = oracle
      return try await KeyedSubject.open(environment, options)
    }
    let report = test.run(crashes: 600)
    #expect(report.violation == nil, "\(report)")
    #expect(oracle.repeated == nil, "SEED=\(seed): \(oracle.repeated ?? "")")
    #expect(oracle.count > 2_000)
  }

  @Test(arguments: Seeds.first(1))
  func `tells the truth when a disk fails, and uses no nonce twice`(seed: UInt64) {
    let oracle = SealOracle()
    let test = FaultTest(seed: seed) { environment, options in
      var environment = environment
      environment.vault = oracle
      return try await KeyedSubject.open(environment, options)
    }
    let report = test.run(faults: 150)
    #expect(report.violation == nil, "\(report)")
    #expect(oracle.repeated == nil, "SEED=\(seed): \(oracle.repeated ?? "")")
  }

  @Test(arguments: Seeds.first(2))
  func `moves to other keys, and keeps its promises`(seed: UInt64) {
    let oracle = SealOracle(keys: [TestedEncryption.key, [UInt8](repeating: 9, count: 32)])
    let test = CrashTest(seed: seed) { environment, options in
      var environment = environment
      environment.vault = oracle
      let base = try await KeyedSubject.open(environment, options)
      return RekeyedSubject(
        base, base.engine, oracle, seed: environment.random(), staysSealed: true)
    }
    let report = test.run(crashes: 600)
    #expect(report.violation == nil, "\(report)")
    #expect(oracle.repeated == nil, "SEED=\(seed): \(oracle.repeated ?? "")")
  }
}
