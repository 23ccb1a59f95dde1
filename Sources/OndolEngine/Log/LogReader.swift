// Reads frames back. The reader trusts nothing: a frame counts only when its header's checksum,
// which knows the file and the offset, and its payload's checksum both hold.

/// Steps through the frames of one file that is in memory, or of a stretch of it.
struct FrameReader {
  let bytes: [UInt8]
  let salt: UInt64
  /// What payloads are sealed with; nil where they are in the clear.
  let seal: FileSeal?
  /// Where a frame stands that is sound and was not sealed with the key of the file, once one was
  /// met. No power cut leaves that.
  private(set) var forgery: Int?
  /// Where the bytes begin in the file: at a multiple of eight.
  let start: UInt64
  /// Where the next frame is in the bytes, or the first that could not be read.
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

  /// The place in the file of what is at `place` in the bytes.
  func fileOffset(of place: Int) -> UInt64 { start + UInt64(place) }

  /// A sound frame.
  struct Frame {
    var header: FrameHeader
    var offset: Int
    /// Where the payload is in the reader's bytes, or in `opened`.
    var payload: Range<Int>
    /// What was sealed in the payload, where it was.
    var opened: [UInt8]?
  }

  /// The payload of a frame, in the clear.
  func payload(of frame: Frame) -> ArraySlice<UInt8> { (frame.opened ?? bytes)[frame.payload] }

  /// The frame at `offset`, or nil when none is sound there; then `offset` stays.
  mutating func next() -> Frame? {
    guard let frame = frame(at: offset) else { return nil }
    offset = frame.offset + frame.header.frameLength
    return frame
  }

  /// Whether more bytes of the file might make the next frame a sound one.
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

  /// Throws when a frame was met that is sound and was not sealed so.
  func refuseForgery() throws(MalformedBytes) {
    guard let forgery else { return }
    throw MalformedBytes(at: Int(fileOffset(of: forgery)), FileSeal.forged.reason)
  }

  /// The same, about the file called `name`.
  func refuseForgery(in name: String) throws(EngineError) {
    do throws(MalformedBytes) {
      try refuseForgery()
    } catch {
      throw EngineError(error, in: name)
    }
  }

  /// The position that the log's mark vouches for; nil where there is none, or the log's first page
  /// is not among the bytes.
  var mark: LogPosition? {
    let place = Int(LogHeader.markOffset)
    guard start == 0, let header = header(at: place), header.kind == .mark else { return nil }
    return header.syncedThrough
  }

  private static let blankPiece = 4096

  /// The furthest position that any sound header behind `offset` vouches for. Payloads are not
  /// looked at: the header's own checksum covers the claim.
  func furthestClaim() -> LogPosition? {
    var furthest: LogPosition?
    var place = (offset + 7) & ~7
    let all = bytes.bytes
    while place + FrameHeader.length <= bytes.count {
      // Whatever was written ahead and not used holds no header.
      if place % Self.blankPiece == 0, place + Self.blankPiece <= bytes.count,
        all.extracting(place..<(place + Self.blankPiece)).isZero
      {
        place += Self.blankPiece
        continue
      }
      // Kind, flags and version, zero in blank space: a cheap sieve before the checksum.
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

/// The frames at the beginning of a log of which neither the header nor the salt is known, as a
/// database has that an older version wrote. What looks like a frame counts when its payload has
/// the checksum that it says; rows are never read from such.
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
  /// Whether there is nothing but zeros: the first byte is one, and each is like the one before.
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
/// which are there where their keys are not.
struct OperationReader: ~Escapable {
  private var reader: ByteReader
  /// Where the annotations are that were passed.
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

  /// Steps over what is no operation.
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

  /// What stands in a payload, as it stands there.
  struct Item {
    /// The keyed group that it is of.
    var group: UInt32?
    /// Whether it is a record of the group, and not an operation or an annotation.
    var isRecord = false
    /// All of it, and of an annotation or a record what it holds.
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
