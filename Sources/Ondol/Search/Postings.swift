// Postings: which documents have a term, how often and where, and how long the documents are. In a
// run of words, they are in chunks, rows of a few kilobytes that hold the postings of many terms in
// order:
//
//   entry    bytes of the key shared with the previous entry, further bytes with their count,
//            postings (1-128), first ordinal, last ordinal less the first, bytes of documents,
//            bytes of positions,
//            documents: difference to the previous one (none for the first), occurrences, length
//            positions: for each document, differences
//
// All numbers are varints; ordinals are counted from the run's first. A term with many documents
// has several consecutive entries. Inserting a difference between the documents of two entries of a
// term joins them into one, so a merge copies bytes. An entry of 0 postings has, after that number,
// bytes with their count: the statistics that a scope's scores depend on.

internal import OndolEngine

/// The postings of a term in some documents, decoded.
struct Postings: Sendable {
  /// Documents in order, counted from the first of the run.
  var documents: [UInt32] = []
  /// The number of occurrences in each.
  var occurrences: [UInt32] = []
  /// Tokens of each document's field.
  var lengths: [UInt32] = []
  /// The positions, document after document, as differences within each; only when requested.
  var positions: [UInt8] = []

  init() {}

  /// Adds a document after the others.
  mutating func append(_ document: UInt32, occurrences count: UInt32, length: UInt32) {
    documents.append(document)
    occurrences.append(count)
    lengths.append(length)
  }

  /// Merges several lists into one, such as those of the terms with a prefix.
  ///
  /// - Parameter keepsPositions: the lists have positions.
  init(merging lists: [Postings], keepsPositions: Bool) throws(MalformedBytes) {
    if lists.count == 1 {
      self = lists[0]
      return
    }
    self.init()
    // Documents in the upper half, and their index in all lists together in the lower.
    var order: [UInt64] = []
    var cursors: [PositionCursor] = []
    for (number, list) in lists.enumerated() {
      for document in list.documents { order.append(UInt64(document) << 32 | UInt64(number)) }
      if keepsPositions { cursors.append(PositionCursor(list)) }
    }
    order.sort()
    var places = [Int](repeating: 0, count: lists.count)
    var found: [UInt32] = []
    for (place, item) in order.enumerated() {
      let document = UInt32(truncatingIfNeeded: item >> 32)
      let number = Int(truncatingIfNeeded: item & 0xffff_ffff)
      let count = lists[number].occurrences[places[number]]
      if documents.last == document {
        occurrences[documents.count - 1] += count
      } else {
        append(document, occurrences: count, length: lists[number].lengths[places[number]])
      }
      if keepsPositions {
        found += try cursors[number].positions(of: places[number])
        if place + 1 == order.count || order[place + 1] >> 32 != item >> 32 {
          appendPositions(found.sorted())
          found.removeAll(keepingCapacity: true)
        }
      }
      places[number] += 1
    }
  }

  mutating func appendPositions(_ sorted: [UInt32]) {
    var last: UInt32 = 0
    for position in sorted {
      positions.appendVarint(Int(position - last))
      last = position
    }
  }
}

/// Reads the positions of one document after the other, and skips those that are not requested.
struct PositionCursor {
  private let occurrences: [UInt32]
  private var reader: NumberReader
  private var next = 0

  init(_ list: Postings) {
    occurrences = list.occurrences
    reader = NumberReader(list.positions)
  }

  /// The positions of a document, which must come after those requested before.
  mutating func positions(of place: Int) throws(MalformedBytes) -> [UInt32] {
    var positions: [UInt32] = []
    try read(place, into: &positions)
    return positions
  }

  /// The same, replacing the contents of an array.
  mutating func read(_ place: Int, into positions: inout [UInt32]) throws(MalformedBytes) {
    var passed = 0
    while next < place {
      passed += Int(occurrences[next])
      next += 1
    }
    try reader.skip(passed)
    next = place + 1
    try reader.positions(Int(occurrences[place]), into: &positions)
  }
}

extension NumberReader {
  /// Replaces the contents of an array with that many positions, which are stored as differences.
  @inline(__always)
  mutating func positions(
    _ count: Int, into positions: inout [UInt32]
  ) throws(MalformedBytes) {
    positions.removeAll(keepingCapacity: true)
    var position = 0
    for _ in 0..<count {
      position += try number(atMost: TokenList.mostTokens)
      guard position <= TokenList.mostTokens else {
        throw MalformedBytes(at: offset, "a position behind the last")
      }
      positions.append(UInt32(truncatingIfNeeded: position))
    }
  }
}

/// The header of an entry's postings.
struct PostingEntry {
  /// 0 for the statistics that a scope's scores depend on.
  var count = 0
  var first: UInt32 = 0
  var last: UInt32 = 0
  /// The positions of its documents and positions in the chunk.
  var documents = 0..<0
  var positions = 0..<0
}

/// Collects the postings of a term until they become an entry.
struct PostingList {
  static let entryCount = 128

  private(set) var count = 0
  private(set) var first: UInt32 = 0
  private(set) var last: UInt32 = 0
  private(set) var documents: [UInt8] = []
  private(set) var positions: [UInt8] = []

  var isFull: Bool { count >= Self.entryCount }

  private mutating func begin(_ document: UInt32) {
    if count == 0 { first = document } else { documents.append(number: Int(document - last)) }
  }

  /// - Parameter places: the positions in their stored form.
  mutating func append(
    _ document: UInt32, occurrences: Int, length: Int, _ places: ArraySlice<UInt8>
  ) {
    begin(document)
    last = document
    count += 1
    documents.append(number: occurrences)
    documents.append(number: length)
    for place in places { positions.append(place) }
  }

  /// Adds a whole entry, whose ordinals are counted from another first one.
  mutating func append(_ entry: PostingEntry, of chunk: [UInt8], base: UInt32) {
    begin(base + entry.first)
    last = base + entry.last
    count += entry.count
    documents.append(contentsOf: chunk[entry.documents])
    positions.append(contentsOf: chunk[entry.positions])
  }

  mutating func removeAll() {
    count = 0
    documents.removeAll(keepingCapacity: true)
    positions.removeAll(keepingCapacity: true)
  }
}

/// Entries in the order of their keys, as chunks.
struct ChunkWriter {
  /// A chunk, its last key, and the last ordinal of that.
  struct Chunk {
    var bytes: [UInt8]
    var key: [UInt8]
    var ordinal: UInt32
  }

  /// The size in bytes at which a chunk ends.
  static let chunkBytes = 4 << 10

  private var bytes: [UInt8] = []
  private var lastKey: [UInt8] = []
  private var lastOrdinal: UInt32 = 0
  private(set) var chunks: [Chunk] = []
  /// Bytes of the finished chunks.
  private(set) var byteCount = 0

  mutating func append(_ key: some Collection<UInt8>, _ list: PostingList) {
    begin(key)
    bytes.appendVarint(list.count)
    bytes.appendVarint(Int(list.first))
    bytes.appendVarint(Int(list.last - list.first))
    bytes.appendVarint(list.documents.count)
    bytes.appendVarint(list.positions.count)
    bytes.append(contentsOf: list.documents)
    bytes.append(contentsOf: list.positions)
    lastOrdinal = list.last
    if bytes.count >= Self.chunkBytes { endChunk() }
  }

  /// Appends the statistics that a scope's scores depend on, as an entry without postings.
  mutating func append(_ key: some Collection<UInt8>, _ statistics: SearchStatistics) {
    begin(key)
    let value = statistics.bytes
    bytes.appendVarint(0)
    bytes.appendVarint(value.count)
    bytes.append(contentsOf: value)
    lastOrdinal = 0
    if bytes.count >= Self.chunkBytes { endChunk() }
  }

  private mutating func begin(_ key: some Collection<UInt8>) {
    if bytes.isEmpty { bytes.reserveCapacity(Self.chunkBytes + 512) }
    var shared = 0
    var place = key.startIndex
    while shared < lastKey.count, place < key.endIndex, key[place] == lastKey[shared] {
      shared += 1
      place = key.index(after: place)
    }
    bytes.appendVarint(shared)
    bytes.appendVarint(key.count - shared)
    bytes.append(contentsOf: key[place...])
    lastKey.removeLast(lastKey.count - shared)
    lastKey.append(contentsOf: key[place...])
  }

  private mutating func endChunk() {
    guard !bytes.isEmpty else { return }
    byteCount += bytes.count
    chunks.append(Chunk(bytes: bytes, key: lastKey, ordinal: lastOrdinal))
    bytes = []
    lastKey = []
  }

  /// The chunks.
  ///
  /// - Parameter isLast: whether nothing of the run comes after them. The last chunk then gets a
  ///   key such that a seek for any key finds a chunk of the run.
  mutating func finish(isLast: Bool) -> [Chunk] {
    endChunk()
    if isLast, !chunks.isEmpty { chunks[chunks.count - 1].key = [0xff] }
    return chunks
  }
}

/// Reads chunks.
struct ChunkReader {
  private var reader: NumberReader
  private(set) var key: [UInt8] = []
  private(set) var entry = PostingEntry()

  init(_ bytes: [UInt8]) {
    reader = NumberReader(bytes)
  }

  var bytes: [UInt8] { reader.bytes }

  /// Moves to the next entry; false when there is none.
  mutating func next() throws(MalformedBytes) -> Bool {
    guard !reader.isAtEnd else { return false }
    let shared = try reader.number(atMost: key.count)
    let further = try reader.take(try reader.number(atMost: reader.remaining))
    if shared < key.count { try demand(further, isBehind: key[shared]) }
    key.removeLast(key.count - shared)
    key.append(contentsOf: reader.bytes[further])
    try readEntry()
    return true
  }

  /// Moves from the beginning to the first entry at or after the key; false when there is none.
  /// Does not assemble the keys before it.
  mutating func seek(_ wanted: [UInt8]) throws(MalformedBytes) -> Bool {
    // This many bytes of the previous key equal those of the wanted key, which is greater.
    var matched = 0
    var length = 0
    while !reader.isAtEnd {
      let shared = try reader.number(atMost: length)
      let further = try reader.take(try reader.number(atMost: reader.remaining))
      length = shared + further.count
      var isThere = shared < matched
      if isThere {
        try demand(further, isBehind: wanted[shared])
      } else if shared == matched {
        var place = further.lowerBound
        while place < further.upperBound, matched < wanted.count,
          reader.bytes[place] == wanted[matched]
        {
          place += 1
          matched += 1
        }
        isThere =
          matched == wanted.count
          || place < further.upperBound && reader.bytes[place] > wanted[matched]
      }
      if isThere {
        key = Array(wanted[..<shared]) + reader.bytes[further]
        try readEntry()
        return true
      }
      try readEntry()
    }
    return false
  }

  /// Throws unless the bytes after the shared ones show that a key comes after the previous one and
  /// shares no more with it. Searching without assembling keys relies on both.
  private func demand(_ further: Range<Int>, isBehind byte: UInt8) throws(MalformedBytes) {
    guard let first = further.first, reader.bytes[first] > byte else {
      throw MalformedBytes(at: further.lowerBound, "terms out of order")
    }
  }

  private mutating func readEntry() throws(MalformedBytes) {
    let count = try reader.number(atMost: PostingList.entryCount)
    entry.count = count
    guard count > 0 else {
      entry.documents = try reader.take(try reader.number(atMost: reader.remaining))
      entry.positions = entry.documents.upperBound..<entry.documents.upperBound
      return
    }
    let first = try reader.number(atMost: Int(UInt32.max))
    entry.first = UInt32(first)
    entry.last = UInt32(first + (try reader.number(atMost: Int(UInt32.max) - first)))
    let documents = try reader.number(atMost: reader.remaining)
    let positions = try reader.number(atMost: reader.remaining)
    entry.documents = try reader.take(documents)
    entry.positions = try reader.take(positions)
  }

  /// The entry of a scope's statistics.
  func statistics() throws(MalformedBytes) -> SearchStatistics {
    try SearchStatistics(Array(reader.bytes[entry.documents]).bytes)
  }

  /// Shows each posting of the entry: document, occurrences, length, and where its positions are.
  func forEach(
    _ visit: (UInt32, Int, Int, Range<Int>) throws(MalformedBytes) -> Void
  ) throws(MalformedBytes) {
    var documents = NumberReader(reader.bytes, at: entry.documents.lowerBound)
    var positions = NumberReader(reader.bytes, at: entry.positions.lowerBound)
    var document = Int(entry.first)
    for number in 0..<entry.count {
      if number > 0 { document += try documents.number(atMost: Int(entry.last) - document) }
      let occurrences = try documents.number(atMost: TokenList.mostTokens)
      let length = try documents.number(atMost: TokenList.mostTokens)
      let begin = positions.offset
      try positions.skip(occurrences)
      try visit(UInt32(document), occurrences, length, begin..<positions.offset)
    }
    guard documents.offset == entry.documents.upperBound, document == Int(entry.last),
      positions.offset == entry.positions.upperBound
    else { throw MalformedBytes(at: reader.offset, "postings that are not as long as they say") }
  }

  /// Appends the entry's postings.
  func decode(positions wantsPositions: Bool, into list: inout Postings) throws(MalformedBytes) {
    var documents = NumberReader(reader.bytes, at: entry.documents.lowerBound)
    var document = Int(entry.first)
    if let last = list.documents.last, document <= Int(last) { throw outOfOrder() }
    var number = entry.count
    while true {
      let occurrences = try documents.number(atMost: TokenList.mostTokens)
      let length = try documents.number(atMost: TokenList.mostTokens)
      list.append(
        UInt32(truncatingIfNeeded: document), occurrences: UInt32(truncatingIfNeeded: occurrences),
        length: UInt32(truncatingIfNeeded: length))
      number -= 1
      guard number > 0 else { break }
      let step = try documents.number(atMost: Int(entry.last) - document)
      guard step > 0 else { throw outOfOrder() }
      document += step
    }
    guard documents.offset == entry.documents.upperBound, document == Int(entry.last) else {
      throw outOfOrder()
    }
    if wantsPositions { list.positions.append(contentsOf: reader.bytes[entry.positions]) }
  }

  private func outOfOrder() -> MalformedBytes {
    MalformedBytes(at: reader.offset, "postings out of order")
  }
}
