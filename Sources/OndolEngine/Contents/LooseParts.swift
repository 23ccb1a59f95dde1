// Rows for parts on a store that no location names: contents that are being uploaded, and contents
// that are to be removed. Such a row exists before the first part and until the last part is gone.
// The commit that makes a content stored removes the row of its upload and guards it. A process
// that removes parts first removes that row as well, and adds another one in the same commit. So
// one of the two commits comes first, and a process that dies in between leaves a row that leads to
// the remaining parts. The store accepts parts only while the row of their upload exists, so none
// arrives after its removal.
//
//   key: keyspace 6, id, state (1);  value: commit (8), time (8), bytes of the content (varint)

/// Parts that no location names.
package struct LooseParts: Sendable, Equatable {
  package enum State: UInt8, Sendable {
    /// A process is uploading them, and confirmed that at the row's time.
    case uploading = 1
    /// No commit will ever name them.
    case unwanted = 2
    /// They were stored until the row's commit. Readers of earlier states may still use them.
    case givenUp = 3
  }

  package let id: [UInt8]
  package let state: State
  /// The commit that wrote the row.
  package private(set) var sequence = SequenceNumber.zero
  /// That commit's time.
  package private(set) var time: Int64 = 0
  /// Bytes of the content, as far as known.
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

  /// Adds the row to the batch. The commit fills in its number and time.
  package func put(into batch: inout Batch) {
    var bytes = [UInt8](repeating: 0, count: 16)
    bytes.appendVarint(length)
    let key = key
    batch.put(key.bytes, bytes.bytes, stamps: [(0, .sequence), (8, .time)])
  }

  /// Prevents commits from naming the parts of an upload, and further parts, from this commit on.
  package static func forsake(_ id: [UInt8], length: UInt64, in batch: inout Batch) {
    batch.delete(key(id, .uploading).bytes)
    LooseParts(id, .unwanted, length: length).put(into: &batch)
  }
}
