// The engine compared with an ordered map in memory, over random options and interleavings. A
// mismatch prints the seed, the options and the operation.

import Foundation
import OndolTestKit
import Testing

@Suite struct `The engine agrees with a model` {
  @Test(arguments: Seeds.first(60))
  func `whatever its options and however tasks interleave`(seed: UInt64) throws {
    _ = try ModelTrial.run(seed: seed)
  }

  @Test(arguments: Seeds.first(12))
  func `on real threads`(seed: UInt64) async throws {
    _ = try await ModelTrial.runOnThreads(seed: seed)
  }

  @Test(arguments: Seeds.first(3))
  func `on a real disk`(seed: UInt64) async throws {
    let directory = FileManager.default.temporaryDirectory
      .appendingPathComponent("ondol-model-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: directory) }
    _ = try await ModelTrial.runOnThreads(seed: seed, path: directory.path)
  }

  /// A few seeds, which everybody runs, together meet every point.
  @Test func `at every point worth seeing`() throws {
    var met: [ModelPoint: Int] = [:]
    for seed: UInt64 in 1...24 {
      met.merge(try ModelTrial.run(seed: seed).points, uniquingKeysWith: +)
    }
    #expect(Set(met.keys) == Set(ModelPoint.allCases), "never met: \(met)")
  }

  @Test func `the same way for the same seed`() throws {
    let summaries = try (0..<2).map { _ in try ModelTrial.run(seed: 3).description }
    #expect(summaries[0] == summaries[1])
  }
}
