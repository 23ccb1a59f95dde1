// A sample of the damages that `ondol-stress hostile` tries completely.

import OndolTestKit
import Testing

@Suite struct `Damaged files` {
  @Test(arguments: Seeds.first(1))
  func `are refused or answer rightly, and never trap`(seed: UInt64) throws {
    let test = try HostileTest(seed: seed)
    let count = 250
    let stride = test.count / count
    let report = test.run((0..<count).map { $0 * stride + Int(seed) % stride })
    #expect(report.violation == nil, "SEED=\(seed): \(report)")
    #expect(report.refused > count / 10, "\(report)")
    #expect(report.cases == count)
  }
}
