// Frames: checksummed, self-describing byte sequences that make up the log and the manifest. A
// frame records which file its bytes belong to, its length, and up to where the log bytes were on
// the device when it was written. LogFormat describes how the log uses that.

/// A position in the sequence of all log bytes.
struct LogPosition: RawRepresentable, Sendable, Hashable, Comparable {
  var rawValue: UInt64

  static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
  static var zero: Self { Self(rawValue: 0) }
}

enum FrameKind: UInt8, Sendable {
  /// A complete commit.
  case commit = 1
  /// Part of a commit that is too long for one frame. The last part is `lastPart`.
  case part = 2
  case lastPart = 3
  /// The log was closed cleanly, and nothing follows.
  case seal = 5
  /// A manifest edit.
  case edit = 6
  /// In a log's first page: how much was on the device when a sync ended.
  case mark = 7
}

/// The 56 bytes before a frame's payload.
struct FrameHeader: Sendable, Equatable {
  static let length = 56
  /// The longest payload of one frame.
  static let maximumPayload = 4 << 20
  static let version: UInt16 = 1

  var kind: FrameKind
  var payloadLength: Int
  var sequence: SequenceNumber
  /// Microseconds since 1970.
  var time: Int64
  var operationCount: Int
  var syncedThrough: LogPosition
  var payloadChecksum: UInt32
  /// Whether the payload is encrypted. It then ends with its tag.
  var isSealed = false
  /// The random bits in an encrypted payload's nonce.
  var chance: UInt32 = 0

  /// The length of the whole frame, including padding.
  var frameLength: Int { Self.frameLength(payload: payloadLength) }

  static func frameLength(payload: Int) -> Int {
    (length + payload + 7) & ~7
  }

  /// Writes the header over the first 56 bytes of `frame`, for a frame that will be at `offset`.
  func write(into frame: inout [UInt8], salt: UInt64, offset: UInt64) {
    frame.overwriteLittleEndian(UInt32(payloadLength), at: 0)
    frame[4] = kind.rawValue
    frame[5] = isSealed ? 1 : 0
    frame.overwriteLittleEndian(Self.version, at: 6)
    frame.overwriteLittleEndian(sequence.rawValue, at: 8)
    frame.overwriteLittleEndian(time, at: 16)
    frame.overwriteLittleEndian(UInt32(operationCount), at: 24)
    frame.overwriteLittleEndian(UInt32(payloadLength), at: 28)
    frame.overwriteLittleEndian(syncedThrough.rawValue, at: 32)
    frame.overwriteLittleEndian(payloadChecksum, at: 40)
    frame.overwriteLittleEndian(chance, at: 44)
    let checksum = seededChecksum(
      contextSeed(salt: salt, offset: offset), frame.bytes.extracting(first: 48))
    frame.overwriteLittleEndian(checksum, at: 48)
  }

  /// The header at the start of `bytes`, or nil if there is no valid one. Without a salt, its own
  /// checksum proves nothing.
  ///
  /// - Parameter isSealed: whether payloads are encrypted, which applies to whole files; nil if
  ///   unknown.
  static func read(
    _ bytes: RawSpan, salt: UInt64?, offset: UInt64, isSealed: Bool? = false
  ) -> FrameHeader? {
    guard bytes.byteCount >= length else { return nil }
    var reader = ByteReader(bytes)
    do throws(MalformedBytes) {
      let stored: UInt32 = try reader.littleEndian()
      guard stored <= maximumPayload, let kind = FrameKind(rawValue: try reader.byte()),
        case let flags = try reader.byte(), flags <= 1,
        try reader.littleEndian(UInt16.self) == version
      else { return nil }
      if let isSealed, (flags == 1) != (isSealed && kind != .mark) { return nil }
      let sequence: UInt64 = try reader.littleEndian()
      let time: Int64 = try reader.littleEndian()
      let operations: UInt32 = try reader.littleEndian()
      let raw: UInt32 = try reader.littleEndian()
      let synced: UInt64 = try reader.littleEndian()
      let payloadChecksum: UInt32 = try reader.littleEndian()
      let reserved: UInt32 = try reader.littleEndian()
      let checksum: UInt64 = try reader.littleEndian()
      guard raw == stored, flags == 1 || reserved == 0,
        sequence <= Bounds.greatestCounter, synced <= Bounds.greatestCounter
      else { return nil }
      if let salt {
        let seed = contextSeed(salt: salt, offset: offset)
        guard checksum == seededChecksum(seed, bytes.extracting(first: 48)) else { return nil }
      }
      return FrameHeader(
        kind: kind, payloadLength: Int(stored), sequence: SequenceNumber(rawValue: sequence),
        time: time, operationCount: Int(operations), syncedThrough: LogPosition(rawValue: synced),
        payloadChecksum: payloadChecksum, isSealed: flags == 1, chance: reserved)
    } catch {
      return nil
    }
  }
}

extension FrameHeader {
  /// Whether the bytes start with a correctly written header of unknown kind, flags or version.
  static func isOfNewerVersion(
    _ bytes: RawSpan, salt: UInt64, offset: UInt64, isSealed: Bool = false
  ) -> Bool {
    guard bytes.byteCount >= length else { return false }
    var reader = ByteReader(bytes.extracting(droppingFirst: 48))
    let seed = contextSeed(salt: salt, offset: offset)
    guard let checksum: UInt64 = try? reader.littleEndian(),
      checksum == seededChecksum(seed, bytes.extracting(first: 48))
    else { return false }
    return FrameKind(rawValue: bytes.byte(at: 4)) == nil
      || bytes.byte(at: 5) != (isSealed ? 1 : 0)
      || bytes.byte(at: 6) != UInt8(version & 0xFF) || bytes.byte(at: 7) != UInt8(version >> 8)
  }
}

// MARK: - Sealed payloads

extension FrameHeader {
  /// The additional bytes of an encrypted payload.
  static let sealOverhead = SealFormat.tagLength
  /// The part of the header that is authenticated together with the payload, so that neither is
  /// accepted without the other.
  private static let contextLength = 40

  /// Encrypts the payload of `frame` and writes the header. This value is the frame's header,
  /// except for the payload's checksum.
  mutating func seal(_ frame: inout [UInt8], by seal: FileSeal, salt: UInt64, offset: UInt64) {
    isSealed = true
    payloadLength += Self.sealOverhead
    chance = UInt32(truncatingIfNeeded: seal.random())
    write(into: &frame, salt: salt, offset: offset)
    let context = frame.bytes.extracting(first: Self.contextLength).array
    seal.seal(&frame, from: Self.length, nonce(at: offset), context: context)
    payloadChecksum = crc32c(frame.bytes.extracting(droppingFirst: Self.length))
    write(into: &frame, salt: salt, offset: offset)
  }

  /// The plain form of `payload`, which follows the header in `header`; nil if it was not encrypted
  /// this way.
  func open(
    _ payload: RawSpan, header: RawSpan, by seal: FileSeal, offset: UInt64
  ) -> [UInt8]? {
    var opened: [UInt8] = []
    opened.reserveCapacity(payload.byteCount)
    let context = header.extracting(first: Self.contextLength).array
    guard seal.open(payload, nonce(at: offset), context: context, appendingTo: &opened) else {
      return nil
    }
    return opened
  }

  /// When a power cut erases a frame without a trace, the next process that opens the database
  /// writes another at the same place. So the place is not enough, and the time and random bits are
  /// included.
  private func nonce(at offset: UInt64) -> SealNonce {
    SealNonce(
      place: UInt64(chance) << 32 | (offset / 8) & 0xFFFF_FFFF,
      extra: UInt32(truncatingIfNeeded: time))
  }
}
