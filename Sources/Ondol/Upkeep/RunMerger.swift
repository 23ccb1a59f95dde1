// Merges several runs into one: a walk over the chunks of each, side by side in the order of their
// keys. Ordinals do not change; they are counted from the first of all. Entries of a run whose
// documents all still exist are copied unchanged; in others, each posting is checked.

internal import OndolEngine

/// Merges runs of a word index, a part at a time.
struct RunMerger: Sendable {
  private let index: IndexDefinition
  private let runs: [SearchRun]
  private let first: UInt64
  /// Which documents still exist.
  private var isAlive: [Bool]
  /// For each source run, whether all its documents still exist.
  private var isWhole: [Bool] = []
  /// By scope.
  private var statistics: [[UInt8]: SearchStatistics] = [:]
  /// The number of documents.
  private(set) var documents = 0

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
    while try walk.next() {
      try walk.show { (key, value) throws(DatabaseError) in
        let (ordinal, document) = try checkingRow(of: index) { () throws(MalformedBytes) in
          var reader = ByteReader(key)
          _ = try reader.take(keys.prefix.count + 1)
          let ordinal = UInt64(bigEndian: try reader.littleEndian())
          return (ordinal, try SearchedDocument(value))
        }
        isAlive[Int(ordinal - first)] = true
        documents += 1
        let scope = try checkingRow(of: index) { () throws(MalformedBytes) in
          try index.scope(ofTail: document.tail, ancestorCount: ancestorCount)
        }
        statistics[Array(scope), default: SearchStatistics()].add(documentOf: document.lengths)
      }
    }
    for run in runs {
      let start = Int(run.first - first)
      isWhole.append(isAlive[start..<(start + run.count)].count { $0 } == run.documents)
    }
  }

  /// Chunks of the keys after `start`, and the last key when there are more.
  func part(
    behind start: [UInt8]?, in rows: Rows
  ) throws(DatabaseError) -> (chunks: [ChunkWriter.Chunk], next: [UInt8]?) {
    var writer = ChunkWriter()
    var places: [PostingWalk] = []
    for run in runs { places.append(try PostingWalk(index, run, behind: start, in: rows)) }
    var key: [UInt8] = []
    while true {
      var least: Int?
      for number in places.indices where !places[number].isAtEnd {
        if let known = least, !places[number].isInFront(of: places[known]) { continue }
        least = number
      }
      guard let least else { return (writer.finish(isLast: true), nil) }
      key.removeAll(keepingCapacity: true)
      key.append(contentsOf: places[least].key)
      try merge(key, from: least, &places, into: &writer, in: rows)
      if writer.byteCount >= Self.partBytes { return (writer.finish(isLast: false), key) }
    }
  }

  /// Merges the postings of one term.
  ///
  /// - Parameter least: the first run that has it.
  private func merge(
    _ key: [UInt8], from least: Int, _ places: inout [PostingWalk], into writer: inout ChunkWriter,
    in rows: Rows
  ) throws(DatabaseError) {
    let isStatistics = key.last == 0 && places[least].isAtStatistics
    if isStatistics, let sum = statistics[Array(key.dropLast())] { writer.append(key, sum) }
    var list = PostingList()
    for number in least..<places.count {
      let base = UInt32(places[number].run.first - first)
      while !places[number].isAtEnd, places[number].key == key {
        if places[number].isAtStatistics {
        } else if isWhole[number] {
          let count = places[number].entry.count
          if list.count > 0, list.count + count > PostingList.entryCount {
            writer.append(key, list)
            list.removeAll()
          }
          places[number].append(to: &list, base: base)
        } else {
          try places[number].forEachPosting { document, count, length, positions in
            let document = base + document
            guard Int(document) < isAlive.count, isAlive[Int(document)] else { return }
            if list.isFull {
              writer.append(key, list)
              list.removeAll()
            }
            list.append(document, occurrences: count, length: length, positions)
          }
        }
        try places[number].next(in: rows)
      }
    }
    if list.count > 0 { writer.append(key, list) }
  }
}

/// The entries of a run in their order.
private struct PostingWalk {
  let run: SearchRun
  private let index: IndexDefinition
  private var chunk = ChunkReader([])
  private var head: UInt64 = 0
  private var rowKey: [UInt8]
  private(set) var isAtEnd = false

  /// - Parameter start: entries with this key or an earlier one are skipped.
  init(
    _ index: IndexDefinition, _ run: SearchRun, behind start: [UInt8]?, in rows: Rows
  ) throws(DatabaseError) {
    self.index = index
    self.run = run
    let begin = index.searchKeys.range(run.number).lower
    // After the last chunk that ends with the key itself.
    rowKey = start.map { begin + $0 + [0, 0xff, 0xff, 0xff, 0xff] } ?? begin
    try next(in: rows)
    while !isAtEnd, let start, key.bytes.compare(start.bytes) <= 0 { try next(in: rows) }
  }

  var key: [UInt8] { chunk.key }
  var entry: PostingEntry { chunk.entry }
  var isAtStatistics: Bool { chunk.entry.count == 0 }

  func isInFront(of other: PostingWalk) -> Bool {
    head != other.head ? head < other.head : key.bytes.compare(other.key.bytes) < 0
  }

  mutating func next(in rows: Rows) throws(DatabaseError) {
    while true {
      let isThere = try checkingRow(of: index) { () throws(MalformedBytes) in
        let isThere = try chunk.next()
        guard !isThere || chunk.entry.last < UInt32(clamping: run.count) else {
          throw MalformedBytes(at: 0, "a posting of no document of its run")
        }
        return isThere
      }
      if isThere { break }
      guard try load(in: rows) else { return }
    }
    head = chunk.key.head(of: 0..<chunk.key.count)
  }

  private mutating func load(in rows: Rows) throws(DatabaseError) -> Bool {
    var range = index.searchKeys.range(run.number)
    range.lower = rowKey
    var walk = RangeWalk(rows, [range])
    guard try walk.next() else {
      isAtEnd = true
      return false
    }
    rowKey = walk.cursor.key.array + [0]
    chunk = ChunkReader(try walk.value.array)
    return true
  }

  func append(to list: inout PostingList, base: UInt32) {
    list.append(chunk.entry, of: chunk.bytes, base: base)
  }

  func forEachPosting(
    _ visit: (UInt32, Int, Int, ArraySlice<UInt8>) -> Void
  ) throws(DatabaseError) {
    try checkingRow(of: index) { () throws(MalformedBytes) in
      try chunk.forEach { (document, count, length, positions) throws(MalformedBytes) in
        visit(document, count, length, chunk.bytes[positions])
      }
    }
  }
}
