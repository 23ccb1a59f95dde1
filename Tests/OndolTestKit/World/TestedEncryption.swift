// Whether the suites' databases are encrypted, from ONDOL_SEALED. A database looks the same to its
// users either way, so the tests are the same.

internal import Foundation
internal import Ondol
package import OndolEngine

/// How the suites store their databases.
package enum TestedEncryption {
  /// A key for tests.
  package static let key: [UInt8] = (0..<32).map { 0xA1 ^ ($0 &* 7) }

  /// Whether databases are encrypted unless they say otherwise.
  package static let isOn = ProcessInfo.processInfo.environment["ONDOL_SEALED"] != nil

  /// Opens and creates their keys; nil for plain files.
  package static var vault: (any Vault)? { isOn ? DatabaseVault(.key(key)) : nil }
}

extension Environment {
  /// Files that live as long as the process, encrypted if the suites' are.
  package static func tested() -> Environment {
    var environment = memory()
    environment.vault = TestedEncryption.vault
    return environment
  }
}
