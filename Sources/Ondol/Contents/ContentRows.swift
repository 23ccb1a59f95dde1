// The values of a content's rows except its location, which the engine writes (see
// ContentLocation).

internal import OndolEngine

/// Where the bytes of a content are, as far as a commit needs to know.
enum ContentPresence {
  /// Nothing is known of it.
  case none
  case away
  case here
}

/// Until when a content stays without a holder.
struct ContentLease: Sendable, Equatable {
  /// Microseconds since 1970.
  var end: Int64

  var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.appendLittleEndian(end)
    return bytes
  }

  init(end: Int64) {
    self.end = end
  }

  init(_ bytes: RawSpan) throws(MalformedBytes) {
    var reader = ByteReader(bytes)
    end = try reader.littleEndian()
    guard reader.isAtEnd else { throw MalformedBytes(at: 8, "a lease is too long") }
  }
}

/// The last commit that removed a holder of a content: from then on it may have none.
struct ContentRelease: Sendable, Equatable {
  var sequence: SequenceNumber
  /// Microseconds since 1970.
  var time: Int64

  /// The initial bytes; the commit fills in its number and time.
  static let pending = [UInt8](repeating: 0, count: 16)
  static let stamps: [(offset: Int, form: StampForm)] = [(0, .sequence), (8, .time)]

  init(_ bytes: RawSpan) throws(MalformedBytes) {
    var reader = ByteReader(bytes)
    sequence = SequenceNumber(rawValue: try reader.littleEndian())
    time = try reader.littleEndian()
    guard reader.isAtEnd else { throw MalformedBytes(at: 16, "a release is too long") }
  }
}
