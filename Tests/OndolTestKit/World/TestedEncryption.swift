// Whether the suites' databases are encrypted, as ONDOL_SEALED says. What people see of a database
// is the same either way, so the tests are.

internal import Foundation
internal import Ondol
package import OndolEngine

/// How the suites keep their databases.
package enum TestedEncryption {
  /// A key for tests.
  package static let key: [UInt8] = (0..<32).map { 0xA1 ^ ($0 &* 7) }

  /// Whether databases are encrypted that do not say so themselves.
  package static let isOn = ProcessInfo.processInfo.environment["ONDOL_SEALED"] != nil

  /// What opens and makes their keys; nil where they are in the clear.
  package static var vault: (any Vault)? { isOn ? DatabaseVault(.key(key)) : nil }
}

extension Environment {
  /// Files that live and die with the process, encrypted where the suites' are.
  package static func tested() -> Environment {
    var environment = memory()
    environment.vault = TestedEncryption.vault
    return environment
  }
}
