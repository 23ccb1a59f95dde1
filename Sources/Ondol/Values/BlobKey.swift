// The key of one content that was put for a collection with a key of its own. It stands in the
// reference, and so in rows of that collection and nowhere else: whoever can read the rows can read
// the content, and once the collection's key is erased nobody can.

/// The key under which one content is sealed, and no other. Texts about it do not tell it.
package struct BlobKey: Sendable, Hashable {
  package static let length = Database.Encryption.keyLength

  package let bytes: [UInt8]

  /// - Returns: nil when there are not 32 bytes.
  package init?(bytes: some Collection<UInt8>) {
    guard bytes.count == Self.length else { return nil }
    self.bytes = Array(bytes)
  }

  /// A key that nobody knows.
  static func random() -> BlobKey {
    guard let key = BlobKey(bytes: DatabaseVault.randomBytes()) else {
      preconditionFailure("a key has 32 bytes")
    }
    return key
  }

  /// The key that 64 hexadecimal digits spell; nil when the text is anything else.
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
