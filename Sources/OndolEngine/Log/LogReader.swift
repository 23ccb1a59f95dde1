// Reads frames. The reader trusts nothing: a frame counts only when its header's checksum, which
// covers the file and the offset, and its payload's checksum are both correct.

/// Steps through the frames of one file in memory, or of a part of it.
struct FrameReader {
  let bytes: [UInt8]
  let salt: UInt64
  /// The seal of payloads; nil when they are not encrypted.
  let seal: FileSeal?
  /// The position of a sound frame that was not sealed with the file's key, once one was met. No
  /// power cut causes that.
  private(set) var forgery: Int?
  /// Where the bytes begin in the file: at a multiple of eight.
  let start: UInt64
  /// The position in the bytes of the next frame, or of the first unreadable one.
  private(set) var offset: Int

  init(
    _ bytes: [UInt8], salt: UInt64, from offset: Int, start: UInt64 = 0, seal: FileSeal? = nil
  ) {
    self.bytes = bytes
    self.salt = salt
    self.seal = seal
    self.start = start
    self.offset = offset
  }

  /// The file position of `place` in the bytes.
  func fileOffset(of place: Int) -> UInt64 { start + UInt64(place) }

  /// A sound frame.
  struct Frame {
    var header: FrameHeader
    var offset: Int
    /// The position of the payload in the reader's bytes, or in `opened`.
    var payload: Range<Int>
    /// The decrypted payload, if it was sealed.
    var opened: [UInt8]?
  }

  /// The decrypted payload of a frame.
  func payload(of frame: Frame) -> ArraySlice<UInt8> { (frame.opened ?? bytes)[frame.payload] }

  /// The frame at `offset`; nil when none is sound there, and then `offset` stays.
  mutating func next() -> Frame? {
    guard let frame = frame(at: offset) else { return nil }
    offset = frame.offset + frame.header.frameLength
    return frame
  }

  /// Whether more bytes of the file might make the next frame sound.
  var mayEndBeyondBytes: Bool {
    guard let header = header(at: offset) else {
      return bytes.count - offset < FrameHeader.length
    }
    return header.payloadLength > bytes.count - offset - FrameHeader.length
  }

  private func header(at place: Int) -> FrameHeader? {
    guard place <= bytes.count else { return nil }
    return FrameHeader.read(
      bytes.bytes.extracting(droppingFirst: place), salt: salt, offset: fileOffset(of: place),
      isSealed: seal != nil)
  }

  private mutating func frame(at place: Int) -> Frame? {
    guard let header = header(at: place) else { return nil }
    let start = place + FrameHeader.length
    guard header.payloadLength <= bytes.count - start else { return nil }
    let payload = start..<(start + header.payloadLength)
    guard crc32c(bytes.bytes.extracting(payload)) == header.payloadChecksum else { return nil }
    guard let seal, header.isSealed else {
      return Frame(header: header, offset: place, payload: payload)
    }
    guard let opened = open(payload, header, at: place, by: seal) else {
      forgery = place
      return nil
    }
    return Frame(header: header, offset: place, payload: 0..<opened.count, opened: opened)
  }

  private func open(
    _ payload: Range<Int>, _ header: FrameHeader, at place: Int, by seal: FileSeal
  ) -> [UInt8]? {
    let all = bytes.bytes
    return header.open(
      all.extracting(payload), header: all.extracting(droppingFirst: place), by: seal,
      offset: fileOffset(of: place))
  }

  /// Throws when a sound frame was met that was not sealed with the file's key.
  func refuseForgery() throws(MalformedBytes) {
    guard let forgery else { return }
    throw MalformedBytes(at: Int(fileOffset(of: forgery)), FileSeal.forged.reason)
  }

  /// The same, concerning the file called `name`.
  func refuseForgery(in name: String) throws(EngineError) {
    do throws(MalformedBytes) {
      try refuseForgery()
    } catch {
      throw EngineError(error, in: name)
    }
  }

  /// The position that the log's mark vouches for; nil when there is no mark, or the log's first
  /// page is not among the bytes.
  var mark: LogPosition? {
    let place = Int(LogHeader.markOffset)
    guard start == 0, let header = header(at: place), header.kind == .mark else { return nil }
    return header.syncedThrough
  }

  private static let blankPiece = 4096

  /// The furthest position that any sound header after `offset` vouches for. Payloads are not read:
  /// the header's own checksum covers the claim.
  func furthestClaim() -> LogPosition? {
    var furthest: LogPosition?
    var place = (offset + 7) & ~7
    let all = bytes.bytes
    while place + FrameHeader.length <= bytes.count {
      // Prewritten, unused space has no headers.
      if place % Self.blankPiece == 0, place + Self.blankPiece <= bytes.count,
        all.extracting(place..<(place + Self.blankPiece)).isZero
      {
        place += Self.blankPiece
        continue
      }
      // Kind, flags and version are zero in blank space: a cheap check before the checksum.
      if all.byte(at: place + 4) != 0, all.byte(at: place + 6) == UInt8(FrameHeader.version),
        let header = FrameHeader.read(
          all.extracting(droppingFirst: place), salt: salt, offset: fileOffset(of: place),
          isSealed: nil)
      {
        furthest = max(furthest ?? .zero, header.syncedThrough)
      }
      place += 8
    }
    return furthest
  }

  /// Whether nothing but zeros follows.
  func isBlankFromHere() -> Bool {
    bytes.bytes.extracting(droppingFirst: min(offset, bytes.count)).isZero
  }
}

/// The frames at the beginning of a log whose header and salt are unknown, in a database written by
/// an older version. A frame counts when its payload has the checksum that it gives; rows are never
/// read from such frames.
struct UnsaltedFrames {
  /// The furthest position that one of them vouches for.
  private(set) var furthestClaim: LogPosition?

  init(_ bytes: [UInt8], from start: Int) {
    var place = start
    let all = bytes.bytes
    while place <= bytes.count,
      let header = FrameHeader.read(
        all.extracting(droppingFirst: place), salt: nil, offset: UInt64(place), isSealed: nil),
      header.payloadLength <= bytes.count - place - FrameHeader.length,
      crc32c(
        all.extracting(droppingFirst: place + FrameHeader.length)
          .extracting(first: header.payloadLength)) == header.payloadChecksum
    {
      furthestClaim = max(furthestClaim ?? .zero, header.syncedThrough)
      place += header.frameLength
    }
  }
}

extension RawSpan {
  /// Whether all bytes are zero: the first one is, and each equals the previous one.
  var isZero: Bool {
    byteCount == 0
      || byte(at: 0) == 0
        && extracting(droppingLast: 1).compare(extracting(droppingFirst: 1)) == 0
  }
}

/// One row of a commit's payload, borrowed.
struct Operation: ~Escapable {
  let kind: RowKind
  let key: RawSpan
  let value: RawSpan

  @_lifetime(copy key, copy value)
  init(kind: RowKind, key: RawSpan, value: RawSpan) {
    self.kind = kind
    self.key = key
    self.value = value
  }
}

/// Steps through the operations of a payload, past annotations and past records of keyed groups,
/// which remain when their keys are missing.
struct OperationReader: ~Escapable {
  private var reader: ByteReader
  /// The positions of the annotations that were skipped.
  private(set) var annotations: [Range<Int>] = []

  @_lifetime(copy payload)
  init(_ payload: RawSpan) {
    reader = ByteReader(payload)
  }

  /// The next operation, or nil at the end.
  @_lifetime(self: copy self)
  @_lifetime(copy self)
  mutating func next() throws(MalformedBytes) -> Operation? {
    while !reader.isAtEnd {
      let start = reader.offset
      let first = try reader.byte()
      guard let kind = RowKind(rawValue: first), kind != .valuePointer else {
        try pass(first, from: start)
        continue
      }
      let key = try reader.lengthPrefixed()
      guard key.byteCount >= Batch.keyspaceLength else {
        throw MalformedBytes(at: start, "a key without a keyspace")
      }
      let value = kind == .put ? try reader.lengthPrefixed() : key.extracting(first: 0)
      return Operation(kind: kind, key: key, value: value)
    }
    return nil
  }

  /// Skips an item that is not an operation.
  @_lifetime(self: copy self)
  private mutating func pass(_ kind: UInt8, from start: Int) throws(MalformedBytes) {
    switch kind {
    case Batch.annotationKind: break
    case Batch.groupAnnotationKind, GroupRecord.kind: _ = try group(from: start)
    default: throw MalformedBytes(at: start, "an unknown operation")
    }
    let length = try reader.lengthPrefixed().byteCount
    guard kind != GroupRecord.kind else { return }
    if kind == Batch.annotationKind {
      guard !hasAnnotation else { throw MalformedBytes(at: start, "a second annotation") }
      hasAnnotation = true
    }
    annotations.append((reader.offset - length)..<reader.offset)
  }

  private var hasAnnotation = false

  @_lifetime(self: copy self)
  private mutating func group(from start: Int) throws(MalformedBytes) -> UInt32 {
    let group = UInt32(try reader.count(atMost: Int(UInt32.max)))
    guard KeyedGroups.numbers.contains(group) else {
      throw MalformedBytes(at: start, "a group \(group) that there cannot be")
    }
    return group
  }

  /// An item of a payload in its stored form.
  struct Item {
    /// The keyed group that it belongs to.
    var group: UInt32?
    /// Whether it is a record of the group, and not an operation or an annotation.
    var isRecord = false
    /// All of it, and for an annotation or a record its contents.
    var range: Range<Int>
    var body: Range<Int>
  }

  /// The next operation, annotation or record; nil at the end.
  @_lifetime(self: copy self)
  mutating func nextItem() throws(MalformedBytes) -> Item? {
    guard !reader.isAtEnd else { return nil }
    let start = reader.offset
    let kind = try reader.byte()
    var group: UInt32?
    if kind == GroupRecord.kind || kind == Batch.groupAnnotationKind {
      group = try self.group(from: start)
    } else if kind != Batch.annotationKind, RowKind(rawValue: kind) == nil {
      throw MalformedBytes(at: start, "an unknown operation")
    }
    let body = try reader.lengthPrefixed()
    let end = reader.offset
    if kind == RowKind.put.rawValue || kind == RowKind.delete.rawValue {
      group = KeyedGroups.group(of: body)
    }
    if kind == RowKind.put.rawValue { _ = try reader.lengthPrefixed() }
    return Item(
      group: group, isRecord: kind == GroupRecord.kind, range: start..<reader.offset,
      body: (end - body.byteCount)..<end)
  }
}
