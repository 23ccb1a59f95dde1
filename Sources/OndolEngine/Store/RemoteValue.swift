// A value in the form in which a store keeps it. Values have their commit's number and time at
// positions of their own. Only the store knows both, and it should not have to find these
// positions. So it adds the time before the value it receives, and stores the number beside it; the
// reader of the value fills them in.
//
//   time         8 bytes, two's complement, high byte first: added by the store
//   stamps       varint: how many
//   each stamp   varint offset, one byte: its form
//   value        the rest

/// The bytes of a value in a store.
package enum RemoteValue {
  /// Bytes of the time at the beginning.
  package static let timeLength = 8

  /// The form that the store receives: everything except the time.
  static func encode(_ value: RawSpan, _ stamps: [RemoteStamp]) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(value.byteCount + 1 + 4 * stamps.count)
    bytes.appendVarint(stamps.count)
    for stamp in stamps {
      bytes.appendVarint(stamp.offset)
      bytes.append(stamp.form.code)
    }
    bytes.append(value)
    return bytes
  }

  /// The value, with its stamps filled in.
  static func decode(
    _ bytes: [UInt8], _ sequence: SequenceNumber, from store: String
  ) throws(EngineError) -> [UInt8] {
    do throws(MalformedBytes) {
      return try decode(bytes, sequence)
    } catch {
      throw EngineError(error, in: store)
    }
  }

  private static func decode(
    _ bytes: [UInt8], _ sequence: SequenceNumber
  ) throws(MalformedBytes) -> [UInt8] {
    var reader = ByteReader(bytes.bytes)
    let time: UInt64 = try reader.littleEndian()
    let count = try reader.count(atMost: reader.remaining)
    var stamps: [RemoteStamp] = []
    stamps.reserveCapacity(count)
    for _ in 0..<count {
      let offset = try reader.count(atMost: bytes.count)
      guard let form = StampForm(code: try reader.byte()) else {
        throw MalformedBytes(at: reader.offset, "an unknown form of stamp")
      }
      stamps.append(RemoteStamp(offset: offset, form: form))
    }
    var value = try reader.take(reader.remaining).array
    let point = CommitPoint(sequence: sequence, time: Int64(bitPattern: time.byteSwapped))
    for stamp in stamps {
      guard value.stamp(stamp, with: point) else {
        throw MalformedBytes(at: reader.offset, "a stamp outside its value")
      }
    }
    return value
  }

  /// The time in the form that a store adds before a value.
  package static func time(_ time: Int64) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.appendBigEndian(time)
    return bytes
  }
}

extension StampForm {
  /// Its code in a store.
  package var code: UInt8 {
    switch self {
    case .sequence: 0
    case .time: 1
    case .orderedTime: 2
    case .descendingTime: 3
    }
  }

  init?(code: UInt8) {
    switch code {
    case 0: self = .sequence
    case 1: self = .time
    case 2: self = .orderedTime
    case 3: self = .descendingTime
    default: return nil
    }
  }
}

extension [UInt8] {
  /// Fills in a stamp; false when it is out of bounds.
  package mutating func stamp(_ stamp: RemoteStamp, with point: CommitPoint) -> Bool {
    guard stamp.offset >= 0, stamp.offset <= count - 8 else { return false }
    overwriteStamp(stamp.form, at: stamp.offset, point.sequence, time: point.time)
    return true
  }
}
