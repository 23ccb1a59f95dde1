// Postings: which documents have a term, how often, where, and how long they are. In a gathered run
// they lie in chunks, rows of some kilobytes that hold the postings of many terms in order:
//
//   entry    bytes of the key shared with the entry before, further bytes with their count,
//            postings (1-128), first ordinal, bytes of documents, bytes of positions,
//            documents: difference to the ordinal before (the first has none), occurrences, length
//            positions: for each document, differences
//
// All numbers are varints, ordinals counted from the run's first. A term with many documents has
// several entries, one behind the other.

internal import OndolEngine

/// The postings of a term in some documents, decoded.
struct Postings: Sendable {
  /// Documents in order, counted from the first of the run.
  var documents: [UInt32] = []
  /// How often each has it.
  var occurrences: [UInt32] = []
  /// Tokens of each document's field.
  var lengths: [UInt32] = []
  /// Where, one document behind the other; only where they were wanted.
  var positions: [UInt32] = []
  /// Where the positions of each document begin, and where the last end.
  var starts: [Int] = [0]

  func positions(of place: Int) -> ArraySlice<UInt32> {
    positions[starts[place]..<starts[place + 1]]
  }

  /// Adds a document behind the others.
  mutating func append(
    _ document: UInt32, occurrences count: UInt32, length: UInt32, _ places: some Sequence<UInt32>
  ) {
    documents.append(document)
    occurrences.append(count)
    lengths.append(length)
    positions.append(contentsOf: places)
    starts.append(positions.count)
  }

  /// Several lists as one, as those of the terms with a prefix are.
  ///
  /// - Parameter keepsPositions: the lists have positions.
  init(merging lists: [Postings], keepsPositions: Bool) {
    if lists.count == 1 {
      self = lists[0]
      return
    }
    self.init()
    var order: [(document: UInt32, list: Int, place: Int)] = []
    for (number, list) in lists.enumerated() {
      for place in list.documents.indices { order.append((list.documents[place], number, place)) }
    }
    order.sort { ($0.document, $0.list) < ($1.document, $1.list) }
    var next = 0
    while next < order.count {
      let first = next
      while next < order.count, order[next].document == order[first].document { next += 1 }
      let group = order[first..<next]
      let places =
        keepsPositions ? group.flatMap { lists[$0.list].positions(of: $0.place) }.sorted() : []
      append(
        order[first].document,
        occurrences: group.reduce(0) { $0 + lists[$1.list].occurrences[$1.place] },
        length: lists[order[first].list].lengths[order[first].place], places)
    }
  }

  init() {}
}

/// An entry of a chunk.
struct PostingEntry {
  var count: Int
  var first: UInt32
  var documentBytes: Int
  var positionBytes: Int
}

/// Where the postings of a term are gathered before they are entries.
struct PostingList {
  static let entryCount = 128

  private(set) var count = 0
  private(set) var first: UInt32 = 0
  private(set) var last: UInt32 = 0
  private(set) var documents: [UInt8] = []
  private(set) var positions: [UInt8] = []

  var isFull: Bool { count == Self.entryCount }

  /// - Parameter list: the positions as they lie in rows.
  mutating func append(
    _ document: UInt32, occurrences: Int, length: Int, _ list: RawSpan
  ) {
    if count == 0 { first = document } else { documents.appendVarint(Int(document - last)) }
    last = document
    count += 1
    documents.appendVarint(occurrences)
    documents.appendVarint(length)
    positions.append(list)
  }

  mutating func removeAll() {
    count = 0
    documents.removeAll(keepingCapacity: true)
    positions.removeAll(keepingCapacity: true)
  }
}

/// Makes chunks of entries, which come in the order of their keys.
struct ChunkWriter {
  /// Bytes after which a chunk ends.
  static let chunkBytes = 4 << 10

  private(set) var bytes: [UInt8] = []
  private(set) var lastKey: [UInt8] = []
  private(set) var lastOrdinal: UInt32 = 0

  var isFull: Bool { bytes.count >= Self.chunkBytes }
  var isEmpty: Bool { bytes.isEmpty }

  mutating func append(_ key: [UInt8], _ list: PostingList) {
    begin(key)
    bytes.appendVarint(list.count)
    bytes.appendVarint(Int(list.first))
    bytes.appendVarint(list.documents.count)
    bytes.appendVarint(list.positions.count)
    bytes.append(contentsOf: list.documents)
    bytes.append(contentsOf: list.positions)
    lastOrdinal = list.last
  }

  /// Appends what a scope's scores depend on, as an entry without postings.
  mutating func append(_ key: [UInt8], _ statistics: SearchStatistics) {
    begin(key)
    let value = statistics.bytes
    bytes.appendVarint(0)
    bytes.appendVarint(0)
    bytes.appendVarint(value.count)
    bytes.appendVarint(0)
    bytes.append(contentsOf: value)
    lastOrdinal = 0
  }

  private mutating func begin(_ key: [UInt8]) {
    var shared = 0
    while shared < min(key.count, lastKey.count), key[shared] == lastKey[shared] { shared += 1 }
    bytes.appendVarint(shared)
    bytes.appendVarint(key.count - shared)
    bytes.append(contentsOf: key[shared...])
    lastKey = key
  }

  /// Gives the chunk away and begins the next.
  mutating func take() -> [UInt8] {
    defer { self = ChunkWriter() }
    return bytes
  }
}

/// Reads chunks.
struct ChunkReader: ~Escapable {
  private var reader: ByteReader
  private(set) var key: [UInt8] = []
  private(set) var entry = PostingEntry(count: 0, first: 0, documentBytes: 0, positionBytes: 0)
  private var start = 0

  @_lifetime(copy bytes)
  init(_ bytes: RawSpan) {
    reader = ByteReader(bytes)
  }

  /// Moves to the next entry; false when there is none.
  @_lifetime(self: copy self)
  mutating func next() throws(MalformedBytes) -> Bool {
    guard !reader.isAtEnd else { return false }
    let shared = try reader.count(atMost: key.count)
    key.removeLast(key.count - shared)
    key.append(try reader.lengthPrefixed())
    let count = try reader.count(atMost: PostingList.entryCount)
    let first = UInt32(try reader.count(atMost: Int(UInt32.max)))
    let documentBytes = try reader.count(atMost: reader.remaining)
    let positionBytes = try reader.count(atMost: max(0, reader.remaining - documentBytes))
    start = reader.offset
    _ = try reader.take(documentBytes + positionBytes)
    entry = PostingEntry(
      count: count, first: first, documentBytes: documentBytes, positionBytes: positionBytes)
    return true
  }

  /// Shows each posting of the entry: document, occurrences, length, positions as they lie there.
  func forEach(
    _ visit: (UInt32, Int, Int, RawSpan) throws(MalformedBytes) -> Void
  ) throws(MalformedBytes) {
    var documents = ByteReader(reader.bytes.extracting(start..<(start + entry.documentBytes)))
    let behind = start + entry.documentBytes
    var positions = ByteReader(reader.bytes.extracting(behind..<(behind + entry.positionBytes)))
    var document = UInt64(entry.first)
    for number in 0..<entry.count {
      if number > 0 { document = try Self.next(document, &documents) }
      let occurrences = try documents.count(atMost: TokenList.mostTokens)
      let length = try documents.count(atMost: TokenList.mostTokens)
      let begin = positions.offset
      for _ in 0..<occurrences { _ = try positions.varint() }
      try visit(
        UInt32(document), occurrences, length,
        positions.bytes.extracting(begin..<positions.offset))
    }
    guard documents.isAtEnd, positions.isAtEnd else {
      throw MalformedBytes(at: reader.offset, "postings that go on behind the last")
    }
  }

  private static func next(
    _ document: UInt64, _ reader: inout ByteReader
  ) throws(MalformedBytes) -> UInt64 {
    let step = try reader.count(atMost: Int(UInt32.max))
    guard step > 0, document + UInt64(step) <= UInt64(UInt32.max) else {
      throw MalformedBytes(at: reader.offset, "postings out of order")
    }
    return document + UInt64(step)
  }

  /// The entry of a scope's statistics.
  func statistics() throws(MalformedBytes) -> SearchStatistics {
    try SearchStatistics(reader.bytes.extracting(start..<(start + entry.documentBytes)))
  }

  /// Appends the entry's postings.
  func decode(positions wantsPositions: Bool, into list: inout Postings) throws(MalformedBytes) {
    if wantsPositions {
      try forEach { (document, occurrences, length, places) throws(MalformedBytes) in
        list.append(
          document, occurrences: UInt32(occurrences), length: UInt32(length),
          try PositionReader.positions(places))
      }
      return
    }
    var documents = ByteReader(reader.bytes.extracting(start..<(start + entry.documentBytes)))
    var document = UInt64(entry.first)
    for number in 0..<entry.count {
      if number > 0 { document = try Self.next(document, &documents) }
      list.documents.append(UInt32(document))
      list.occurrences.append(UInt32(try documents.count(atMost: TokenList.mostTokens)))
      list.lengths.append(UInt32(try documents.count(atMost: TokenList.mostTokens)))
      list.starts.append(0)
    }
  }
}

/// Reads positions.
enum PositionReader {
  static func positions(_ bytes: RawSpan) throws(MalformedBytes) -> [UInt32] {
    var reader = ByteReader(bytes)
    var positions: [UInt32] = []
    var position = 0
    while !reader.isAtEnd {
      position += try reader.count(atMost: TokenList.mostTokens)
      guard position <= TokenList.mostTokens else {
        throw MalformedBytes(at: reader.offset, "a position behind the last")
      }
      positions.append(UInt32(position))
    }
    return positions
  }
}
