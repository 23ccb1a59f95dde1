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

  /// Bytes of the whole frame, padding included.
  var frameLength: Int { Self.frameLength(payload: payloadLength) }

  static func frameLength(payload: Int) -> Int {
    (length + payload + 7) & ~7
  }

  /// Writes the header over the first 56 bytes of `frame`, for a frame that will stand at `offset`.
  func write(into frame: inout [UInt8], salt: UInt64, offset: UInt64) {
    frame.overwriteLittleEndian(UInt32(payloadLength), at: 0)
    frame[4] = kind.rawValue
    frame[5] = 0
    frame.overwriteLittleEndian(Self.version, at: 6)
    frame.overwriteLittleEndian(sequence.rawValue, at: 8)
    frame.overwriteLittleEndian(time, at: 16)
    frame.overwriteLittleEndian(UInt32(operationCount), at: 24)
    frame.overwriteLittleEndian(UInt32(payloadLength), at: 28)
    frame.overwriteLittleEndian(syncedThrough.rawValue, at: 32)
    frame.overwriteLittleEndian(payloadChecksum, at: 40)
    frame.overwriteLittleEndian(UInt32(0), at: 44)
    let checksum = seededChecksum(
      contextSeed(salt: salt, offset: offset), frame.bytes.extracting(first: 48))
    frame.overwriteLittleEndian(checksum, at: 48)
  }

  /// The header at the front of `bytes`, or nil when there is no sound one. Without a salt its own
  /// checksum says nothing.
  static func read(_ bytes: RawSpan, salt: UInt64?, offset: UInt64) -> FrameHeader? {
    guard bytes.byteCount >= length else { return nil }
    var reader = ByteReader(bytes)
    do throws(MalformedBytes) {
      let stored: UInt32 = try reader.littleEndian()
      guard stored <= maximumPayload, let kind = FrameKind(rawValue: try reader.byte()),
        try reader.byte() == 0, try reader.littleEndian(UInt16.self) == version
      else { return nil }
      let sequence: UInt64 = try reader.littleEndian()
      let time: Int64 = try reader.littleEndian()
      let operations: UInt32 = try reader.littleEndian()
      let raw: UInt32 = try reader.littleEndian()
      let synced: UInt64 = try reader.littleEndian()
      let payloadChecksum: UInt32 = try reader.littleEndian()
      let reserved: UInt32 = try reader.littleEndian()
      let checksum: UInt64 = try reader.littleEndian()
      guard raw == stored, reserved == 0 else { return nil }
      if let salt {
        let seed = contextSeed(salt: salt, offset: offset)
        guard checksum == seededChecksum(seed, bytes.extracting(first: 48)) else { return nil }
      }
      return FrameHeader(
        kind: kind, payloadLength: Int(stored), sequence: SequenceNumber(rawValue: sequence),
        time: time, operationCount: Int(operations), syncedThrough: LogPosition(rawValue: synced),
        payloadChecksum: payloadChecksum)
    } catch {
      return nil
    }
  }
}

extension FrameHeader {
  /// Whether a header stands at the front of `bytes` that was written so, and whose kind, flags or
  /// version are unknown.
  static func isOfNewerVersion(_ bytes: RawSpan, salt: UInt64, offset: UInt64) -> Bool {
    guard bytes.byteCount >= length else { return false }
    var reader = ByteReader(bytes.extracting(droppingFirst: 48))
    let seed = contextSeed(salt: salt, offset: offset)
    guard let checksum: UInt64 = try? reader.littleEndian(),
      checksum == seededChecksum(seed, bytes.extracting(first: 48))
    else { return false }
    return FrameKind(rawValue: bytes.byte(at: 4)) == nil || bytes.byte(at: 5) != 0
      || bytes.byte(at: 6) != UInt8(version & 0xFF) || bytes.byte(at: 7) != UInt8(version >> 8)
  }
}
