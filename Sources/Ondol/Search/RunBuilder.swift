// Makes a run of documents' terms: fresh rows are ordered by document, chunks by term. All postings
// are in one array in the order of documents, and are moved into the order of their terms at the
// end, so that they can be read sequentially. Reading each one at its original position took most
// of the time, because of cache misses. Pure: SearchPacker stores the rows.

internal import OndolEngine

/// Collects documents.
struct RunBuilder {
  private struct Term {
    var key: Range<Int>
    var hash: UInt64
    var count = 0
  }

  private struct Posting {
    var term: Int32
    var document: UInt32
    var occurrences: UInt32
    var length: UInt32
    /// The start of its positions, and their length in bytes.
    var start: UInt32
    var byteCount: UInt32
  }

  /// The keys of all terms, one after the other.
  private var keys: [UInt8] = []
  private var terms: [Term] = []
  /// The places of terms by their hashes, less than half full; -1 for none.
  private var table = [Int32](repeating: -1, count: 1 << 12)
  private var postings: [Posting] = []
  private var positions: [UInt8] = []
  private var statistics: [[UInt8]: SearchStatistics] = [:]

  /// Adds a document, whose number in the run must be greater than the previous ones.
  mutating func add(
    _ row: FreshRow, scope: ArraySlice<UInt8>, _ document: UInt32
  ) throws(MalformedBytes) {
    statistics[Array(scope), default: SearchStatistics()].add(documentOf: row.lengths)
    var seed = TermFilter.seed
    for byte in scope { TermFilter.add(byte, to: &seed) }
    var reader = row.terms()
    while try reader.next() {
      let field = Int(reader.term.first ?? 0) - 1
      guard row.lengths.indices.contains(field) else {
        throw MalformedBytes(at: 0, "a term of an unknown field")
      }
      let term = place(of: reader.term, scope, seed)
      terms[term].count += 1
      postings.append(
        Posting(
          term: Int32(truncatingIfNeeded: term), document: document,
          occurrences: UInt32(truncatingIfNeeded: reader.count),
          length: UInt32(truncatingIfNeeded: row.lengths[field]),
          start: UInt32(positions.count), byteCount: UInt32(reader.positions.count)))
      if reader.positions.count == 1 {
        positions.append(row.bytes[reader.positions.lowerBound])
      } else {
        positions.append(contentsOf: row.bytes[reader.positions])
      }
    }
  }

  private mutating func place(
    of term: [UInt8], _ scope: ArraySlice<UInt8>, _ seed: UInt64
  ) -> Int {
    var hash = seed
    for byte in term { TermFilter.add(byte, to: &hash) }
    hash = TermFilter.mix(hash)
    let mask = table.count - 1
    var slot = Int(truncatingIfNeeded: hash) & mask
    while table[slot] >= 0 {
      let known = Int(table[slot])
      if terms[known].hash == hash, isSame(terms[known].key, scope, term) { return known }
      slot = (slot + 1) & mask
    }
    let start = keys.count
    keys.append(contentsOf: scope)
    keys.append(contentsOf: term)
    terms.append(Term(key: start..<keys.count, hash: hash))
    table[slot] = Int32(truncatingIfNeeded: terms.count - 1)
    if terms.count * 2 > table.count { grow() }
    return terms.count - 1
  }

  private func isSame(_ key: Range<Int>, _ scope: ArraySlice<UInt8>, _ term: [UInt8]) -> Bool {
    guard key.count == scope.count + term.count else { return false }
    var place = key.lowerBound
    for byte in scope {
      if keys[place] != byte { return false }
      place += 1
    }
    for byte in term {
      if keys[place] != byte { return false }
      place += 1
    }
    return true
  }

  private mutating func grow() {
    table = [Int32](repeating: -1, count: table.count * 4)
    let mask = table.count - 1
    for (number, term) in terms.enumerated() {
      var slot = Int(truncatingIfNeeded: term.hash) & mask
      while table[slot] >= 0 { slot = (slot + 1) & mask }
      table[slot] = Int32(truncatingIfNeeded: number)
    }
  }

  /// The run's chunks.
  func chunks() -> [ChunkWriter.Chunk] {
    var keys = keys
    var order: [(head: UInt64, key: Range<Int>, term: Int)] = []
    order.reserveCapacity(terms.count + statistics.count)
    for (number, term) in terms.enumerated() {
      order.append((keys.head(of: term.key), term.key, number))
    }
    var scopes: [SearchStatistics] = []
    for (scope, sum) in statistics {
      let start = keys.count
      keys += scope + [0]
      scopes.append(sum)
      order.append((keys.head(of: start..<keys.count), start..<keys.count, -scopes.count))
    }
    order.sort { left, right in
      left.head != right.head ? left.head < right.head : keys.compare(left.key, right.key) < 0
    }
    let (postings, ends) = postingsByTerm()
    var writer = ChunkWriter()
    var list = PostingList()
    for (_, key, term) in order {
      guard term >= 0 else {
        writer.append(keys[key], scopes[-term - 1])
        continue
      }
      let end = ends[term]
      for posting in postings[(end - terms[term].count)..<end] {
        let start = Int(posting.start)
        list.append(
          posting.document, occurrences: Int(posting.occurrences), length: Int(posting.length),
          positions[start..<start + Int(posting.byteCount)])
        if list.isFull {
          writer.append(keys[key], list)
          list.removeAll()
        }
      }
      if list.count > 0 { writer.append(keys[key], list) }
      list.removeAll()
    }
    return writer.finish(isLast: true)
  }

  /// The postings in the order of their terms, and where those of each term end.
  private func postingsByTerm() -> (postings: [Posting], ends: [Int]) {
    var ends: [Int] = []
    ends.reserveCapacity(terms.count)
    var sum = 0
    for term in terms {
      ends.append(sum)
      sum += term.count
    }
    let nothing = Posting(
      term: 0, document: 0, occurrences: 0, length: 0, start: 0, byteCount: 0)
    var sorted = [Posting](repeating: nothing, count: postings.count)
    for posting in postings {
      let term = Int(posting.term)
      sorted[ends[term]] = posting
      ends[term] += 1
    }
    return (sorted, ends)
  }
}
