// The bytes of a segment file: one immutable sorted list of rows.
//
//   header 64 | data blocks | index blocks | sections | section table | footer 256
//
// A segment holds one version of a key and no sequence number for each row: a view is captured when
// all rows of its segments are published already, so readers never need to distinguish them.
//
// Integers are little-endian. `X(offset, bytes)` is the seeded checksum of `bytes` at `offset` with
// the file's salt (see Checksum). Reserved bytes are zero and checked.
//
// Header
//    0   8  magic 89 'O' 'D' 'S' 0D 0A 1A 0A       32  16  database identity
//    8   2  major version, 10  2  minor            48   4  shard, 52  4  reserved
//   12   4  reserved                               56   8  X(0, bytes 0..<56)
//   16   8  file number
//   24   8  salt
//
// A stored block: its bytes, perhaps compressed, then a trailer of 16
//    0   4  bytes before compression
//    4   1  codec: 0 none, 1 LZ4
//    5   1  kind, see BlockKind
//    6   2  reserved
//    8   8  X(offset of the block, stored bytes ++ trailer 0..<8)
//
// Index blocks have the layout of data blocks (see BlockLayout). A row's key is an upper bound of a
// block's keys, below all keys of the next block, and its value a handle: u64 offset, u32 stored
// length without the trailer, u32 rows. Index blocks point to data blocks. The section `indexTop`
// is one more such block, never compressed and without a trailer, that points to the index blocks.
// (The number of rows is in the handle because the reader puts data derived from the rows before
// the bytes, in one allocation.)
//
// Section table, for each section 32 bytes: u32 kind, u32 flags (bit 0: a reader that does not know
// the kind must refuse the file), u64 offset, u64 length, u64 X(offset, bytes).
//
// Footer
//    0   8  magic                            96   8  highest sequence
//    8   2  major, 10  2  minor             104   8  bytes of keys and values
//   12   4  256                             112   8  end of the last block
//   16   8  incompatible features           120   8  data blocks
//   24   8  compatible features             128   8  index blocks
//   32   8  file number                     136   8  section table: offset
//   40   8  salt                            144   4  sections
//   48  16  database identity               148   4  reserved
//   64   4  shard, 68  4  reserved          152   8  X(offset, section table)
//   72   8  rows                            160  88  reserved
//   80   8  tombstones                      248   8  X(footer's offset, bytes 0..<248)
//   88   8  lowest sequence
//
// Position, length, magic, version, incompatible features and the checksum of the footer stay the
// same in every later version, so that every reader can distinguish damage from a file it is too
// old for.

extension DataFileHeader.Kind {
  static let segment = Self(magic: [0x89, 0x4f, 0x44, 0x53, 0x0d, 0x0a, 0x1a, 0x0a])
}

/// Numbers of the format.
enum SegmentFormat {
  static let footerLength = 256
  static let sectionEntryLength = 32
  static let maximumSections = 64
  /// Bytes of an index block before compression.
  static let indexBlockSize = 8 << 10
}

/// A section's entry in the table.
struct SegmentSection: Equatable {
  enum Kind: UInt32 {
    case indexTop = 1
    case filter = 2
  }

  static let mustUnderstand: UInt32 = 1

  var kind: UInt32
  var flags: UInt32
  var offset: UInt64
  var length: UInt64
  var checksum: UInt64
}

/// A block's location.
struct BlockHandle: Equatable {
  var offset: UInt64
  /// Without the trailer.
  var storedLength: UInt32
  var rowCount: UInt32

  func append(to bytes: inout [UInt8]) {
    bytes.appendLittleEndian(offset)
    bytes.appendLittleEndian(storedLength)
    bytes.appendLittleEndian(rowCount)
  }
}

extension BlockHandle {
  init(_ bytes: RawSpan) throws(MalformedBytes) {
    var reader = ByteReader(bytes)
    offset = try reader.littleEndian()
    storedLength = try reader.littleEndian()
    rowCount = try reader.littleEndian()
    guard reader.isAtEnd else { throw MalformedBytes(at: 0, "a handle of another length") }
  }
}

/// The contents of the last 256 bytes.
struct SegmentFooter: Equatable {
  var compatibleFeatures: UInt64 = 0
  var number: FileNumber
  var salt: UInt64
  var identity: DatabaseIdentity
  var shard: UInt32
  var entries: UInt64
  var tombstones: UInt64
  var minSequence: SequenceNumber
  var maxSequence: SequenceNumber
  var rawBytes: UInt64
  var blocksEnd: UInt64
  var dataBlocks: UInt64
  var indexBlocks: UInt64
  var sectionTableOffset: UInt64
  var sectionCount: UInt32
  var sectionTableChecksum: UInt64
  /// Whether blocks and sections are sealed.
  var isSealed = false
  /// How pages of the filter are sealed: like other sections in files of older versions.
  var filterUnit = SealedUnit.filter

  /// A feature that readers must know: rows are unreadable without the key.
  static let encryption: UInt64 = 1
  /// Another one: pages of the filter are sealed as such.
  static let filterApart: UInt64 = 2

  func encode(at offset: UInt64) -> (bytes: [UInt8], checksum: UInt64) {
    let kind = DataFileHeader.Kind.segment
    var bytes = kind.magic
    bytes.appendLittleEndian(kind.major)
    bytes.appendLittleEndian(kind.minor)
    bytes.appendLittleEndian(UInt32(SegmentFormat.footerLength))
    bytes.appendLittleEndian(
      isSealed ? Self.encryption | (filterUnit == .filter ? Self.filterApart : 0) : 0)
    for field in [compatibleFeatures, number.rawValue, salt, identity.low, identity.high] {
      bytes.appendLittleEndian(field)
    }
    bytes.appendLittleEndian(shard)
    bytes.appendLittleEndian(UInt32(0))
    for field in [
      entries, tombstones, minSequence.rawValue, maxSequence.rawValue, rawBytes, blocksEnd,
      dataBlocks, indexBlocks, sectionTableOffset,
    ] {
      bytes.appendLittleEndian(field)
    }
    bytes.appendLittleEndian(sectionCount)
    bytes.appendLittleEndian(UInt32(0))
    bytes.appendLittleEndian(sectionTableChecksum)
    bytes.append(contentsOf: repeatElement(0, count: SegmentFormat.footerLength - 8 - bytes.count))
    let checksum = seededChecksum(contextSeed(salt: salt, offset: offset), bytes.bytes)
    bytes.appendLittleEndian(checksum)
    return (bytes, checksum)
  }
}
