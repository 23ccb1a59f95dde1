// Makes a run of documents' terms: what lies by document in fresh rows lies by term in chunks.
// Pure: who stores the rows is SearchPacker.

internal import OndolEngine

/// Gathers documents.
struct RunBuilder {
  private var places: [[UInt8]: Int] = [:]
  private var lists: [(key: [UInt8], full: [PostingList], open: PostingList)] = []
  private var statistics: [[UInt8]: SearchStatistics] = [:]

  /// Adds a document, whose number in the run is greater than those before.
  mutating func add(
    _ row: borrowing FreshRow, scope: ArraySlice<UInt8>, _ document: UInt32
  ) throws(MalformedBytes) {
    statistics[Array(scope), default: SearchStatistics()].add(documentOf: row.lengths)
    let lengths = row.lengths
    try row.forEach { (term, count, positions) throws(MalformedBytes) in
      var key = Array(scope)
      key.append(term)
      let field = Int(term.byte(at: 0)) - 1
      guard lengths.indices.contains(field) else {
        throw MalformedBytes(at: 0, "a term of an unknown field")
      }
      append(key, document, count, lengths[field], positions)
      return true
    }
  }

  private mutating func append(
    _ key: [UInt8], _ document: UInt32, _ count: Int, _ length: Int, _ positions: RawSpan
  ) {
    let place: Int
    if let known = places[key] {
      place = known
    } else {
      place = lists.count
      places[key] = place
      lists.append((key, [], PostingList()))
    }
    lists[place].open.append(document, occurrences: count, length: length, positions)
    if lists[place].open.isFull {
      lists[place].full.append(lists[place].open)
      lists[place].open = PostingList()
    }
  }

  /// The run's chunks, with the last key and ordinal of each.
  func chunks() -> [(bytes: [UInt8], key: [UInt8], ordinal: UInt32)] {
    var writer = ChunkStream()
    var order: [(key: [UInt8], list: Int?)] = lists.indices.map { (lists[$0].key, $0) }
    order += statistics.keys.map { ($0 + [0], nil) }
    order.sort { $0.key.bytes.compare($1.key.bytes) < 0 }
    for (key, list) in order {
      guard let list else {
        let scope = Array(key.dropLast())
        writer.append(key, statistics[scope] ?? SearchStatistics())
        continue
      }
      for full in lists[list].full { writer.append(key, full) }
      if lists[list].open.count > 0 { writer.append(key, lists[list].open) }
    }
    return writer.finish()
  }
}

/// Entries in the order of their keys, as chunks.
struct ChunkStream {
  private var writer = ChunkWriter()
  private(set) var chunks: [(bytes: [UInt8], key: [UInt8], ordinal: UInt32)] = []
  /// Bytes of the chunks that are finished.
  private(set) var byteCount = 0

  mutating func append(_ key: [UInt8], _ list: PostingList) {
    writer.append(key, list)
    if writer.isFull { endChunk() }
  }

  mutating func append(_ key: [UInt8], _ statistics: SearchStatistics) {
    writer.append(key, statistics)
    if writer.isFull { endChunk() }
  }

  private mutating func endChunk() {
    guard !writer.isEmpty else { return }
    let (key, ordinal) = (writer.lastKey, writer.lastOrdinal)
    let bytes = writer.take()
    byteCount += bytes.count
    chunks.append((bytes, key, ordinal))
  }

  mutating func finish() -> [(bytes: [UInt8], key: [UInt8], ordinal: UInt32)] {
    endChunk()
    return chunks
  }
}
