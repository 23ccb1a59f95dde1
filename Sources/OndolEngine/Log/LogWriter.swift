// One log file that is being written. The sequencer assigns offsets, and each committer writes its
// own frames at its own offset, so writers do not wait for each other.

/// An open log.
final class LogFile: Sendable {
  let number: FileNumber
  let file: any File
  let salt: UInt64
  /// Seals its frames; nil when they are not encrypted.
  let seal: FileSeal?
  /// The position of the file's first byte in the line of all logs.
  let base: LogPosition
  /// Bytes of zeros that the file had on the device before its use, 0 for one that grows. A synced
  /// write within them changes no size and no block, which saves the file system its journal.
  let prewritten: UInt64

  /// Continues in `spare` at `base`.
  init(_ spare: SpareLog, base: LogPosition) {
    number = spare.number
    file = spare.file
    salt = spare.salt
    seal = spare.seal
    prewritten = spare.prewritten
    self.base = base
  }

  func position(of offset: UInt64) -> LogPosition {
    LogPosition(rawValue: base.rawValue + offset)
  }
}

extension LogFile {
  /// Makes an empty, sealed log: the log of a database that was closed cleanly.
  static func writeSealed(
    _ header: LogHeader, _ start: LogStart, directory: any Directory
  ) throws(EngineError) -> NamedLog {
    let context = FrameContext(
      sequence: start.sequence, time: start.time, syncedThrough: start.base)
    let seal = FrameBuilder.buildSeal(
      context, salt: header.salt, offset: UInt64(LogHeader.length),
      seal: directory.keyring?.seal(header))
    let file = try directory.create(header.number.logName)
    try file.write((header.encode() + seal).bytes, at: 0)
    try file.sync()
    try directory.sync()
    return NamedLog(
      number: header.number, salt: header.salt, length: UInt64(LogHeader.length))
  }
}

/// A log made ahead of its use: its name is on the device, and so are its zeros, if any.
struct SpareLog: Sendable {
  let number: FileNumber
  let file: any File
  let salt: UInt64
  let prewritten: UInt64
  /// Bytes from the start for which the disk has reserved room.
  var reserved: UInt64
  /// Seals its frames.
  var seal: FileSeal?
}

extension Keyring {
  /// The seal of a log's frames.
  func seal(log number: FileNumber, salt: UInt64) -> FileSeal? {
    seal(.log, number: number, salt: salt)
  }

  /// The seal of the frames of the log with this header.
  func seal(_ header: LogHeader) -> FileSeal? { seal(log: header.number, salt: header.salt) }
}

/// What every frame of one commit shares.
struct FrameContext: Sendable {
  var sequence: SequenceNumber
  var time: Int64
  var syncedThrough: LogPosition
}

/// The bytes of a commit's frames, in an unencrypted log and in a sealed one: it may go into
/// either.
struct FrameLength: Sendable {
  var clear: Int
  var sealed: Int

  func bytes(sealedBy seal: FileSeal?) -> UInt64 { UInt64(seal == nil ? clear : sealed) }
}

extension FrameLength {
  init(of batch: borrowing Batch) {
    clear = FrameBuilder.length(ofPayload: batch.payloadLength)
    sealed = FrameBuilder.length(ofPayload: batch.sealedPayloadLength, isSealed: true)
  }
}

/// Makes frames out of a batch's bytes.
enum FrameBuilder {
  /// Bytes of a payload in the log, including headers and padding.
  static func length(
    ofPayload payload: Int, limit: Int = FrameHeader.maximumPayload, isSealed: Bool = false
  ) -> Int {
    let overhead = isSealed ? FrameHeader.sealOverhead : 0
    let limit = pieceLength(limit, isSealed: isSealed)
    var length = 0
    var rest = payload
    repeat {
      let piece = min(rest, limit)
      length += FrameHeader.frameLength(payload: piece + overhead)
      rest -= piece
    } while rest > 0
    return length
  }

  /// Bytes of a payload that go into one frame, when a frame's payload has at most `limit`.
  static func pieceLength(
    _ limit: Int = FrameHeader.maximumPayload, isSealed: Bool
  ) -> Int {
    isSealed ? max(1, limit - FrameHeader.sealOverhead) : limit
  }

  /// The frame of a batch whose bytes begin with room for a header: written in place when one frame
  /// is enough, which it almost always is.
  ///
  /// - Parameter isKeyed: whether it includes operations on keyed groups.
  static func build(
    _ bytes: consuming [UInt8], operations: Int, isKeyed: Bool = false, _ context: FrameContext,
    salt: UInt64, offset: UInt64, seal: FileSeal? = nil
  ) -> [UInt8] {
    if isKeyed, let groups = seal?.groups {
      bytes = GroupRecords.seal(bytes, context.sequence, by: groups)
    }
    let payload = bytes.count - FrameHeader.length
    let limit = pieceLength(isSealed: seal != nil)
    if payload <= limit {
      finish(
        &bytes, .commit, operations: operations, context, salt: salt, offset: offset, seal: seal)
      return bytes
    }
    var frames: [UInt8] = []
    frames.reserveCapacity(length(ofPayload: payload, isSealed: seal != nil))
    var start = FrameHeader.length
    while start < bytes.count {
      let end = min(start + limit, bytes.count)
      var frame = [UInt8](repeating: 0, count: FrameHeader.length)
      frame.append(contentsOf: bytes[start..<end])
      finish(
        &frame, end == bytes.count ? .lastPart : .part, operations: operations, context,
        salt: salt, offset: offset + UInt64(frames.count), seal: seal)
      frames += frame
      start = end
    }
    return frames
  }

  /// Appends the frames of a commit that was read: if one is enough, with the payload's known
  /// checksum.
  static func append(
    _ payload: RawSpan, checksum: UInt32, operations: Int, isKeyed: Bool, _ context: FrameContext,
    salt: UInt64, offset: UInt64, seal: FileSeal? = nil, to bytes: inout [UInt8]
  ) {
    var frame = [UInt8](repeating: 0, count: FrameHeader.length)
    guard payload.byteCount <= FrameHeader.maximumPayload, seal == nil else {
      frame.append(payload)
      bytes += build(
        frame, operations: operations, isKeyed: isKeyed, context, salt: salt, offset: offset,
        seal: seal)
      return
    }
    let header = FrameHeader(
      kind: .commit, payloadLength: payload.byteCount, sequence: context.sequence,
      time: context.time, operationCount: operations, syncedThrough: context.syncedThrough,
      payloadChecksum: checksum)
    header.write(into: &frame, salt: salt, offset: offset)
    bytes += frame
    bytes.append(payload)
    bytes.append(
      contentsOf: repeatElement(0, count: header.frameLength - frame.count - payload.byteCount))
  }

  /// A frame without payload.
  static func buildSeal(
    _ context: FrameContext, salt: UInt64, offset: UInt64, seal: FileSeal? = nil
  ) -> [UInt8] {
    var frame = [UInt8](repeating: 0, count: FrameHeader.length)
    finish(&frame, .seal, operations: 0, context, salt: salt, offset: offset, seal: seal)
    return frame
  }

  /// A log's mark, which vouches for everything before `position`. It is overwritten again and
  /// again, and contains nothing that a sealed frame's header does not show, so it is never sealed.
  static func buildMark(_ position: LogPosition, time: Int64, salt: UInt64) -> [UInt8] {
    var frame = [UInt8](repeating: 0, count: FrameHeader.length)
    let context = FrameContext(sequence: .zero, time: time, syncedThrough: position)
    finish(&frame, .mark, operations: 0, context, salt: salt, offset: LogHeader.markOffset)
    return frame
  }

  /// The frames of a manifest edit: several parts when it is longer than `limit`. Each vouches for
  /// the bytes before the edit, and a part has its number.
  static func buildEdit(
    _ payload: [UInt8], ordinal: UInt64, time: Int64, salt: UInt64, offset: UInt64,
    limit: Int = FrameHeader.maximumPayload, seal: FileSeal? = nil
  ) -> [UInt8] {
    var frames: [UInt8] = []
    eachFrame(
      ofEdit: payload, ordinal: ordinal, time: time, salt: salt, offset: offset, limit: limit,
      seal: seal
    ) { frame, _ in frames += frame }
    return frames
  }

  /// The same frames, one after the other, with the position of each: an edit may be as long as the
  /// keys that it contains.
  static func eachFrame<Failure: Error>(
    ofEdit payload: [UInt8], ordinal: UInt64, time: Int64, salt: UInt64, offset: UInt64,
    limit: Int = FrameHeader.maximumPayload, seal: FileSeal? = nil,
    _ take: (_ frame: [UInt8], _ offset: UInt64) throws(Failure) -> Void
  ) throws(Failure) {
    let limit = pieceLength(limit, isSealed: seal != nil)
    let context = FrameContext(
      sequence: SequenceNumber(rawValue: ordinal), time: time,
      syncedThrough: LogPosition(rawValue: offset))
    var place = offset
    var (start, part) = (0, 0)
    repeat {
      let end = min(start + limit, payload.count)
      var frame = [UInt8](repeating: 0, count: FrameHeader.length) + payload[start..<end]
      let kind: FrameKind =
        payload.count <= limit ? .edit : end == payload.count ? .lastPart : .part
      finish(&frame, kind, operations: part, context, salt: salt, offset: place, seal: seal)
      try take(frame, place)
      place += UInt64(frame.count)
      (start, part) = (end, part + 1)
    } while start < payload.count
  }

  /// Writes the header before a payload, and zeros after it.
  private static func finish(
    _ frame: inout [UInt8], _ kind: FrameKind, operations: Int, _ context: FrameContext,
    salt: UInt64, offset: UInt64, seal: FileSeal? = nil
  ) {
    let payload = frame.count - FrameHeader.length
    var header = FrameHeader(
      kind: kind, payloadLength: payload, sequence: context.sequence, time: context.time,
      operationCount: operations, syncedThrough: context.syncedThrough,
      payloadChecksum: seal == nil
        ? crc32c(frame.bytes.extracting(droppingFirst: FrameHeader.length)) : 0)
    if let seal {
      header.seal(&frame, by: seal, salt: salt, offset: offset)
    } else {
      header.write(into: &frame, salt: salt, offset: offset)
    }
    frame.append(
      contentsOf: repeatElement(0, count: header.frameLength - frame.count))
  }
}
