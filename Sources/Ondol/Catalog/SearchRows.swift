// An index of words: what it is, and which rows it has. Its rows are of several kinds, and but for
// the first no row is of one document alone, so that a put writes one row and not one a word.
//
//   keyspace ++ 00 ++ tail                            a document's terms, until they are gathered
//   keyspace ++ 01 ++ run (8 BE) ++ last key of it    a chunk of a run's postings
//   keyspace ++ 02 ++ ordinal (8 BE)                  lengths by field, tail; a document of a run
//   keyspace ++ 03 ++ tail                            ordinal: where a document is gathered
//   keyspace ++ 04                                    the runs, and which numbers are next
//
// The tail is what the document's key ends with: the ids of its ancestors and its own. A document
// has a row 00 or the rows 02 and 03, never both. A write puts row 00 and takes 02 and 03 away; the
// postings that are left in runs mean nothing without 02, and go when runs are merged. Runs are
// immutable. Only upkeep makes and merges them (SearchPacker), so ordinals are its alone and no
// two writers share a row.
//
// The key of postings is the scope (the ids of the ancestors; nothing for a group's index), the
// number of the field from 1, and the term. Field 0 is the scope's statistics in the run.

internal import OndolEngine

/// How an index finds words.
struct SearchKind: Sendable, Hashable {
  /// The tokenizer's number.
  var tokenizer = 1
  /// How much occurrences in each field count, in thousandths.
  var weights: [Int]

  static let tokenizerLimit = 1
  static let greatestWeight = 1_000_000

  /// The fields, with weights behind those that have one, and what the index is.
  func name(of fields: [IndexField]) -> String {
    let texts = zip(fields, weights).map { (field, weight) in
      if weight == 1000 { return "\(field)" }
      let fraction = weight % 1000
      var digits = String(1000 + fraction).dropFirst()
      while digits.last == "0" { digits.removeLast() }
      return "\(field)^\(weight / 1000)" + (digits.isEmpty ? "" : ".\(digits)")
    }
    return texts.joined(separator: ",") + " search"
  }
}

extension [UInt8] {
  /// Appends how an index finds words.
  mutating func append(_ search: SearchKind) {
    appendVarint(search.tokenizer)
    for weight in search.weights { appendVarint(weight) }
  }
}

extension ByteReader {
  @_lifetime(self: copy self)
  mutating func searchKind(of fields: [IndexField]) throws(MalformedBytes) -> SearchKind {
    let tokenizer = try count(atMost: Int(UInt32.max))
    guard tokenizer >= 1, tokenizer <= SearchKind.tokenizerLimit else {
      throw .newer(at: offset, "an index of words with the unknown tokenizer \(tokenizer)")
    }
    guard fields.count <= FreshRow.mostFields else {
      throw MalformedBytes(at: offset, "an index of words of \(fields.count) fields")
    }
    var weights: [Int] = []
    for _ in fields { weights.append(try count(atMost: SearchKind.greatestWeight)) }
    return SearchKind(tokenizer: tokenizer, weights: weights)
  }
}

/// Keys of the rows of an index of words.
struct SearchKeys: Sendable {
  let prefix: [UInt8]

  init(_ index: Keyspace) {
    prefix = index.prefix
  }

  func fresh(_ tail: some Sequence<UInt8>) -> [UInt8] { prefix + [0] + tail }
  func runs(from run: UInt64) -> [UInt8] { number(1, run) }
  func chunk(_ run: UInt64, _ key: [UInt8], _ ordinal: UInt32) -> [UInt8] {
    var bytes = number(1, run) + key + [0]
    bytes.appendBigEndian(ordinal)
    return bytes
  }
  func document(_ ordinal: UInt64) -> [UInt8] { number(2, ordinal) }
  func ordinal(_ tail: some Sequence<UInt8>) -> [UInt8] { prefix + [3] + tail }
  var state: [UInt8] { prefix + [4] }

  private func number(_ mark: UInt8, _ number: UInt64) -> [UInt8] {
    var bytes = prefix + [mark]
    bytes.appendBigEndian(number)
    return bytes
  }

  func range(_ run: UInt64) -> KeyRange {
    KeyRange(lower: number(1, run), upper: number(1, run + 1))
  }
}

/// Documents that were gathered together.
struct SearchRun: Sendable, Equatable {
  var number: UInt64
  /// How often they were merged.
  var level: Int
  /// The first ordinal, and how many there are.
  var first: UInt64
  var count: Int
}

/// Row 04.
struct SearchState: Sendable, Equatable {
  static let version: UInt8 = 1
  private static let mostRuns = 10_000

  var nextOrdinal: UInt64 = 1
  var nextRun: UInt64 = 1
  /// In the order of their ordinals.
  var runs: [SearchRun] = []

  init() {}

  var bytes: [UInt8] {
    var bytes = [Self.version]
    bytes.appendVarint(nextOrdinal)
    bytes.appendVarint(nextRun)
    bytes.appendVarint(runs.count)
    for run in runs {
      bytes.appendVarint(run.number)
      bytes.appendVarint(run.level)
      bytes.appendVarint(run.first)
      bytes.appendVarint(run.count)
    }
    return bytes
  }

  init(_ bytes: RawSpan) throws(MalformedBytes) {
    var reader = ByteReader(bytes)
    let version = try reader.byte()
    guard version == Self.version else {
      throw .newer(at: 0, "an index of words in the unknown form \(version)")
    }
    nextOrdinal = try reader.varint()
    nextRun = try reader.varint()
    for _ in 0..<(try reader.count(atMost: Self.mostRuns)) {
      let run = SearchRun(
        number: try reader.varint(), level: try reader.count(atMost: 64),
        first: try reader.varint(), count: try reader.count(atMost: Int(UInt32.max)))
      let (end, overflow) = run.first.addingReportingOverflow(UInt64(run.count))
      guard !overflow, end <= nextOrdinal, run.number < nextRun,
        runs.last.map({ $0.first + UInt64($0.count) <= run.first }) ?? true
      else { throw MalformedBytes(at: reader.offset, "runs of words out of order") }
      runs.append(run)
    }
  }
}

/// Row 02.
struct SearchedDocument: Sendable, Equatable {
  var lengths: [Int]
  var tail: [UInt8]

  init(lengths: [Int], tail: [UInt8]) {
    self.lengths = lengths
    self.tail = tail
  }

  var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.appendVarint(lengths.count)
    for length in lengths { bytes.appendVarint(length) }
    return bytes + tail
  }

  init(_ bytes: RawSpan) throws(MalformedBytes) {
    var reader = ByteReader(bytes)
    lengths = []
    for _ in 0..<(try reader.count(atMost: FreshRow.mostFields)) {
      lengths.append(try reader.count(atMost: TokenList.mostTokens))
    }
    tail = try reader.take(reader.remaining).array
  }
}

extension IndexDefinition {
  var searchKeys: SearchKeys { SearchKeys(keyspace) }

  /// The texts of a document in the index's fields; nil where there is none.
  func texts(in fields: [String: Value]?) -> [String?] {
    self.fields.map { field in fields.flatMap { lookUp(field.names[...], in: $0)?.string } }
  }

  /// The terms of a document as they lie in row 00; nil when there are none.
  func freshRow(of texts: [String?]) -> [UInt8]? {
    let tokenizer = Tokenizer()
    var writer = FreshRowWriter()
    for text in texts { writer.addField(text.map { tokenizer.tokens(of: $0) }) }
    return writer.row()
  }

  /// The scope of a document, which the keys of its postings begin with: its tail without its own
  /// id, or nothing.
  func scope(ofTail tail: [UInt8], ancestorCount: Int) throws(MalformedBytes) -> ArraySlice<UInt8> {
    guard !kind.isOfGroup, ancestorCount > 0 else { return [] }
    var reader = KeyReader(tail.bytes)
    for _ in 0..<ancestorCount { _ = try reader.id() }
    return tail[..<reader.offset]
  }
}

extension Rows {
  /// The runs of an index of words.
  func searchState(of index: IndexDefinition) throws(DatabaseError) -> SearchState {
    guard let bytes = try row(index.searchKeys.state) else { return SearchState() }
    return try checkingRow(of: index) { () throws(MalformedBytes) in try SearchState(bytes.bytes) }
  }
}

/// Reads a row of an index of words; one that cannot be read is `.dataLoss`.
func checkingRow<Result>(
  of index: IndexDefinition, _ body: () throws(MalformedBytes) -> Result
) throws(DatabaseError) -> Result {
  do throws(MalformedBytes) {
    return try body()
  } catch {
    throw DatabaseError(searching: index, error)
  }
}

extension DatabaseError {
  /// A row of an index of words that cannot be read.
  init(searching index: IndexDefinition, _ error: MalformedBytes) {
    if error.isOfNewerVersion {
      self.init(
        .unimplemented,
        "the index '\(index.name)' was written by a newer version of Ondol: \(error.reason)")
    } else {
      self.init(
        .dataLoss, "a row of the index '\(index.name)' is damaged: \(error.reason)",
        suggestion: "build the index anew")
    }
  }
}
