// The terms of one document in its fresh row, which is a small index of its own.
//
//   version (1)                  1
//   fields                       count; for each the number of its tokens
//   filter                       words (count), 8 bytes each: a Bloom filter of the terms
//   terms                        count; for each: its bytes with their count, positions: count,
//                                differences
//
// A term begins with the number of its field, from 1. Terms are in the order of their first
// occurrence: a run sorts them anyway, once for many documents. All numbers except the filter's
// words are varints.

internal import OndolEngine

/// Makes fresh rows.
struct FreshRowWriter {
  /// A term, with its first and its last occurrence.
  private struct Group {
    var key: Range<Int>
    var hash: UInt64
    var count: Int
    var first: Int32
    var last: Int32
  }

  private var lengths: [Int] = []
  /// Terms, each preceded by the number of its field.
  private var bytes: [UInt8] = []
  private var groups: [Group] = []
  /// The places of groups by their hashes; -1 for none.
  private var table: [Int32] = []
  /// The position of each occurrence, and the next one of the same term; -1 for none.
  private var occurrences: [(position: Int, next: Int32)] = []

  /// Adds the text of the next field; nil when the document has none.
  mutating func addField(_ list: TokenList?) {
    lengths.append(list?.tokens.count ?? 0)
    guard let list, !list.tokens.isEmpty else { return }
    let number = UInt8(truncatingIfNeeded: lengths.count)
    makeRoom(list)
    let mask = table.count - 1
    next: for (position, token) in list.tokens.enumerated() {
      var hash = TermFilter.seed
      TermFilter.add(number, to: &hash)
      for place in token.term { TermFilter.add(list.bytes[place], to: &hash) }
      hash = TermFilter.mix(hash)
      let occurrence = Int32(truncatingIfNeeded: occurrences.count)
      occurrences.append((position, -1))
      var slot = Int(truncatingIfNeeded: hash) & mask
      while table[slot] >= 0 {
        let known = Int(table[slot])
        if groups[known].hash == hash, isSame(groups[known].key, number, list, token.term) {
          occurrences[Int(groups[known].last)].next = occurrence
          groups[known].last = occurrence
          groups[known].count += 1
          continue next
        }
        slot = (slot + 1) & mask
      }
      table[slot] = Int32(truncatingIfNeeded: groups.count)
      let start = bytes.count
      bytes.append(number)
      bytes.append(contentsOf: list.bytes[token.term])
      groups.append(
        Group(
          key: start..<bytes.count, hash: hash, count: 1, first: occurrence, last: occurrence))
    }
  }

  /// The table is never more than half full.
  private mutating func makeRoom(_ list: TokenList) {
    let room = occurrences.count + list.tokens.count
    occurrences.reserveCapacity(room)
    groups.reserveCapacity(room)
    bytes.reserveCapacity(bytes.count + list.bytes.count + list.tokens.count)
    var size = max(64, table.count)
    while size < 2 * room { size *= 2 }
    table = [Int32](repeating: -1, count: size)
    for (number, group) in groups.enumerated() {
      var slot = Int(truncatingIfNeeded: group.hash) & (size - 1)
      while table[slot] >= 0 { slot = (slot + 1) & (size - 1) }
      table[slot] = Int32(truncatingIfNeeded: number)
    }
  }

  @inline(__always)
  private func isSame(
    _ key: Range<Int>, _ number: UInt8, _ list: TokenList, _ term: Range<Int>
  ) -> Bool {
    guard key.count == term.count + 1, bytes[key.lowerBound] == number else { return false }
    var place = key.lowerBound + 1
    for other in term {
      if bytes[place] != list.bytes[other] { return false }
      place += 1
    }
    return true
  }

  /// The row; nil when no field has a token.
  func row() -> [UInt8]? {
    guard !groups.isEmpty else { return nil }
    var filter = TermFilter(terms: groups.count)
    for group in groups { filter.insert(group.hash) }
    var row: [UInt8] = [FreshRow.version]
    row.reserveCapacity(
      bytes.count + 2 * occurrences.count + 2 * groups.count + filter.bytes.count + 32)
    row.append(number: lengths.count)
    for length in lengths { row.append(number: length) }
    row.append(number: filter.bytes.count / 8)
    row.append(contentsOf: filter.bytes)
    row.append(number: groups.count)
    for group in groups {
      row.append(number: group.key.count)
      for place in group.key { row.append(bytes[place]) }
      row.append(number: group.count)
      var position = 0
      var place = group.first
      while place >= 0 {
        let next = occurrences[Int(place)]
        row.append(number: next.position - position)
        position = next.position
        place = next.next
      }
    }
    return row
  }
}

extension [UInt8] {
  /// Appends a number like `appendVarint`, which is in another module.
  @inline(__always)
  mutating func append(number: Int) {
    if number < 0x80 { append(UInt8(truncatingIfNeeded: number)) } else { appendVarint(number) }
  }
}

/// A Bloom filter of terms: eight bits for each term, and each term sets two.
struct TermFilter {
  private(set) var bytes: [UInt8]

  init(terms: Int) {
    bytes = [UInt8](repeating: 0, count: 8 * (terms / 8 + 1))
  }

  static let seed: UInt64 = 0xcbf2_9ce4_8422_2325

  /// Adds a byte to a hash that is not mixed yet.
  @inline(__always)
  static func add(_ byte: UInt8, to hash: inout UInt64) {
    hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3
  }

  @inline(__always)
  static func mix(_ hash: UInt64) -> UInt64 {
    (hash ^ (hash >> 29)) &* 0xbf58_476d_1ce4_e5b9
  }

  static func hash(_ term: [UInt8]) -> UInt64 {
    var hash = seed
    for byte in term { add(byte, to: &hash) }
    return mix(hash)
  }

  /// The two bits of a term.
  @inline(__always)
  static func bits(_ hash: UInt64, bytes: Int) -> (Int, Int) {
    let limit = UInt64(bytes) * 8
    return (
      Int(truncatingIfNeeded: (hash & 0xffff_ffff) * limit >> 32),
      Int(truncatingIfNeeded: (hash >> 32) * limit >> 32)
    )
  }

  mutating func insert(_ hash: UInt64) {
    let bits = Self.bits(hash, bytes: bytes.count)
    bytes[bits.0 / 8] |= 1 << UInt8(bits.0 % 8)
    bytes[bits.1 / 8] |= 1 << UInt8(bits.1 % 8)
  }
}

/// Reads fresh rows.
struct FreshRow {
  static let version: UInt8 = 1
  /// The most fields of an index.
  static let mostFields = 32

  let bytes: [UInt8]
  let lengths: [Int]
  private let filter: Range<Int>
  private let count: Int
  private let start: Int

  init(_ bytes: [UInt8]) throws(MalformedBytes) {
    self.bytes = bytes
    guard let version = bytes.first else { throw MalformedBytes(at: 0, "ends too early") }
    guard version == Self.version else {
      throw .newer(at: 0, "a document's terms in the unknown form \(version)")
    }
    var reader = NumberReader(bytes, at: 1)
    var lengths: [Int] = []
    for _ in 0..<(try reader.number(atMost: Self.mostFields)) {
      lengths.append(try reader.number(atMost: TokenList.mostTokens))
    }
    self.lengths = lengths
    let words = try reader.number(atMost: reader.remaining / 8)
    filter = try reader.take(8 * words)
    count = try reader.number(atMost: reader.remaining)
    start = reader.offset
  }

  /// Whether the row may contain a term with this hash.
  func mayHave(_ hash: UInt64) -> Bool {
    guard filter.count >= 8 else { return false }
    let bits = TermFilter.bits(hash, bytes: filter.count)
    return has(bits.0) && has(bits.1)
  }

  private func has(_ bit: Int) -> Bool {
    bytes[filter.lowerBound + bit / 8] & (1 << UInt8(bit % 8)) != 0
  }

  /// Its terms, in order.
  func terms() -> TermReader { TermReader(bytes, at: start, count) }
}

/// Reads the terms of a fresh row.
struct TermReader {
  private var reader: NumberReader
  private var left: Int
  /// The term, preceded by the number of the field.
  private(set) var term: [UInt8] = []
  /// The number of its occurrences.
  private(set) var count = 0
  /// Its positions in the row, as differences.
  private(set) var positions = 0..<0

  fileprivate init(_ bytes: [UInt8], at start: Int, _ count: Int) {
    reader = NumberReader(bytes, at: start)
    left = count
    term.reserveCapacity(TokenList.longestTerm + 1)
  }

  /// Moves to the next term; false when there is none.
  mutating func next() throws(MalformedBytes) -> Bool {
    guard left > 0 else {
      guard reader.isAtEnd else {
        throw MalformedBytes(at: reader.offset, "a document's terms go on behind the last")
      }
      return false
    }
    left -= 1
    let bytes = try reader.take(try reader.number(atMost: TokenList.longestTerm + 1))
    guard !bytes.isEmpty else {
      throw MalformedBytes(at: reader.offset, "a term without a field")
    }
    term.removeAll(keepingCapacity: true)
    for place in bytes { term.append(reader.bytes[place]) }
    count = try reader.number(atMost: min(TokenList.mostTokens, reader.remaining))
    let begin = reader.offset
    try reader.skip(count)
    positions = begin..<reader.offset
    return true
  }

  /// The positions of the term.
  func readPositions() throws(MalformedBytes) -> [UInt32] {
    var places = NumberReader(reader.bytes, at: positions.lowerBound)
    var found: [UInt32] = []
    try places.positions(count, into: &found)
    return found
  }
}
