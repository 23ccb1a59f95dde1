// Rows about parts on a store that no location names: of contents that are being uploaded, and of
// those that are to be removed. Such a row is there before the first part is and until the last is
// gone. The commit that makes a content stored takes the row of its upload away and guards it; who
// removes parts has taken it away before, and left another in the same commit. So of the two one
// comes first, and whatever dies in between leaves a row that leads to what it left. The store puts
// parts only while the row of their upload is there: none comes after its removal.
//
//   key: keyspace 6, id, state (1);  value: commit (8), time (8), bytes of the content (varint)

/// Parts that no location names.
package struct LooseParts: Sendable, Equatable {
  package enum State: UInt8, Sendable {
    /// Somebody uploads them, and has said so at the row's time.
    case uploading = 1
    /// Nobody will ever name them.
    case unwanted = 2
    /// They were stored until the row's commit: readers of what was before may be at them.
    case givenUp = 3
  }

  package let id: [UInt8]
  package let state: State
  /// The commit that has put the row.
  package private(set) var sequence = SequenceNumber.zero
  /// That commit's time.
  package private(set) var time: Int64 = 0
  /// Bytes of the content, as far as they are known.
  package let length: UInt64

  package init(_ id: [UInt8], _ state: State, length: UInt64) {
    (self.id, self.state, self.length) = (id, state, length)
  }

  package init(key: RawSpan, _ value: RawSpan) throws(MalformedBytes) {
    var place = ByteReader(key)
    _ = try place.take(4)
    id = try place.take(ContentPart.idLength).array
    guard let state = State(rawValue: try place.byte()), place.isAtEnd else {
      throw MalformedBytes(at: 0, "loose parts of an unknown state")
    }
    self.state = state
    var reader = ByteReader(value)
    sequence = SequenceNumber(rawValue: try reader.littleEndian())
    time = try reader.littleEndian()
    length = try reader.varint()
    guard reader.isAtEnd else { throw MalformedBytes(at: reader.offset, "a row is too long") }
  }

  package static let keyspace: UInt32 = 6

  package static func key(_ id: [UInt8], _ state: State) -> [UInt8] {
    var key: [UInt8] = []
    key.reserveCapacity(4 + id.count + 1)
    key.appendBigEndian(keyspace)
    key += id
    key.append(state.rawValue)
    return key
  }

  package var key: [UInt8] { Self.key(id, state) }

  /// Puts the row; the commit fills its number and time in.
  package func put(into batch: inout Batch) {
    var bytes = [UInt8](repeating: 0, count: 16)
    bytes.appendVarint(length)
    let key = key
    batch.put(key.bytes, bytes.bytes, stamps: [(0, .sequence), (8, .time)])
  }

  /// Has nobody name the parts of an upload from this commit on, nor put more.
  package static func forsake(_ id: [UInt8], length: UInt64, in batch: inout Batch) {
    batch.delete(key(id, .uploading).bytes)
    LooseParts(id, .unwanted, length: length).put(into: &batch)
  }
}
