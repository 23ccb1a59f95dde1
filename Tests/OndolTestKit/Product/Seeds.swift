// The seeds of a randomised test: few by default, so that everybody runs them, and many if there is
// time. One seed alone repeats a failure.
//
//   ONDOL_LONG=1   eight times as many; `Scripts/test --long` sets it
//   ONDOL_FEW=1    an eighth of them; `Scripts/test --sanitize` sets it
//   ONDOL_SEED=N   this seed and no other

internal import Foundation

/// Seeds for randomised tests.
///
/// With swift-testing each seed is a separate case, which a failure names:
///
/// ```swift
/// @Test(arguments: Seeds.first(100)) func survives(seed: UInt64) async throws { … }
/// ```
///
/// With XCTest, or inside one case, `forEach(_:_:)` prints the seed that failed. The environment
/// decides the number of seeds: `ONDOL_SEED=17` runs seed 17 alone, `ONDOL_LONG=1` eight times as
/// many as requested, `ONDOL_FEW=1` an eighth.
public enum Seeds {
  private static let factor = 8

  /// Returns the seeds from 1 to `count`, unless the environment says otherwise.
  public static func first(_ count: Int) -> [UInt64] {
    let environment = ProcessInfo.processInfo.environment
    if let seed = environment["ONDOL_SEED"].flatMap({ UInt64($0) }) { return [seed] }
    func isSet(_ name: String) -> Bool {
      environment[name].map { $0 != "0" && !$0.isEmpty } ?? false
    }
    if isSet("ONDOL_LONG") { return Array(1...UInt64(count * factor)) }
    if isSet("ONDOL_FEW") { return Array(1...UInt64(max(1, count / factor))) }
    return Array(1...UInt64(count))
  }

  /// Runs `body` with each of `first(count)`, one after another, until one throws. Then it prints
  /// the seed, and how to repeat it.
  ///
  /// - Parameters:
  ///   - count: the number of seeds, at least one.
  ///   - body: receives the seed.
  /// - Throws: the error of `body`.
  public static func forEach(
    _ count: Int, _ body: (UInt64) async throws -> Void
  ) async throws {
    for seed in first(count) {
      do {
        try await body(seed)
      } catch {
        print("seed \(seed) failed: \(error)\nONDOL_SEED=\(seed) runs it alone")
        throw error
      }
    }
  }
}
