// Frames: checked, self-describing stretches of bytes of which the log and the manifest are made. A
// frame says whose bytes they are, how many, and up to where the line of log bytes was on the
// device when it was written; what the log makes of that is in LogFormat.

/// A place in the one line of all log bytes.
struct LogPosition: RawRepresentable, Sendable, Hashable, Comparable {
  var rawValue: UInt64

  static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
  static var zero: Self { Self(rawValue: 0) }
}

enum FrameKind: UInt8, Sendable {
  /// A whole commit.
  case commit = 1
  /// A piece of a commit too long for one frame; the last piece is `lastPart`.
  case part = 2
  case lastPart = 3
  /// The log was closed in good order, and nothing follows.
  case seal = 5
  /// A change to the manifest.
  case edit = 6
  /// In a log's first page: how far the line was on the device when a sync ended.
  case mark = 7
}

/// The 56 bytes in front of a frame's payload.
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
  /// Whether the payload is sealed; it ends with its tag then.
  var isSealed = false
  /// Random bits of a sealed payload's nonce.
  var chance: UInt32 = 0

  /// Bytes of the whole frame, padding included.
  var frameLength: Int { Self.frameLength(payload: payloadLength) }

  static func frameLength(payload: Int) -> Int {
    (length + payload + 7) & ~7
  }

  /// Writes the header over the first 56 bytes of `frame`, for a frame that will stand at `offset`.
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

  /// The header at the front of `bytes`, or nil when there is no sound one. Without a salt its own
  /// checksum says nothing.
  ///
  /// - Parameter isSealed: whether payloads are, as they are in whole files or not at all; nil when
  ///   that is not known.
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
  /// Whether a header stands at the front of `bytes` that was written so, and whose kind, flags or
  /// version are unknown.
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
  /// What a sealed payload has beside its bytes.
  static let sealOverhead = SealFormat.tagLength
  /// What of the header is sealed with the payload, so that neither is believed without the other.
  private static let contextLength = 40

  /// Seals the payload of `frame`, whose header this is but for the payload's checksum, and writes
  /// the header.
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

  /// What was sealed in `payload`, behind the header in `header`; nil when it was not sealed so.
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

  /// A place at which a power cut took a frame without a trace is written again by whoever opens
  /// the database next, so the place is not enough: the time and random bits go with it.
  private func nonce(at offset: UInt64) -> SealNonce {
    SealNonce(
      place: UInt64(chance) << 32 | (offset / 8) & 0xFFFF_FFFF,
      extra: UInt32(truncatingIfNeeded: time))
  }
}
