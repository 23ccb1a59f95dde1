// Converts between a batch, whose bytes are those of a log's frame, and the data that a store
// receives and returns.

extension Batch {
  /// The rows as a store receives them, each key once, and the annotation, which is empty if there
  /// is none.
  func remoteWrites() -> (rows: [RemoteWrite], annotation: [UInt8]) {
    let frame = frame
    guard frame.count > FrameHeader.length else { return ([], RemoteWrites.nothing) }
    var reading = RemoteWrites(stamps.sorted { $0.offset < $1.offset }, of: operationCount)
    let payload = frame.bytes.extracting(droppingFirst: FrameHeader.length)
    do throws(MalformedBytes) {
      try reading.read(payload)
    } catch {
      preconditionFailure("a batch of our own making cannot be malformed: \(error)")
    }
    return (reading.writes, reading.annotation)
  }
}

/// Reads the rows of a batch.
private struct RemoteWrites {
  private(set) var writes: [RemoteWrite] = []
  private(set) var annotation = nothing
  /// The position of the row of each key. It is used only if there are several rows.
  private var places: [[UInt8]: Int] = [:]
  private let count: Int
  /// Sorted by their offsets in the frame.
  private let stamps: [Batch.Stamp]
  private var nextStamp = 0

  static let nothing = RemoteValue.encode(RawSpan(), [])

  init(_ stamps: [Batch.Stamp], of count: Int) {
    self.stamps = stamps
    self.count = count
    writes.reserveCapacity(count)
  }

  mutating func read(_ payload: RawSpan) throws(MalformedBytes) {
    var reader = ByteReader(payload)
    while !reader.isAtEnd {
      let kind = try reader.byte()
      let key = try reader.lengthPrefixed()
      let keyStamps = takeStamps(in: key, before: reader.offset)
      if kind == Batch.annotationKind {
        annotation = RemoteValue.encode(key, keyStamps)
        continue
      }
      var write = RemoteWrite(key: key.array, keyStamps: keyStamps, value: nil)
      if kind == RowKind.put.rawValue {
        let value = try reader.lengthPrefixed()
        write.value = RemoteValue.encode(value, takeStamps(in: value, before: reader.offset))
      }
      add(write)
    }
  }

  /// The stamps in bytes that end at `end` of the payload.
  private mutating func takeStamps(in bytes: RawSpan, before end: Int) -> [RemoteStamp] {
    let end = FrameHeader.length + end
    let start = end - bytes.byteCount
    var taken: [RemoteStamp] = []
    while nextStamp < stamps.count, stamps[nextStamp].offset < end {
      let stamp = stamps[nextStamp]
      taken.append(RemoteStamp(offset: stamp.offset - start, form: stamp.form))
      nextStamp += 1
    }
    return taken
  }

  private mutating func add(_ write: RemoteWrite) {
    if count > 1 {
      if let place = places[write.key] {
        // The last operation on a key wins.
        writes[place] = write
        return
      }
      places[write.key] = writes.count
    }
    writes.append(write)
  }
}

extension RemoteCommit {
  /// The commit as a log would contain it.
  func recovered(from store: String) throws(EngineError) -> RecoveredCommit {
    var batch = Batch()
    for row in rows {
      guard row.key.count >= Batch.keyspaceLength else {
        throw .corrupt(file: store, offset: 0, reason: "a key without a keyspace")
      }
      if let value = row.value {
        let value = try RemoteValue.decode(value, point.sequence, from: store)
        batch.put(row.key.bytes, value.bytes)
      } else {
        batch.delete(row.key.bytes)
      }
    }
    return batch.recovered(as: point)
  }
}

extension Batch {
  /// The batch as a log would contain it once committed.
  consuming func recovered(as point: CommitPoint) -> RecoveredCommit {
    var batch = self
    let operations = batch.operationCount
    let frame = batch.takeFrame(stampedWith: point.sequence, time: point.time)
    return RecoveredCommit(
      bytes: frame, payload: FrameHeader.length..<frame.count, checksum: 0,
      operations: operations, sequence: point.sequence, time: point.time)
  }
}
