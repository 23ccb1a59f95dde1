// A key for a process without one. It accepts everything and reveals nothing. Encrypted data is
// returned in its stored form without its tag, so that file readers can find the units and verify
// their checksums, which cover the stored bytes. The bytes must not be used in any other way.

/// Knows which files of a database are encrypted, and nothing about their contents.
final class UnopenedKey: MasterKey {
  func cipher(for context: [UInt8]) -> any FileCipher { UnopenedCipher() }

  var secret: [UInt8] { [] }

  func proof(of bytes: [UInt8]) -> [UInt8] { [] }

  func wrap(_ other: any MasterKey, for identity: [UInt8]) -> [UInt8] {
    preconditionFailure("nothing is written without the key")
  }

  func unwrap(_ wrapped: [UInt8], for identity: [UInt8]) -> (any MasterKey)? { self }

  func makeOther() -> any MasterKey {
    preconditionFailure("nothing is written without the key")
  }
}

/// Finds the units of a file without an available key.
final class UnopenedCipher: FileCipher {
  func seal(_ bytes: inout [UInt8], from start: Int, nonce: SealNonce, context: [UInt8]) {
    preconditionFailure("nothing is written without the key")
  }

  func open(
    _ sealed: RawSpan, nonce: SealNonce, context: [UInt8], appendingTo output: inout [UInt8]
  ) -> Bool {
    output.append(sealed.extracting(droppingLast: SealFormat.tagLength))
    return true
  }
}

/// Decrypts nothing: the cipher of a file whose key is missing.
final class AbsentCipher: FileCipher {
  func seal(_ bytes: inout [UInt8], from start: Int, nonce: SealNonce, context: [UInt8]) {
    preconditionFailure("nothing is written without the key")
  }

  func open(
    _ sealed: RawSpan, nonce: SealNonce, context: [UInt8], appendingTo output: inout [UInt8]
  ) -> Bool { false }
}
