// Blobs under power cuts and kills: no reference ever leads to bytes that are not there, nothing
// that was acknowledged is lost, and what nobody holds goes. That these tests can fail is seen on a
// disk that swallows the syncs of contents.

import Ondol
import OndolEngine
import OndolTestKit
import Testing

private let openBlobs: OpenSubject = { environment, options in
  try await BlobSubject.open(environment, options)
}

@Suite struct `A database of blobs` {
  @Test(arguments: Seeds.first(1))
  func `keeps every promise when the power goes`(seed: UInt64) {
    let report = CrashTest(seed: seed, open: openBlobs).run(crashes: 300)
    #expect(report.violation == nil, "\(report)")
    #expect(report.points >= 60)
  }

  @Test(arguments: Seeds.first(1))
  func `tells the truth when a disk fails`(seed: UInt64) {
    let report = FaultTest(seed: seed, open: openBlobs).run(faults: 60)
    #expect(report.violation == nil, "\(report)")
  }

  /// Bytes are synced before the commit that names them.
  @Test func `is seen to lose data on a disk that lies`() {
    let test = CrashTest(seed: 1, sabotage: .contentSync, open: openBlobs)
    let report = test.crashUntilBroken(5_000)
    #expect(report.violation != nil, "it went unnoticed in \(report)")
  }
}
