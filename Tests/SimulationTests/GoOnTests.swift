// Stores that are used on after something has failed once. What a failed read or write leaves in
// memory shows in what is written later: keys were lost so, a whole file of them, in an opening
// that took a failed read for a file that says nothing.

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
  func `loses no key of a group, and erases what it says it erases`(seed: UInt64) {
    var test = GoOnTest(seed: seed, open: KeyedSubject.opening())
    test.faultsPerWorkload = 200
    let report = test.run(faults: 400)
    #expect(report.violation == nil, "\(report)")
  }

  @Test(arguments: Seeds.first(1))
  func `loses nothing while keys are changed, and shows it all to who follows`(seed: UInt64) {
    var test = GoOnTest(seed: seed, open: KeyedSubject.openingToChangeKeys())
    test.faultsPerWorkload = 200
    let report = test.run(faults: 400)
    #expect(report.violation == nil, "\(report)")
  }
}
