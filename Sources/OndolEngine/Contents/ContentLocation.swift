// Where the bytes of a content are. A row with this value makes a content stored. A tiny content is
// in the row itself, one of ordinary size shares a pack with others, and a large one has a file of
// its own. The row repeats what a reader needs to verify that it has the right bytes: the file's
// salt and, for a file that contains only the content, the checksums. Of a content that is
// elsewhere, such as on the server of a synchronised database, only the length is known.
//
//   01 inline   bytes up to the end
//   02 pack     number, salt (8), offset, length, bytes of the entry
//   03 file     number, salt (8), length, a checksum (4) for each frame
//   04 file     the same of a file that is sealed
//   05 parts    on a store: id (16), length, a checksum (4) for each frame
//   06 away     length
//
// Numbers without a size are varints.

/// A location in a pack.
package struct PackPlace: Sendable, Hashable {
  package var pack: FileNumber
  package var salt: UInt64
  /// The offset of the entry.
  package var offset: UInt64
  /// Bytes of the content.
  package var length: UInt32
  /// Bytes of the entry, without the padding after it.
  package var entryLength: UInt32
}

/// A file with one content.
package struct ContentFilePlace: Sendable, Hashable {
  package var file: FileNumber
  package var salt: UInt64
  /// Bytes of the content.
  package var length: UInt64
  /// One for each frame.
  package var checksums: [UInt32]
  /// Whether the file has a header and each frame is encrypted and followed by its tag.
  package var isSealed = false

  /// Bytes of the file.
  var storedLength: UInt64 {
    guard isSealed else { return length }
    let tags = UInt64(checksums.count * SealFormat.tagLength)
    return UInt64(DataFileHeader.length) + length + tags
  }

  /// The location of a frame in the file.
  static func stored(
    _ frame: Int, ofContent length: Int, isSealed: Bool
  ) -> Range<UInt64> {
    let range =
      isSealed
      ? ContentFrame.sealedRange(frame, ofContent: length)
      : ContentFrame.range(frame, ofContent: length)
    let start = UInt64(isSealed ? DataFileHeader.length : 0)
    return start + UInt64(range.lowerBound)..<start + UInt64(range.upperBound)
  }
}

/// Where a content's bytes are.
package enum ContentLocation: Sendable, Hashable {
  case inline([UInt8])
  case pack(PackPlace)
  case file(ContentFilePlace)
  case parts(ContentPartsPlace)
  /// Elsewhere, with this many bytes.
  case away(UInt64)

  /// The keyspace whose rows contain the locations. Each row's key is the content's digest.
  package static let keyspace: UInt32 = 1

  private enum Kind {
    static let inline: UInt8 = 1
    static let pack: UInt8 = 2
    static let file: UInt8 = 3
    static let sealedFile: UInt8 = 4
    static let parts: UInt8 = 5
    static let away: UInt8 = 6
  }

  /// Bytes of the content.
  package var length: UInt64 {
    switch self {
    case .inline(let bytes): UInt64(bytes.count)
    case .pack(let place): UInt64(place.length)
    case .file(let place): place.length
    case .parts(let place): place.length
    case .away(let length): length
    }
  }

  /// The most bytes of a content.
  package static let longest = ContentFrame.largestContent

  /// Whether the row of a location has no bytes here.
  package static func isAway(_ row: RawSpan) -> Bool {
    var reader = ByteReader(row)
    return (try? reader.byte()) == Kind.away
  }

  /// Whether its bytes are elsewhere.
  package var isAway: Bool {
    if case .away = self { true } else { false }
  }

  /// Whether a store has its bytes, separate from the rows.
  package var isInParts: Bool {
    if case .parts = self { true } else { false }
  }

  /// Bytes that it takes in a file, or outside the rows of a store; 0 if it is in its row.
  package var storedBytes: UInt64 {
    switch self {
    case .inline, .away: 0
    case .pack(let place): PackFormat.aligned(UInt64(place.entryLength))
    case .file(let place): place.storedLength
    case .parts(let place): place.length
    }
  }

  /// The row's value.
  package var bytes: [UInt8] {
    var bytes: [UInt8] = []
    switch self {
    case .inline(let content):
      bytes.reserveCapacity(content.count + 1)
      bytes.append(Kind.inline)
      bytes += content
    case .pack(let place):
      bytes.append(Kind.pack)
      bytes.appendVarint(place.pack.rawValue)
      bytes.appendLittleEndian(place.salt)
      bytes.appendVarint(place.offset)
      bytes.appendVarint(UInt64(place.length))
      bytes.appendVarint(UInt64(place.entryLength))
    case .file(let place):
      bytes.reserveCapacity(32 + place.checksums.count * 4)
      bytes.append(place.isSealed ? Kind.sealedFile : Kind.file)
      bytes.appendVarint(place.file.rawValue)
      bytes.appendLittleEndian(place.salt)
      bytes.appendVarint(place.length)
      for checksum in place.checksums { bytes.appendLittleEndian(checksum) }
    case .parts(let place):
      bytes.reserveCapacity(32 + place.checksums.count * 4)
      bytes.append(Kind.parts)
      bytes += place.id
      bytes.appendVarint(place.length)
      for checksum in place.checksums { bytes.appendLittleEndian(checksum) }
    case .away(let length):
      bytes.append(Kind.away)
      bytes.appendVarint(length)
    }
    return bytes
  }

  /// Reads a row's value. The lengths are then consistent with each other; the file is not
  /// examined.
  package init(_ bytes: RawSpan) throws(MalformedBytes) {
    var reader = ByteReader(bytes)
    switch try reader.byte() {
    case Kind.inline:
      self = .inline(try reader.take(reader.remaining).array)
    case Kind.pack:
      self = .pack(try PackPlace(&reader))
    case Kind.file:
      self = .file(try ContentFilePlace(&reader, isSealed: false))
    case Kind.sealedFile:
      self = .file(try ContentFilePlace(&reader, isSealed: true))
    case Kind.parts:
      self = .parts(try ContentPartsPlace(&reader))
    case Kind.away:
      self = .away(try reader.contentLength())
    case let kind:
      throw MalformedBytes(at: 0, "a content's location of kind \(kind)")
    }
    guard reader.isAtEnd else { throw MalformedBytes(at: reader.offset, "a location is too long") }
  }
}

extension ByteReader {
  /// The number of a file.
  @_lifetime(self: copy self)
  fileprivate mutating func fileNumber() throws(MalformedBytes) -> FileNumber {
    let start = offset
    let number = FileNumber(rawValue: try varint())
    guard number.rawValue <= Bounds.greatestCounter else {
      throw MalformedBytes(at: start, "a file with number \(number.rawValue)")
    }
    return number
  }
}

extension ByteReader {
  /// The length of a content.
  @_lifetime(self: copy self)
  fileprivate mutating func contentLength() throws(MalformedBytes) -> UInt64 {
    let start = offset
    let length = try varint()
    guard length <= ContentFrame.largestContent else {
      throw MalformedBytes(at: start, "a content of \(length) bytes")
    }
    return length
  }

  /// The length of a content and the checksums of its frames, up to the end.
  @_lifetime(self: copy self)
  fileprivate mutating func frames() throws(MalformedBytes) -> (UInt64, [UInt32]) {
    let start = offset
    let length = try contentLength()
    let frames = ContentFrame.count(ofContent: length)
    guard remaining == frames * 4 else {
      throw MalformedBytes(at: start, "\(remaining) bytes of checksums for \(frames) frames")
    }
    var checksums: [UInt32] = []
    checksums.reserveCapacity(frames)
    for _ in 0..<frames { checksums.append(try littleEndian()) }
    return (length, checksums)
  }
}

extension PackPlace {
  fileprivate init(_ reader: inout ByteReader) throws(MalformedBytes) {
    pack = try reader.fileNumber()
    salt = try reader.littleEndian()
    let start = reader.offset
    offset = try reader.varint()
    length = UInt32(try reader.count(atMost: PackFormat.largestContent))
    entryLength = UInt32(try reader.count(atMost: PackFormat.largestEntry))
    let least = PackFormat.leastEntry(ofContent: Int(length))
    guard offset >= UInt64(DataFileHeader.length), offset <= PackFormat.largestOffset,
      offset % PackFormat.alignment == 0, Int(entryLength) >= least
    else { throw MalformedBytes(at: start, "a place that no pack can have") }
  }
}

extension ContentFilePlace {
  fileprivate init(_ reader: inout ByteReader, isSealed: Bool) throws(MalformedBytes) {
    self.isSealed = isSealed
    file = try reader.fileNumber()
    salt = try reader.littleEndian()
    (length, checksums) = try reader.frames()
  }
}

extension ContentPartsPlace {
  fileprivate init(_ reader: inout ByteReader) throws(MalformedBytes) {
    id = try reader.take(ContentPart.idLength).array
    (length, checksums) = try reader.frames()
  }
}
