// Checks whether a word index contains exactly the words of its documents. It runs in steps, like
// the check of the other indexes. A document's terms in a fresh row are compared directly. Postings
// in a run are mixed with those of other documents, so a sum is computed twice, from the documents
// and from the chunks.

internal import OndolEngine

/// A check of one index of words, between two steps.
struct WordsCheck: SteppedCheck {
  private enum Phase {
    /// Determines which ordinals are documents.
    case ordinals
    case documents
    case places
    case fresh
    /// The chunks of the run with this place.
    case chunks(Int)
    case done
  }

  /// What is known about a run.
  private struct Run {
    var run: SearchRun
    var isAlive: [Bool]
    /// The sum from the documents.
    var expected: UInt64 = 0
    /// The sum from the chunks.
    var sum: UInt64 = 0
  }

  private let pattern: CollectionPattern
  private let documents: Keyspace
  private let symbols: SymbolTable
  private let index: IndexDefinition
  private let tokenizer: Tokenizer
  private let rows: Rows
  private var state = SearchState()
  private var runs: [Run] = []
  private var phase = Phase.ordinals
  /// The last key of the previous step.
  private var last: [UInt8]?
  /// The key of the previous entry, in the chunks of a run.
  private var lastEntry: [UInt8] = []
  /// Documents with words that were found, and the number of them that are not in a run.
  private var found = (places: 0, fresh: 0)
  /// Rows of the phase.
  private var count = 0
  var findings: [Finding] = []

  private static let stepCount = 256

  /// Returns nil when the index's tokenizer is unknown, so that its words cannot be determined.
  ///
  /// - Parameter index: one that is ready.
  init?(
    _ pattern: CollectionPattern, _ entry: CollectionEntry, _ index: IndexDefinition, in rows: Rows
  ) {
    guard let tokenizer = try? rows.tokenizer(of: index, pattern) else { return nil }
    self.tokenizer = tokenizer
    self.pattern = pattern
    self.index = index
    self.rows = rows
    documents = entry.keyspace
    symbols = entry.symbols
  }

  var isDone: Bool { if case .done = phase { true } else { false } }

  mutating func step() {
    do throws(DatabaseError) {
      switch phase {
      case .ordinals: try checkOrdinals()
      case .documents: try checkDocuments()
      case .places: try countPlaces()
      case .fresh: try countFresh()
      case .chunks(let place): try checkChunks(of: place)
      case .done: break
      }
    } catch {
      findings.append(Finding(error, .index, collection: pattern.description))
      phase = .done
    }
  }

  private mutating func begin(_ next: Phase) {
    (last, lastEntry, count) = (nil, [], 0)
    phase = next
    if case .chunks(runs.count) = next { phase = .done }
  }

  private func walk(from lower: [UInt8], to upper: [UInt8]) -> RangeWalk {
    RangeWalk(rows, [KeyRange(lower: last.map { $0 + [0] } ?? lower, upper: upper)])
  }

  private func reading<Result>(
    _ body: () throws(MalformedBytes) -> Result
  ) throws(DatabaseError) -> Result {
    try checkingRow(of: index, body)
  }

  // MARK: - Documents

  private mutating func checkOrdinals() throws(DatabaseError) {
    if last == nil {
      state = try rows.searchState(of: index)
      runs = state.runs.map { Run(run: $0, isAlive: Array(repeating: false, count: $0.count)) }
    }
    let keys = index.searchKeys
    var walk = walk(from: keys.document(0), to: keys.place([]))
    for _ in 0..<Self.stepCount {
      guard try walk.next() else { return begin(.documents) }
      let (key, value) = (walk.cursor.key.array, try walk.value.array)
      last = key
      let (ordinal, document) = try reading { () throws(MalformedBytes) in
        var reader = ByteReader(key.bytes)
        _ = try reader.take(keys.prefix.count + 1)
        return (UInt64(bigEndian: try reader.littleEndian()), try SearchedDocument(value.bytes))
      }
      guard let place = place(of: ordinal),
        try rows.searchedPlace(of: document.tail, in: index) == .gathered(ordinal)
      else {
        note("has a document in its runs that is elsewhere")
        continue
      }
      runs[place].isAlive[Int(ordinal - runs[place].run.first)] = true
    }
  }

  /// The place of the run with an ordinal.
  private func place(of ordinal: UInt64) -> Int? {
    let place = runs.lastIndex { $0.run.first <= ordinal }
    guard let place, ordinal - runs[place].run.first < UInt64(runs[place].run.count) else {
      return nil
    }
    return place
  }

  private mutating func checkDocuments() throws(DatabaseError) {
    let range = KeyRange(prefix: documents.prefix)
    var walk = walk(from: range.lower, to: range.upper)
    for _ in 0..<Self.stepCount {
      guard try walk.next() else { return begin(.places) }
      let (key, value) = (walk.cursor.key.array, try walk.value.array)
      last = key
      // Documents that cannot be decoded are reported as documents.
      guard let fields = try? DocumentView(value.bytes).fields(symbols) else { continue }
      try check(Array(key.dropFirst(Keyspace.prefixLength)), fields, key)
    }
  }

  private mutating func check(
    _ tail: [UInt8], _ fields: [String: Value], _ key: [UInt8]
  ) throws(DatabaseError) {
    let row = index.freshRow(of: index.texts(in: fields), tokenizer)
    let stored = try rows.searchedPlace(of: tail, in: index)
    switch (stored, row) {
    case (nil, nil): return
    case (nil, _?): return note("lacks the words of it", key)
    case (_?, nil):
      found.places += 1
      return note("has words of it, and it has none", key)
    case (.fresh(let generation)?, let row?):
      found.places += 1
      found.fresh += 1
      guard try rows.row(index.searchKeys.fresh(generation, tail)) == row else {
        return note("has other words of it", key)
      }
      if generation < state.firstFresh { note("does not look where its words are", key) }
    case (.gathered(let ordinal)?, let row?):
      found.places += 1
      let fresh = try reading { () throws(MalformedBytes) in try FreshRow(row) }
      let expected = SearchedDocument(lengths: fresh.lengths, tail: tail)
      guard let place = place(of: ordinal),
        try rows.row(index.searchKeys.document(ordinal)) == expected.bytes
      else { return note("has other words of it", key) }
      let document = UInt32(truncatingIfNeeded: ordinal - runs[place].run.first)
      let scope = try reading { () throws(MalformedBytes) in
        try index.scope(ofTail: tail, ancestorCount: pattern.ancestorCount)
      }
      runs[place].expected &+= try reading { () throws(MalformedBytes) in
        var sum: UInt64 = 0
        var terms = fresh.terms()
        while try terms.next() {
          let field = Int(terms.term[0]) - 1
          sum &+= Self.digest(
            scope + terms.term, document, terms.count, fresh.lengths[field], row[terms.positions])
        }
        return sum
      }
    }
  }

  /// A number that represents a posting.
  private static func digest(
    _ key: some Sequence<UInt8>, _ document: UInt32, _ count: Int, _ length: Int,
    _ positions: ArraySlice<UInt8>
  ) -> UInt64 {
    var hash = TermFilter.seed
    for byte in key { TermFilter.add(byte, to: &hash) }
    for number in [UInt64(document), UInt64(count), UInt64(length)] {
      hash = TermFilter.mix(hash ^ number)
    }
    for byte in positions { TermFilter.add(byte, to: &hash) }
    return TermFilter.mix(hash)
  }

  // MARK: - Rows

  private mutating func countPlaces() throws(DatabaseError) {
    let keys = index.searchKeys
    var walk = walk(from: keys.place([]), to: keys.state)
    for _ in 0..<(16 * Self.stepCount) {
      guard try walk.next() else {
        if count != found.places { note("has words of documents that there are not") }
        return begin(.fresh)
      }
      last = walk.cursor.key.array
      count += 1
    }
  }

  private mutating func countFresh() throws(DatabaseError) {
    let keys = index.searchKeys
    var walk = walk(from: keys.fresh(0), to: keys.runs(from: 0))
    for _ in 0..<(16 * Self.stepCount) {
      guard try walk.next() else {
        if count != found.fresh { note("has words of documents that are elsewhere") }
        return begin(.chunks(0))
      }
      last = walk.cursor.key.array
      count += 1
    }
  }

  private mutating func checkChunks(of place: Int) throws(DatabaseError) {
    let range = index.searchKeys.range(runs[place].run.number)
    var walk = walk(from: range.lower, to: range.upper)
    for _ in 0..<(Self.stepCount / 16) {
      guard try walk.next() else {
        if runs[place].sum != runs[place].expected {
          note("has other words in one of its runs than the documents")
        }
        return begin(.chunks(place + 1))
      }
      let (key, chunk) = (walk.cursor.key.array, try walk.value.array)
      last = key
      do throws(DatabaseError) {
        try checkChunk(key, chunk, of: place)
      } catch {
        findings.append(Finding(error, .index, collection: pattern.description))
        return begin(.chunks(place + 1))
      }
    }
  }

  private mutating func checkChunk(
    _ key: [UInt8], _ chunk: [UInt8], of place: Int
  ) throws(DatabaseError) {
    var reader = ChunkReader(chunk)
    let run = runs[place].run
    while try reading({ () throws(MalformedBytes) in try reader.next() }) {
      guard lastEntry.bytes.compare(reader.key.bytes) <= 0,
        index.searchKeys.chunk(run.number, reader.key, reader.entry.last).bytes
          .compare(key.bytes) <= 0
      else { throw DatabaseError(searching: index, MalformedBytes(at: 0, "terms out of order")) }
      lastEntry = reader.key
      let isAlive = runs[place].isAlive
      runs[place].sum &+= try reading { () throws(MalformedBytes) in
        guard reader.entry.count > 0 else {
          _ = try reader.statistics()
          return 0
        }
        var sum: UInt64 = 0
        try reader.forEach { (document, count, length, positions) throws(MalformedBytes) in
          guard Int(document) < isAlive.count else {
            throw MalformedBytes(at: 0, "a posting of no document of its run")
          }
          guard isAlive[Int(document)] else { return }
          sum &+= Self.digest(reader.key, document, count, length, chunk[positions])
        }
        return sum
      }
    }
  }

  // MARK: - Findings

  private mutating func note(_ what: String, _ key: [UInt8]? = nil) {
    let message = "the index '\(index.name)' \(what)"
    let ids = key.flatMap {
      try? DocumentKey.ids(in: $0.bytes, ancestorCount: pattern.ancestorCount)
    }
    guard let ids, !ids.isEmpty else {
      findings.append(
        Finding(
          .error, .index, message, collection: pattern.description, hint: Finding.indexHint))
      return
    }
    let path = DocumentPath(unchecked: zip(pattern.collectionIDs, ids).flatMap { [$0, $1] })
    findings.append(Finding(message, of: path, .index, hint: Finding.indexHint))
  }
}
