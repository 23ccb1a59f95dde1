// The key of one content that was put for a collection with a key of its own. It is in the
// reference, and so only in rows of that collection: anyone who can read the rows can read the
// content, and once the collection's key is erased, the content is unreadable.

/// The key that seals exactly one content. Its description does not reveal it.
package struct BlobKey: Sendable, Hashable {
  package static let length = Database.Encryption.keyLength

  package let bytes: [UInt8]

  /// - Returns: nil when there are not 32 bytes.
  package init?(bytes: some Collection<UInt8>) {
    guard bytes.count == Self.length else { return nil }
    self.bytes = Array(bytes)
  }

  /// A new random key.
  static func random() -> BlobKey {
    guard let key = BlobKey(bytes: DatabaseVault.randomBytes()) else {
      preconditionFailure("a key must have 32 bytes")
    }
    return key
  }

  /// The key with these 64 hexadecimal digits; nil when the text is anything else.
  package init?(hex text: String) {
    guard let bytes = [UInt8](hexadecimal: text) else { return nil }
    self.init(bytes: bytes)
  }

  /// The 64 hexadecimal digits, in lower case.
  package var hex: String { bytes.hexadecimal }
}

extension BlobKey: CustomStringConvertible, CustomReflectable {
  package var description: String { "a key" }
  package var customMirror: Mirror { Mirror(self, children: []) }
}
