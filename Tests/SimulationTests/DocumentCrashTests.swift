// Documents and indexes of every kind under power cuts, kills and failing disks: the crash tests of
// the engine, with the whole database as their subject.

import OndolTestKit
import Testing

private let openDocuments: OpenSubject = { environment, options in
  try await DocumentSubject.open(environment, options)
}

@Suite struct `A database of documents` {
  @Test(arguments: Seeds.first(2))
  func `keeps every promise when the power goes`(seed: UInt64) {
    let report = CrashTest(seed: seed, open: openDocuments).run(crashes: 300)
    #expect(report.violation == nil, "\(report)")
    #expect(report.points >= 60)
  }

  @Test(arguments: Seeds.first(1))
  func `tells the truth when a disk fails`(seed: UInt64) {
    let report = FaultTest(seed: seed, open: openDocuments).run(faults: 60)
    #expect(report.violation == nil, "\(report)")
  }
}
