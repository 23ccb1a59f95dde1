// Ondol three times: with plain files, with a key, and with rows under a key of their own.

import Ondol
import OndolEngine
import Peers

/// The difference between a plain and an encrypted database.
protocol OndolFiles: SendableMetatype {
  static var name: String { get }
  static var settings: String { get }
  static var environment: Environment { get }
  /// Whether rows belong to a group with a key of its own.
  static var areKeyed: Bool { get }
}

extension OndolFiles {
  static var areKeyed: Bool { false }

  /// The beginning of the rows' keys.
  static var keyspace: [UInt8] { areKeyed ? [0x80, 0, 0, 0] : KeyList.keyspace }
  /// The end of the keyspace.
  static var nextKeyspace: [UInt8] { areKeyed ? [0x80, 0, 0, 1] : KeyList.nextKeyspace }
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

enum KeyedFiles: OndolFiles {
  static let name = "Ondol own key"
  static let settings =
    "as Ondol sealed, all rows in a group with a key of its own; rows' keys are put into its "
    + "keyspace while the time runs, some 5 ns each"
  static var environment: Environment { SealedFiles.environment }
  static let areKeyed = true
}
