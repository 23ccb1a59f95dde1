// Which seeds a randomised test runs with: few by default, so that everybody runs them, and many
// where there is time. One seed alone repeats a failure.
//
//   ONDOL_LONG=1   eight times as many; `Scripts/test --long` sets it
//   ONDOL_FEW=1    an eighth of them; `Scripts/test --sanitize` sets it
//   ONDOL_SEED=N   this seed and no other

import Foundation

/// Seeds for parameterised tests.
package enum Seeds {
  private static let factor = 8

  /// The seeds from 1 to `count`, unless the environment says otherwise.
  package static func first(_ count: Int) -> [UInt64] {
    let environment = ProcessInfo.processInfo.environment
    if let seed = environment["ONDOL_SEED"].flatMap({ UInt64($0) }) { return [seed] }
    func isSet(_ name: String) -> Bool {
      environment[name].map { $0 != "0" && !$0.isEmpty } ?? false
    }
    if isSet("ONDOL_LONG") { return Array(1...UInt64(count * factor)) }
    if isSet("ONDOL_FEW") { return Array(1...UInt64(max(1, count / factor))) }
    return Array(1...UInt64(count))
  }
}
