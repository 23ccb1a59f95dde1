// The length of the record that replaces a batch's operations on a keyed group in a log: a batch
// must know its length in the log before anything is encrypted. GroupRecords describes the record
// itself.

/// A record of a keyed group in a commit.
enum GroupRecord {
  /// Its kind. The kinds of rows are in `RowKind`.
  static let kind: UInt8 = 5

  /// The length of a nonce, this many encrypted bytes, and their tag.
  static func sealedLength(of length: Int) -> Int {
    SealNonce.length + length + SealFormat.tagLength
  }

  /// The bytes that a record has in addition to its encrypted contents.
  static func overhead(of length: Int, in group: UInt32) -> Int {
    let sealed = sealedLength(of: length)
    return 1 + Varint.length(UInt64(group)) + Varint.length(UInt64(sealed)) + sealed - length
  }
}
