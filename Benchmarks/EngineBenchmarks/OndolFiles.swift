// Ondol twice: with its files in the clear, and with a key.

import Ondol
import OndolEngine

/// What tells a database in the clear from an encrypted one.
protocol OndolFiles: SendableMetatype {
  static var name: String { get }
  static var settings: String { get }
  static var environment: Environment { get }
}

enum ClearFiles: OndolFiles {
  static let name = "Ondol"
  static let settings =
    "defaults but for the cache; LZ4, every block's checksum verified when it is loaded; "
    + ".process: written by the caller, .power: synced; settled into one run before reads; "
    + "snapshot per get and seek"
  static var environment: Environment { .live() }
}

enum SealedFiles: OndolFiles {
  static let name = "Ondol sealed"
  static let settings = "as Ondol, with a key: AES-256-GCM"
  static var environment: Environment {
    .live().opening(with: .key(repeatElement(0x5A, count: Database.Encryption.keyLength)))
  }
}
