// Which seeds a randomised test runs with: few by default, so that everybody runs them, and many
// where there is time. One seed alone repeats a failure.
//
//   ONDOL_LONG=1   eight times as many; `Scripts/test --long` sets it
//   ONDOL_SEED=N   this seed and no other

import Foundation

/// Seeds for parameterised tests.
package enum Seeds {
  private static let longFactor = 8

  /// The seeds from 1 to `count`, unless the environment says otherwise.
  package static func first(_ count: Int) -> [UInt64] {
    let environment = ProcessInfo.processInfo.environment
    if let seed = environment["ONDOL_SEED"].flatMap({ UInt64($0) }) { return [seed] }
    let isLong = environment["ONDOL_LONG"].map { $0 != "0" && !$0.isEmpty } ?? false
    return Array(1...UInt64(isLong ? count * longFactor : count))
  }
}
