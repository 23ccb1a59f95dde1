// Makes logs in which every field comes from the input and every checksum is correct.

@testable import OndolEngine

/// Writes logs one after another.
struct LogMaker {
  /// Whether it writes only what the engine itself would write.
  let isHonest: Bool
  /// The sequence of the last commit.
  var sequence: UInt64
  private(set) var commits = 0
  private var isSealed = false

  init(isHonest: Bool, sequence: UInt64) {
    self.isHonest = isHonest
    self.sequence = sequence
  }

  mutating func log(_ header: LogHeader, _ input: inout FuzzInput) -> [UInt8] {
    let page = header.encode()
    return page + frames(&input, at: page.count, salt: header.salt)
  }

  mutating func frames(_ input: inout FuzzInput, at start: Int, salt: UInt64) -> [UInt8] {
    var bytes: [UInt8] = []
    for _ in 0..<input.below(8) where !isSealed {
      bytes += frame(&input, at: UInt64(start + bytes.count), salt: salt)
    }
    return bytes
  }

  private mutating func frame(
    _ input: inout FuzzInput, at offset: UInt64, salt: UInt64
  ) -> [UInt8] {
    let kinds: [FrameKind] = isHonest ? [.commit] : [.commit, .part, .lastPart, .seal, .edit]
    let kind = input.pick(kinds)
    let payload =
      kind == .seal ? [] : isHonest || input.flag() ? operations(&input) : input.take(60)
    if kind == .commit || kind == .lastPart {
      sequence = isHonest || input.flag() ? sequence &+ 1 : input.edge()
      commits += 1
    }
    var frame = [UInt8](repeating: 0, count: FrameHeader.length) + payload
    let header = FrameHeader(
      kind: kind, payloadLength: payload.count,
      sequence: SequenceNumber(
        rawValue: kind == .part || kind == .edit ? sequence &+ 1 : sequence),
      time: isHonest ? 5 : Int64(bitPattern: input.edge()),
      operationCount: isHonest ? 1 : input.below(256),
      syncedThrough: LogPosition(rawValue: isHonest ? 0 : input.edge()),
      payloadChecksum: crc32c(payload.bytes))
    header.write(into: &frame, salt: salt, offset: offset)
    frame += [UInt8](repeating: 0, count: header.frameLength - frame.count)
    return frame
  }

  private func operations(_ input: inout FuzzInput) -> [UInt8] {
    var bytes: [UInt8] = []
    for _ in 0...input.below(4) {
      let key = [0, 0, input.byte(), input.byte()] + input.take(input.below(12))
      bytes.append(input.oneIn(4) ? RowKind.delete.rawValue : RowKind.put.rawValue)
      let isDelete = bytes.last == RowKind.delete.rawValue
      bytes.appendVarint(key.count)
      bytes += key
      if isDelete { continue }
      let value = [UInt8](repeating: input.byte(), count: input.below(200))
      bytes.appendVarint(value.count)
      bytes += value
    }
    return bytes
  }
}
