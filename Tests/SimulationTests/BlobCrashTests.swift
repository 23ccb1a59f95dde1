// Blobs under power cuts and kills: no reference ever leads to missing bytes, nothing acknowledged
// is lost, and contents without a holder go. A disk that drops the syncs of contents shows that
// these tests can fail.

import Ondol
import OndolEngine
import OndolTestKit
import Testing

private let openBlobs: OpenSubject = { environment, options in
  try await BlobSubject.open(environment, options)
}

@Suite struct `A database of blobs` {
  @Test(arguments: Seeds.first(1))
  func `keeps every promise in a power cut`(seed: UInt64) {
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
