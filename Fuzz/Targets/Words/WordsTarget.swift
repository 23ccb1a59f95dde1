// Indexes of words. Any bytes are a row of such an index or are refused. Any text becomes terms
// that highlighting finds again, and a row and a chunk that return what was put into them.

import OndolEngine

@testable import Ondol

enum WordsTarget: FuzzTarget {
  static let name = "words"

  static func run(_ bytes: [UInt8]) {
    var input = FuzzInput(bytes)
    switch input.below(4) {
    case 0: readChunk(input.rest())
    case 1: readRows(input.rest())
    case 2: searchText(&input)
    default: repeatTexts(&input)
    }
  }

  // MARK: - Hostile rows

  private static func readChunk(_ bytes: [UInt8]) {
    var reader = ChunkReader(bytes)
    var keys: [[UInt8]] = []
    while (try? reader.next()) == true {
      keys.append(reader.key)
      if reader.entry.count == 0 { _ = try? reader.statistics() }
      var list = Postings()
      guard reader.entry.count > 0,
        (try? reader.decode(positions: true, into: &list)) != nil
      else { continue }
      demand(
        zip(list.documents, list.documents.dropFirst()).allSatisfy { $0 < $1 },
        "documents out of order")
      var cursor = PositionCursor(list)
      for place in list.documents.indices {
        guard (try? cursor.positions(of: place)) != nil else { break }
      }
      _ = try? reader.forEach { (_, _, _, _) in }
    }
    demand(
      zip(keys, keys.dropFirst()).allSatisfy { !$1.lexicographicallyPrecedes($0) },
      "terms out of order")
    guard let wanted = keys.last else { return }
    var seeker = ChunkReader(bytes)
    demand(
      (try? seeker.seek(wanted)) == true && seeker.key == wanted, "a key that is there is not found"
    )
  }

  private static func readRows(_ bytes: [UInt8]) {
    if let row = try? FreshRow(bytes) {
      var terms = row.terms()
      while (try? terms.next()) == true { _ = try? terms.readPositions() }
    }
    if let state = try? SearchState(bytes.bytes) {
      demand((try? SearchState(state.bytes.bytes)) == state, "a state does not come back")
    }
    if let document = try? SearchedDocument(bytes.bytes) {
      demand(
        (try? SearchedDocument(document.bytes.bytes)) == document, "a document does not come back")
    }
    if let place = try? SearchedPlace(bytes.bytes) {
      demand((try? SearchedPlace(place.bytes.bytes)) == place, "a place does not come back")
    }
  }

  // MARK: - Any text

  private static func searchText(_ input: inout FuzzInput) {
    let matchesAll = input.flag()
    let tokenizer = input.flag() ? Tokenizer.english : Tokenizer()
    let question = String(decoding: input.take(input.below(64)), as: UTF8.self)
    let text = String(decoding: input.rest(), as: UTF8.self)
    let search = ParsedSearch(question, matchesAll: matchesAll, tokenizer)
    let ranges = search.ranges(in: text, tokenizer)
    let count = text.utf8.count
    demand(
      ranges.allSatisfy { $0.lowerBound < $0.upperBound && $0.upperBound <= count }
        && zip(ranges, ranges.dropFirst()).allSatisfy { $0.upperBound <= $1.lowerBound },
      "what is highlighted is not in the text")
    _ = Snippet.part(of: text, around: ranges, length: 20)
  }

  private static func repeatTexts(_ input: inout FuzzInput) {
    var builder = RunBuilder()
    let tokenizer = input.flag() ? Tokenizer.english : Tokenizer()
    var expected: [[UInt8]: [(document: UInt32, count: Int, length: Int)]] = [:]
    for document in 0..<UInt32(1 + input.below(4)) {
      var writer = FreshRowWriter()
      var lengths: [Int] = []
      var counts: [[UInt8]: Int] = [:]
      for field in 1...UInt8(1 + input.below(3)) {
        let text = String(decoding: input.take(input.below(200)), as: UTF8.self)
        let list = tokenizer.tokens(of: text)
        writer.addField(list)
        lengths.append(list.tokens.count)
        for place in list.tokens.indices {
          demand(list.term(place).count <= TokenList.longestTerm, "a term that is too long")
          counts[[field] + list.term(place), default: 0] += 1
        }
      }
      guard let bytes = writer.row() else { continue }
      guard let row = try? FreshRow(bytes), row.lengths == lengths,
        (try? builder.add(row, scope: [], document)) != nil
      else { return demand(false, "a row that was written cannot be read") }
      for (term, count) in counts {
        demand(row.mayHave(TermFilter.hash(term)), "the filter denies a term that is there")
        expected[term, default: []].append((document, count, lengths[Int(term[0]) - 1]))
      }
    }
    var found = 0
    for chunk in builder.chunks() {
      var reader = ChunkReader(chunk.bytes)
      while (try? reader.next()) == true {
        guard reader.entry.count > 0 else { continue }
        var list = Postings()
        demand((try? reader.decode(positions: true, into: &list)) != nil, "postings are refused")
        let wanted = expected[reader.key] ?? []
        demand(
          wanted.map(\.document) == list.documents
            && wanted.map { UInt32($0.count) } == list.occurrences
            && wanted.map { UInt32($0.length) } == list.lengths, "other postings than were put")
        found += 1
      }
    }
    demand(found == expected.count, "\(found) terms of \(expected.count)")
  }

  static func seeds() -> [[UInt8]] {
    var writer = FreshRowWriter()
    writer.addField(Tokenizer().tokens(of: "온돌방 lamp lamp lantern 온돌"))
    writer.addField(nil)
    writer.addField(Tokenizer().tokens(of: "Café 温泉 2026"))
    guard let row = writer.row(), let fresh = try? FreshRow(row) else { return [] }
    var builder = RunBuilder()
    for document in 0..<UInt32(300) { try? builder.add(fresh, scope: [7], document) }
    var state = SearchState()
    state.nextRun = 5
    state.nextOrdinal = 301
    state.runs = [SearchRun(number: 4, first: 1, count: 300, documents: 300)]
    let place = SearchedPlace.gathered(12).bytes
    return builder.chunks().map { [0] + $0.bytes }
      + [
        [1] + row, [1] + state.bytes, [1] + place,
        [1] + SearchedDocument(lengths: [5, 0, 3], tail: [1, 2, 3]).bytes,
        [2, 1, 1, 40] + Array("+온돌 \"a b\" NEAR(la* 방, 3) -x NOT y lamp 온돌방 옆 lamp a b".utf8),
        [3, 1, 3, 2, 60] + Array("온돌방에서 잤다 the lamp, the lantern Straße 温泉に行く é".utf8),
      ]
  }
}
