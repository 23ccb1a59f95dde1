// The measure of what a log has in the place of a batch's operations on a keyed group: a batch must
// know its length in the log before anything is sealed. What the record is, is in GroupRecords.

/// A record of a keyed group in a commit.
enum GroupRecord {
  /// Its kind, where those of rows are `RowKind`.
  static let kind: UInt8 = 5

  /// Bytes of a nonce, so many bytes sealed, and their tag.
  static func sealedLength(of length: Int) -> Int {
    SealNonce.length + length + SealFormat.tagLength
  }

  /// Bytes that a record has more than what is sealed in it.
  static func overhead(of length: Int, in group: UInt32) -> Int {
    let sealed = sealedLength(of: length)
    return 1 + Varint.length(UInt64(group)) + Varint.length(UInt64(sealed)) + sealed - length
  }
}
