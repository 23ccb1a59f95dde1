// The bytes of a block before compression: columns, because similar data side by side compresses
// well, and because searching keys then does not touch values.
//
//    0  u32  rows, 1...65,536
//    4  u8   layout version, 1
//    5  u8   flags: bit 0, there is a column of kinds (otherwise every row is a put)
//    6  u8   width of a key length: 1, 2 or 4 bytes
//    7  u8   width of a value length: 1, 2 or 4 bytes
//    8  u32  length of the prefix that all keys share
//   12  u32  bytes of all keys without the prefix
//   16       the prefix
//            key lengths without the prefix, one for each row
//            value lengths, one for each row
//            kinds, one byte for each row, when flagged
//            keys without the prefix, in ascending order
//            values, up to the end of the block
//
// Offsets of rows and the first bytes of keys as numbers, which make searching fast, are not
// stored: they do not compress, and one pass over the lengths derives them when the block is loaded
// (see Block).

/// The kind of a block's rows.
enum BlockKind: UInt8, Sendable {
  /// Keys and their values.
  case data = 1
  /// Upper bounds of data blocks' keys, and the locations of these blocks.
  case index = 2
}

/// Numbers of the block's layout.
enum BlockLayout {
  static let version: UInt8 = 1
  static let headerLength = 16
  static let kindsFlag: UInt8 = 1
  /// The most rows in a block; bounds the allocation for a hostile one.
  static let maximumRows = 1 << 16
  /// The most bytes of a block before compression: the largest row, plus some for the rest.
  static let maximumRawLength = (64 << 20) + 4096
  /// The most bytes of a row's key and value together.
  static let maximumRowLength = 64 << 20

  /// The narrowest width that holds `length`.
  static func width(for length: Int) -> UInt8 {
    length <= 0xff ? 1 : length <= 0xffff ? 2 : 4
  }
}
