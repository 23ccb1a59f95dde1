// The commit log's bytes: the beginning of a log file and the form of a frame. The manifest's edits
// use the same frames.
//
// A log file is 4,096 bytes of header (the same 256 bytes twice, at 0 and 2,048), then frames, each
// at a multiple of eight, each a 56-byte header and a payload padded with zeros to eight. After the
// last frame there are zeros or nothing.
//
// Positions count bytes over all logs: a log's `base` is its predecessor's base plus the length at
// which the predecessor ended, so an offset in any log has one place in one line. Every frame
// carries `syncedThrough`, the position up to which the line was known to be on the device when the
// frame was made. That distinguishes a torn tail from damage. At the first unreadable frame,
// position P, recovery continues to look. If any later readable frame, in this log or a later one,
// was made when the line had been synced beyond P, then P was acknowledged once and has been
// damaged since: an error, never a silent cut. If none was, P is where the power failed.
//
// The last frames have none after them that could show that. For them there is a *mark*, a frame
// without payload between the two copies of the header. It is overwritten whenever a sync has ended
// and before any caller is told. It is not synced itself: after a power cut it may be an older one,
// which is also true; in all other cases it vouches for every acknowledged commit.
//
// A log that follows another needs no seal in its predecessor: its header says where the
// predecessor ended. Only closing writes a seal.

/// The first 4,096 bytes of a log.
struct LogHeader: Sendable, Equatable {
  static let length = 4096
  static let copyLength = 256
  static let copyOffsets = [0, 2048]
  /// The mark's position: in a sector of its own.
  static let markOffset: UInt64 = 1024
  static let magic: UInt64 = 0x0A1A_0A0D_474F_4C89  // 89 'LOG' 0D 0A 1A 0A
  static let version: UInt32 = 1

  enum Kind: UInt32, Sendable {
    case normal = 0
    /// Made by recovery to replace the logs from the old floor on.
    case replacement = 1
  }

  var number: FileNumber
  var identity: DatabaseIdentity
  var salt: UInt64
  var kind: Kind
  var base: LogPosition
  /// The previous log and the length at which it ended; both 0 in a replacement.
  var previous: FileNumber
  var previousLength: UInt64
  /// The sequence of the first commit in it.
  var firstSequence: SequenceNumber

  /// All 4,096 bytes.
  func encode() -> [UInt8] {
    var copy: [UInt8] = []
    copy.appendLittleEndian(Self.magic)
    copy.appendLittleEndian(Self.version)
    copy.appendLittleEndian(kind.rawValue)
    copy.appendLittleEndian(number.rawValue)
    copy.appendLittleEndian(identity.low)
    copy.appendLittleEndian(identity.high)
    copy.appendLittleEndian(salt)
    copy.appendLittleEndian(base.rawValue)
    copy.appendLittleEndian(previous.rawValue)
    copy.appendLittleEndian(previousLength)
    copy.appendLittleEndian(firstSequence.rawValue)
    copy.append(contentsOf: [UInt8](repeating: 0, count: Self.copyLength - 8 - copy.count))
    copy.appendLittleEndian(seededChecksum(Self.magic, copy.bytes))

    var page = [UInt8](repeating: 0, count: Self.length)
    for offset in Self.copyOffsets {
      page.replaceSubrange(offset..<(offset + Self.copyLength), with: copy)
    }
    return page
  }

  /// The beginning of a log.
  enum Reading: Equatable {
    case header(LogHeader)
    /// All zeros, or nothing: a file made ahead of its use.
    case blank
    case unreadable
  }

  /// Reads the header from a log's first bytes; either copy suffices.
  static func read(_ page: RawSpan, file: String) throws(EngineError) -> Reading {
    for offset in copyOffsets where page.byteCount >= offset + copyLength {
      let copy = page.extracting(offset..<(offset + copyLength))
      if let header = try readCopy(copy, file: file) { return .header(header) }
    }
    for offset in 0..<min(length, page.byteCount) where page.byte(at: offset) != 0 {
      return .unreadable
    }
    return .blank
  }

  private static func readCopy(
    _ copy: RawSpan, file: String
  ) throws(EngineError) -> LogHeader? {
    var reader = ByteReader(copy)
    let header: LogHeader
    let foundVersion: UInt32
    do throws(MalformedBytes) {
      guard try reader.littleEndian(UInt64.self) == magic else { return nil }
      foundVersion = try reader.littleEndian()
      guard let kind = Kind(rawValue: try reader.littleEndian()) else { return nil }
      header = LogHeader(
        number: FileNumber(rawValue: try reader.littleEndian()),
        identity: DatabaseIdentity(
          low: try reader.littleEndian(), high: try reader.littleEndian()),
        salt: try reader.littleEndian(), kind: kind,
        base: LogPosition(rawValue: try reader.littleEndian()),
        previous: FileNumber(rawValue: try reader.littleEndian()),
        previousLength: try reader.littleEndian(),
        firstSequence: SequenceNumber(rawValue: try reader.littleEndian()))
      var tail = ByteReader(copy.extracting(last: 8))
      let body = copy.extracting(first: copyLength - 8)
      guard try tail.littleEndian(UInt64.self) == seededChecksum(magic, body) else { return nil }
      // Other positions are derived from these, so they are bounded here.
      let counters = [
        header.base.rawValue, header.previousLength, header.firstSequence.rawValue,
      ]
      guard counters.allSatisfy({ $0 <= Bounds.greatestCounter }) else { return nil }
    } catch {
      return nil
    }
    guard foundVersion == version else {
      throw .needsNewerVersion(file: file, reason: "log version \(foundVersion)")
    }
    return header
  }
}
