// Stores that stay in use after one failure. The effect of a failed read or write on memory shows
// in later writes. Keys were once lost this way, a whole file of them, when an open took a failed
// read for an empty file.

import OndolEngine
import OndolTestKit
import Testing

@Suite struct `A store that is used on after a failure` {
  @Test(arguments: Seeds.first(1))
  func `loses no row of the engine`(seed: UInt64) {
    let test = GoOnTest(seed: seed) { try await EngineSubject.open($0, $1) }
    let report = test.run(faults: 300)
    #expect(report.violation == nil, "\(report)")
  }

  @Test(arguments: Seeds.first(1))
  func `loses no document`(seed: UInt64) {
    var test = GoOnTest(seed: seed) { try await DocumentSubject.open($0, $1) }
    test.faultsPerWorkload = 60
    let report = test.run(faults: 120)
    #expect(report.violation == nil, "\(report)")
  }

  @Test(arguments: Seeds.first(1))
  func `loses no content`(seed: UInt64) {
    var test = GoOnTest(seed: seed) { try await BlobSubject.open($0, $1) }
    test.faultsPerWorkload = 60
    let report = test.run(faults: 120)
    #expect(report.violation == nil, "\(report)")
  }

  @Test(arguments: Seeds.first(1))
  func `loses no key of a group, and erases what it claims to erase`(seed: UInt64) {
    var test = GoOnTest(seed: seed, open: KeyedSubject.opening())
    test.faultsPerWorkload = 200
    let report = test.run(faults: 400)
    #expect(report.violation == nil, "\(report)")
  }

  @Test(arguments: Seeds.first(1))
  func `loses nothing while keys are changed, and shows it all to a follower`(seed: UInt64) {
    var test = GoOnTest(seed: seed, open: KeyedSubject.openingToChangeKeys())
    test.faultsPerWorkload = 200
    let report = test.run(faults: 400)
    #expect(report.violation == nil, "\(report)")
  }
}
