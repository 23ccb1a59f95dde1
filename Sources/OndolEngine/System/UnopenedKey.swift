// A key for who has none: it opens everything and shows nothing. What was sealed comes back as it
// is stored, without its tag, so that whatever reads files finds their units by it and compares
// their checksums, which are of what is stored. Nobody may believe anything else of the bytes.

/// Knows which files of a database are sealed, and with nothing what is in them.
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

/// Finds the units of a file that there is no key for.
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

/// Opens nothing: what a file is sealed with whose key is not here.
final class AbsentCipher: FileCipher {
  func seal(_ bytes: inout [UInt8], from start: Int, nonce: SealNonce, context: [UInt8]) {
    preconditionFailure("nothing is written without the key")
  }

  func open(
    _ sealed: RawSpan, nonce: SealNonce, context: [UInt8], appendingTo output: inout [UInt8]
  ) -> Bool { false }
}
