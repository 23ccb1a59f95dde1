// The terms of one document, as they lie in its fresh row: a small index of its own.
//
//   version (1)                  1
//   fields                       count; for each the tokens it has
//   filter                       words (count), 8 bytes each: a Bloom filter of the terms
//   terms                        count; for each: bytes shared with the one before, further bytes
//                                with their count, positions: count, differences
//
// A term begins with the number of its field, from 1, so the terms of a field stand together. All
// numbers are varints but for the filter's words.

internal import OndolEngine

/// Makes fresh rows.
struct FreshRowWriter {
  private var lengths: [Int] = []
  /// Terms with the number of their field in front.
  private var bytes: [UInt8] = []
  private var places: [(head: UInt64, range: Range<Int>, position: Int)] = []

  /// Adds the text of the next field; nil when the document has none.
  mutating func addField(_ list: TokenList?) {
    lengths.append(list?.tokens.count ?? 0)
    guard let list else { return }
    let number = UInt8(truncatingIfNeeded: lengths.count)
    for (position, token) in list.tokens.enumerated() {
      let start = bytes.count
      bytes.append(number)
      bytes.append(contentsOf: list.bytes[token.term])
      let range = start..<bytes.count
      places.append((Self.head(bytes, range), range, position))
    }
  }

  /// The first eight bytes as a number that is ordered as they are.
  @inline(__always)
  private static func head(_ bytes: [UInt8], _ range: Range<Int>) -> UInt64 {
    var head: UInt64 = 0
    for place in 0..<8 {
      let byte = range.lowerBound + place
      head = head << 8 | UInt64(byte < range.upperBound ? bytes[byte] : 0)
    }
    return head
  }

  private func isInFront(_ left: Int, _ right: Int) -> Bool {
    let (first, second) = (places[left], places[right])
    if first.head != second.head { return first.head < second.head }
    if first.range.count > 8 || second.range.count > 8 || first.range.count != second.range.count {
      let order = compare(first.range, second.range)
      if order != 0 { return order < 0 }
    }
    return left < right
  }

  private func compare(_ left: Range<Int>, _ right: Range<Int>) -> Int {
    let whole = bytes.bytes
    return whole.extracting(left).compare(whole.extracting(right))
  }

  /// The row; nil when no field has a token.
  func row() -> [UInt8]? {
    guard !places.isEmpty else { return nil }
    let order = Array(places.indices).sorted(by: isInFront)
    var groups: [Range<Int>] = []
    var start = 0
    for place in 1...order.count {
      if place < order.count,
        places[order[start]].head == places[order[place]].head,
        compare(places[order[start]].range, places[order[place]].range) == 0
      {
        continue
      }
      groups.append(start..<place)
      start = place
    }
    var row: [UInt8] = [FreshRow.version]
    row.reserveCapacity(bytes.count + 2 * places.count + groups.count + 32)
    row.appendVarint(lengths.count)
    for length in lengths { row.appendVarint(length) }
    var filter = TermFilter(terms: groups.count)
    for group in groups {
      filter.insert(bytes.bytes.extracting(places[order[group.lowerBound]].range))
    }
    row.appendVarint(filter.words.count)
    for word in filter.words { row.appendLittleEndian(word) }
    row.appendVarint(groups.count)
    var last = 0..<0
    for group in groups {
      let range = places[order[group.lowerBound]].range
      append(range, behind: last, to: &row)
      row.appendVarint(group.count)
      var position = 0
      for place in group {
        let next = places[order[place]].position
        row.appendVarint(next - position)
        position = next
      }
      last = range
    }
    return row
  }

  private func append(_ range: Range<Int>, behind last: Range<Int>, to row: inout [UInt8]) {
    var shared = 0
    while shared < min(last.count, range.count),
      bytes[last.lowerBound + shared] == bytes[range.lowerBound + shared]
    {
      shared += 1
    }
    row.appendVarint(shared)
    row.appendVarint(range.count - shared)
    row.append(contentsOf: bytes[range.dropFirst(shared)])
  }
}

/// A Bloom filter of terms: eight bits a term, two of them set by each.
struct TermFilter {
  private(set) var words: [UInt64]

  init(terms: Int) {
    words = [UInt64](repeating: 0, count: terms / 8 + 1)
  }

  static func hash(_ term: RawSpan) -> UInt64 {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for place in 0..<term.byteCount {
      hash = (hash ^ UInt64(term.byte(at: place))) &* 0x100_0000_01b3
    }
    hash ^= hash >> 29
    return hash &* 0xbf58_476d_1ce4_e5b9
  }

  /// The two bits of a term.
  static func bits(_ hash: UInt64, words: Int) -> (Int, Int) {
    let limit = UInt64(words) * 64
    return (Int((hash & 0xffff_ffff) % limit), Int((hash >> 32) % limit))
  }

  mutating func insert(_ term: RawSpan) {
    let bits = Self.bits(Self.hash(term), words: words.count)
    words[bits.0 / 64] |= 1 << UInt64(bits.0 % 64)
    words[bits.1 / 64] |= 1 << UInt64(bits.1 % 64)
  }
}

/// Reads fresh rows.
struct FreshRow: ~Escapable {
  static let version: UInt8 = 1
  /// Fields of an index.
  static let mostFields = 32

  let lengths: [Int]
  private let filter: RawSpan
  private let terms: RawSpan
  private let count: Int

  @_lifetime(copy bytes)
  init(_ bytes: RawSpan) throws(MalformedBytes) {
    var reader = ByteReader(bytes)
    let version = try reader.byte()
    guard version == Self.version else {
      throw .newer(at: 0, "a document's terms in the unknown form \(version)")
    }
    var lengths: [Int] = []
    for _ in 0..<(try reader.count(atMost: Self.mostFields)) {
      lengths.append(try reader.count(atMost: TokenList.mostTokens))
    }
    self.lengths = lengths
    let words = try reader.count(atMost: reader.remaining / 8)
    filter = try reader.take(8 * words)
    count = try reader.count(atMost: reader.remaining)
    terms = try reader.take(reader.remaining)
  }

  /// Whether a term with this hash may be in it.
  func mayHave(_ hash: UInt64) -> Bool {
    guard filter.byteCount >= 8 else { return false }
    let bits = TermFilter.bits(hash, words: filter.byteCount / 8)
    return has(bits.0) && has(bits.1)
  }

  private func has(_ bit: Int) -> Bool {
    filter.byte(at: bit / 8) & (1 << UInt8(bit % 8)) != 0
  }

  /// Shows each term with its count and its positions, which are varints, in order, until `visit`
  /// answers false.
  func forEach(
    _ visit: (RawSpan, Int, RawSpan) throws(MalformedBytes) -> Bool
  ) throws(MalformedBytes) {
    var reader = ByteReader(terms)
    var term: [UInt8] = []
    for _ in 0..<count {
      let shared = try reader.count(atMost: term.count)
      term.removeLast(term.count - shared)
      let further = try reader.lengthPrefixed()
      guard shared + further.byteCount <= TokenList.longestTerm + 1, further.byteCount > 0 else {
        throw MalformedBytes(at: reader.offset, "a term that is too long, or the same again")
      }
      term.append(further)
      let positions = try reader.count(atMost: min(TokenList.mostTokens, reader.remaining))
      let start = reader.offset
      for _ in 0..<positions { _ = try reader.varint() }
      let list = terms.extracting(start..<reader.offset)
      guard try visit(term.bytes, positions, list) else { return }
    }
    guard reader.isAtEnd else {
      throw MalformedBytes(at: reader.offset, "a document's terms go on behind the last")
    }
  }
}
