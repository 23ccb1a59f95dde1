// Several runs as one: a walk over the chunks of each, side by side in the order of their keys.
// Ordinals stay as they are, counted from the first of all.

internal import OndolEngine

/// Merges runs of an index of words, a part at a time.
struct RunMerger: Sendable {
  private let index: IndexDefinition
  private let runs: [SearchRun]
  private let first: UInt64
  /// Which documents there still are.
  private var isAlive: [Bool]
  /// By scope.
  private var statistics: [[UInt8]: SearchStatistics] = [:]

  /// Bytes of chunks after which a part ends.
  private static let partBytes = 1 << 20

  init(
    _ index: IndexDefinition, _ runs: [SearchRun], _ ancestorCount: Int, in rows: Rows
  ) throws(DatabaseError) {
    self.index = index
    self.runs = runs
    first = runs.first?.first ?? 0
    let end = runs.last.map { $0.first + UInt64($0.count) } ?? first
    isAlive = [Bool](repeating: false, count: Int(end - first))
    let keys = index.searchKeys
    var walk = RangeWalk(rows, [KeyRange(lower: keys.document(first), upper: keys.document(end))])
    var found: [(UInt64, SearchedDocument)] = []
    while try walk.next() {
      let (key, value) = (walk.cursor.key.array, try walk.value.array)
      found.append(
        try checkingRow(of: index) { () throws(MalformedBytes) in
          var reader = ByteReader(key.bytes)
          _ = try reader.take(keys.prefix.count + 1)
          let ordinal = UInt64(bigEndian: try reader.littleEndian())
          return (ordinal, try SearchedDocument(value.bytes))
        })
    }
    for (ordinal, document) in found {
      isAlive[Int(ordinal - first)] = true
      let scope = try checkingRow(of: index) { () throws(MalformedBytes) in
        try index.scope(ofTail: document.tail, ancestorCount: ancestorCount)
      }
      statistics[Array(scope), default: SearchStatistics()].add(documentOf: document.lengths)
    }
  }

  /// Chunks of the keys behind `start`, and the last key when there are more.
  func part(
    behind start: [UInt8]?, in rows: Rows
  ) throws(DatabaseError) -> (
    chunks: [(bytes: [UInt8], key: [UInt8], ordinal: UInt32)], next: [UInt8]?
  ) {
    var stream = ChunkStream()
    var places: [PostingWalk] = []
    for run in runs { places.append(try PostingWalk(index, run, behind: start, in: rows)) }
    while true {
      var least: [UInt8]?
      for place in places {
        guard let key = place.key else { continue }
        if let known = least, key.bytes.compare(known.bytes) >= 0 { continue }
        least = key
      }
      guard let key = least else { return (stream.finish(), nil) }
      try merge(key, &places, into: &stream, in: rows)
      if stream.byteCount >= Self.partBytes { return (stream.finish(), key) }
    }
  }

  /// Merges the postings of one term.
  private func merge(
    _ key: [UInt8], _ places: inout [PostingWalk], into stream: inout ChunkStream, in rows: Rows
  ) throws(DatabaseError) {
    let isStatistics = key.last == 0
    if isStatistics, let sum = statistics[Array(key.dropLast())] { stream.append(key, sum) }
    var list = PostingList()
    for number in places.indices {
      let base = UInt32(places[number].run.first - first)
      while places[number].key == key {
        if !isStatistics {
          try places[number].forEachPosting { document, count, length, positions in
            let document = base + document
            guard Int(document) < isAlive.count, isAlive[Int(document)] else { return }
            list.append(document, occurrences: count, length: length, positions)
            if list.isFull {
              stream.append(key, list)
              list.removeAll()
            }
          }
        }
        try places[number].next(in: rows)
      }
    }
    if list.count > 0 { stream.append(key, list) }
  }
}

/// The entries of a run in their order.
private struct PostingWalk {
  private struct Entry {
    var key: [UInt8]
    var postings: [(document: UInt32, count: Int, length: Int, positions: [UInt8])]
  }

  let run: SearchRun
  private let index: IndexDefinition
  private var entries: [Entry] = []
  private var place = 0
  private var rowKey: [UInt8]
  private var isAtEnd = false

  /// - Parameter start: entries with this key or one before are passed over.
  init(
    _ index: IndexDefinition, _ run: SearchRun, behind start: [UInt8]?, in rows: Rows
  ) throws(DatabaseError) {
    self.index = index
    self.run = run
    let begin = index.searchKeys.range(run.number).lower
    // Behind the last chunk that ends with the key itself.
    rowKey = start.map { begin + $0 + [0, 0xff, 0xff, 0xff, 0xff] } ?? begin
    try load(in: rows)
    while let key = self.key, let start, key.bytes.compare(start.bytes) <= 0 { try next(in: rows) }
  }

  var key: [UInt8]? { place < entries.count ? entries[place].key : nil }

  mutating func next(in rows: Rows) throws(DatabaseError) {
    place += 1
    if place >= entries.count, !isAtEnd { try load(in: rows) }
  }

  func forEachPosting(_ visit: (UInt32, Int, Int, RawSpan) -> Void) throws(DatabaseError) {
    for posting in entries[place].postings {
      visit(posting.document, posting.count, posting.length, posting.positions.bytes)
    }
  }

  private mutating func load(in rows: Rows) throws(DatabaseError) {
    entries = []
    place = 0
    var range = index.searchKeys.range(run.number)
    range.lower = rowKey
    var walk = RangeWalk(rows, [range])
    guard try walk.next() else {
      isAtEnd = true
      return
    }
    rowKey = walk.cursor.key.array + [0]
    let chunk = try walk.value.array
    entries = try checkingRow(of: index) { () throws(MalformedBytes) in
      var entries: [Entry] = []
      var reader = ChunkReader(chunk.bytes)
      while try reader.next() {
        var entry = Entry(key: reader.key, postings: [])
        if reader.key.last != 0 || reader.entry.count > 0 {
          try reader.forEach { (document, count, length, positions) throws(MalformedBytes) in
            guard document < UInt32(run.count) else {
              throw MalformedBytes(at: 0, "a posting of no document of its run")
            }
            entry.postings.append((document, count, length, positions.array))
          }
        }
        entries.append(entry)
      }
      return entries
    }
  }
}
