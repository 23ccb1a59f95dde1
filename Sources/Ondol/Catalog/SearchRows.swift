// The definition of a word index, and its rows. There are several kinds of rows. Only those of the
// first kind belong to one document each, so that a put writes one row and not one for each word.
//
//   keyspace ++ 00 ++ generation (8 BE) ++ tail       a document's terms, until they are in a run
//   keyspace ++ 01 ++ run (8 BE) ++ last key of it    a chunk of a run's postings
//   keyspace ++ 02 ++ ordinal (8 BE)                  lengths by field, tail; a document of a run
//   keyspace ++ 03 ++ tail                            where the document is: generation or ordinal
//   keyspace ++ 04                                    the runs, and the next numbers
//   keyspace ++ 05 ++ generation (8 BE)               the generation is closed
//
// The tail is the end of the document's key: the ids of its ancestors and its own. A document with
// words has row 03, and either row 00 or row 02. A write puts rows 00 and 03 and removes 02.
// Postings left in runs mean nothing without 02, and merging runs removes them. Runs are immutable.
// Only upkeep makes and merges them (SearchPacker), so only it assigns ordinals, and no two writers
// share a row.
//
// A generation is the number of the next run at the time of the write. Once all documents below a
// number are in runs and no write can add to them, row 04 records that, and neither a search nor
// upkeep walks over the removed rows any more. When a write's generation has been closed meanwhile,
// row 05 shows that, and the write is derived again.
//
// The key of postings is the scope (the ids of the ancestors; nothing for a group's index), the
// number of the field from 1, and the term. Field 0 is the scope's statistics in the run.

internal import OndolEngine

/// How an index finds words.
struct SearchKind: Sendable, Hashable {
  var tokenizer = TokenizerName.plain
  /// The weight of occurrences in each field, in thousandths.
  var weights: [Int]

  /// Numbers of tokenizers, part of the file format. The name and the version of an app's own
  /// tokenizer follow.
  fileprivate static let (plain, english, own) = (1, 2, 3)
  static let greatestWeight = 1_000_000

  /// The fields, followed by their weights if they have one, and the kind of the index.
  func name(of fields: [IndexField]) -> String {
    let texts = zip(fields, weights).map { (field, weight) in
      if weight == 1000 { return "\(field)" }
      let fraction = weight % 1000
      var digits = String(1000 + fraction).dropFirst()
      while digits.last == "0" { digits.removeLast() }
      return "\(field)^\(weight / 1000)" + (digits.isEmpty ? "" : ".\(digits)")
    }
    return texts.joined(separator: ",") + " search" + (tokenizer == .plain ? "" : " \(tokenizer)")
  }
}

extension [UInt8] {
  /// Appends how an index finds words.
  mutating func append(_ search: SearchKind) {
    switch search.tokenizer {
    case .plain: appendVarint(SearchKind.plain)
    case .english: appendVarint(SearchKind.english)
    case .own(let name, let version):
      appendVarint(SearchKind.own)
      append(texts: [name])
      appendVarint(version)
    }
    for weight in search.weights { appendVarint(weight) }
  }
}

extension ByteReader {
  @_lifetime(self: copy self)
  private mutating func tokenizerName() throws(MalformedBytes) -> TokenizerName {
    let number = try count(atMost: Int(UInt32.max))
    switch number {
    case SearchKind.plain: return .plain
    case SearchKind.english: return .english
    case SearchKind.own:
      let names = try texts()
      let version = try count(atMost: TokenizerName.greatestVersion)
      guard names.count == 1, TokenizerName.isValid(names[0]), version > 0 else {
        throw MalformedBytes(at: offset, "an index of words by a tokenizer without a name")
      }
      return .own(names[0], version: version)
    default:
      throw .newer(at: offset, "an index of words with the unknown tokenizer \(number)")
    }
  }

  @_lifetime(self: copy self)
  mutating func searchKind(of fields: [IndexField]) throws(MalformedBytes) -> SearchKind {
    let tokenizer = try tokenizerName()
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

  func fresh(_ generation: UInt64, _ tail: some Sequence<UInt8> = []) -> [UInt8] {
    number(0, generation) + tail
  }
  func runs(from run: UInt64) -> [UInt8] { number(1, run) }
  func chunk(_ run: UInt64, _ key: [UInt8], _ ordinal: UInt32) -> [UInt8] {
    var bytes = number(1, run) + key + [0]
    bytes.appendBigEndian(ordinal)
    return bytes
  }
  func document(_ ordinal: UInt64) -> [UInt8] { number(2, ordinal) }
  func place(_ tail: some Sequence<UInt8>) -> [UInt8] { prefix + [3] + tail }
  var state: [UInt8] { prefix + [4] }
  func closed(_ generation: UInt64) -> [UInt8] { number(5, generation) }

  private func number(_ mark: UInt8, _ number: UInt64) -> [UInt8] {
    var bytes = prefix + [mark]
    bytes.appendBigEndian(number)
    return bytes
  }

  func range(_ run: UInt64) -> KeyRange {
    KeyRange(lower: number(1, run), upper: number(1, run + 1))
  }
}

/// Documents that were gathered together into a run.
struct SearchRun: Sendable, Equatable {
  var number: UInt64
  /// The first ordinal, and the number of ordinals.
  var first: UInt64
  var count: Int
  /// The number of documents among them when the run was made.
  var documents: Int

  /// Its size class for merges: each level has eight times the ordinals of the previous one.
  var level: Int { (Int.bitWidth - max(1, count / 64).leadingZeroBitCount - 1) / 3 }
}

/// Row 04.
struct SearchState: Sendable, Equatable {
  static let version: UInt8 = 1
  private static let mostRuns = 10_000
  /// Generations that have a row 05.
  static let mostClosed: UInt64 = 4_096

  var nextRun: UInt64 = 1
  /// The first generation that may have documents.
  var firstFresh: UInt64 = 1
  /// The first generation that has a row 05.
  var firstClosed: UInt64 = 1
  var nextOrdinal: UInt64 = 1
  /// In the order of their ordinals.
  var runs: [SearchRun] = []

  init() {}

  var bytes: [UInt8] {
    var bytes = [Self.version]
    bytes.appendVarint(nextRun)
    bytes.appendVarint(firstFresh)
    bytes.appendVarint(firstClosed)
    bytes.appendVarint(nextOrdinal)
    bytes.appendVarint(runs.count)
    for run in runs {
      bytes.appendVarint(run.number)
      bytes.appendVarint(run.first)
      bytes.appendVarint(run.count)
      bytes.appendVarint(run.documents)
    }
    return bytes
  }

  init(_ bytes: RawSpan) throws(MalformedBytes) {
    var reader = ByteReader(bytes)
    let version = try reader.byte()
    guard version == Self.version else {
      throw .newer(at: 0, "an index of words in the unknown form \(version)")
    }
    nextRun = try reader.varint()
    firstFresh = try reader.varint()
    firstClosed = try reader.varint()
    nextOrdinal = try reader.varint()
    guard firstClosed <= firstFresh, firstFresh - firstClosed <= Self.mostClosed,
      firstFresh <= nextRun, nextRun < 1 << 48, nextOrdinal < 1 << 48
    else {
      throw MalformedBytes(at: reader.offset, "generations out of order")
    }
    for _ in 0..<(try reader.count(atMost: Self.mostRuns)) {
      let (number, first) = (try reader.varint(), try reader.varint())
      let count = try reader.count(atMost: Int(UInt32.max))
      let run = SearchRun(
        number: number, first: first, count: count, documents: try reader.count(atMost: count))
      let (end, overflow) = run.first.addingReportingOverflow(UInt64(run.count))
      guard !overflow, end <= nextOrdinal, run.number < nextRun,
        runs.last.map({ $0.first + UInt64($0.count) <= run.first }) ?? true
      else { throw MalformedBytes(at: reader.offset, "runs of words out of order") }
      runs.append(run)
    }
  }
}

/// Row 03: where a document's terms are.
enum SearchedPlace: Sendable, Equatable {
  /// In row 00 of the generation.
  case fresh(UInt64)
  /// In a run, and in row 02 of the ordinal.
  case gathered(UInt64)

  var bytes: [UInt8] {
    var bytes: [UInt8] = []
    switch self {
    case .fresh(let generation): bytes.appendVarint(generation << 1)
    case .gathered(let ordinal): bytes.appendVarint(ordinal << 1 | 1)
    }
    return bytes
  }

  init(_ bytes: RawSpan) throws(MalformedBytes) {
    var reader = ByteReader(bytes)
    let number = try reader.varint()
    self = number & 1 == 0 ? .fresh(number >> 1) : .gathered(number >> 1)
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

  /// The texts of a document in the index's fields; nil for a missing one.
  func texts(in fields: [String: Value]?) -> [String?] {
    self.fields.map { field in fields.flatMap { lookUp(field.names[...], in: $0)?.string } }
  }

  /// The terms of a document in the form of row 00; nil when there are none.
  ///
  /// - Parameter tokenizer: the index's tokenizer.
  func freshRow(of texts: [String?], _ tokenizer: Tokenizer) -> [UInt8]? {
    var writer = FreshRowWriter()
    for text in texts { writer.addField(text.map { tokenizer.tokens(of: $0) }) }
    return writer.row()
  }

  /// The scope of a document, with which the keys of its postings begin: its tail without its own
  /// id, or nothing.
  func scope(ofTail tail: [UInt8], ancestorCount: Int) throws(MalformedBytes) -> ArraySlice<UInt8> {
    guard !kind.isOfGroup, ancestorCount > 0 else { return [] }
    var reader = KeyReader(tail.bytes)
    for _ in 0..<ancestorCount { _ = try reader.id() }
    return tail[..<reader.offset]
  }
}

extension IndexKind {
  /// Whether both make terms in the same way.
  func hasTokenizer(of other: IndexKind) -> Bool { search?.tokenizer == other.search?.tokenizer }
}

/// The app's own tokenizers, as it gave them when it opened the database.
struct OwnTokenizers: Sendable {
  private var known: [TokenizerName: Tokenizer] = [:]

  init(_ tokenizers: [any SearchTokenizer] = []) {
    for own in tokenizers {
      let tokenizer = Tokenizer(own)
      known[tokenizer.name] = tokenizer
    }
  }

  /// The tokenizer with a name in the catalog; nil when the app did not give it.
  subscript(name: TokenizerName) -> Tokenizer? {
    switch name {
    case .plain: Tokenizer()
    case .english: .english
    case .own: known[name]
    }
  }
}

extension Catalog {
  /// Whether everything needed to build an index is available.
  func canBuild(_ kind: IndexKind) -> Bool {
    kind.search.map { tokenizers[$0.tokenizer] != nil } ?? true
  }
}

extension Rows {
  /// The tokenizer of a word index.
  ///
  /// - Parameter pattern: the index's collections.
  func tokenizer(
    of index: IndexDefinition, _ pattern: some CustomStringConvertible
  ) throws(DatabaseError) -> Tokenizer {
    guard let name = index.kind.search?.tokenizer, let known = catalog.tokenizers[name] else {
      throw DatabaseError(
        .failedPrecondition,
        "the index '\(index.name)' uses a tokenizer that the database was opened without",
        suggestion: "pass it in Options.tokenizers, or drop the index", path: "\(pattern)")
    }
    return known
  }

  /// The generation of documents that are written now.
  func searchGeneration(of index: IndexDefinition) throws(DatabaseError) -> UInt64 {
    guard let bytes = try row(index.searchKeys.state) else { return SearchState().nextRun }
    return try checkingRow(of: index) { () throws(MalformedBytes) in
      var reader = ByteReader(bytes.bytes)
      guard try reader.byte() == SearchState.version else {
        return try SearchState(bytes.bytes).nextRun
      }
      return try reader.varint()
    }
  }

  /// Where a document's terms are; nil when it has none.
  func searchedPlace(
    of tail: some Sequence<UInt8>, in index: IndexDefinition
  ) throws(DatabaseError) -> SearchedPlace? {
    guard let bytes = try row(index.searchKeys.place(tail)) else { return nil }
    return try checkingRow(of: index) { () throws(MalformedBytes) in
      try SearchedPlace(bytes.bytes)
    }
  }

  /// How many documents of a run still exist.
  func aliveCount(of run: SearchRun, _ index: IndexDefinition) throws(DatabaseError) -> Int {
    let keys = index.searchKeys
    let range = KeyRange(
      lower: keys.document(run.first), upper: keys.document(run.first + UInt64(run.count)))
    if let known = try knownCount(of: range) { return known }
    var walk = RangeWalk(self, [range])
    var count = 0
    while true {
      let passed = try walk.pass(atMost: Self.rowsOfStep)
      if passed == 0 { return count }
      count += passed
    }
  }

  /// The runs of a word index.
  func searchState(of index: IndexDefinition) throws(DatabaseError) -> SearchState {
    guard let bytes = try row(index.searchKeys.state) else { return SearchState() }
    return try checkingRow(of: index) { () throws(MalformedBytes) in try SearchState(bytes.bytes) }
  }
}

/// Reads a row of a word index; an unreadable one is `.dataLoss`.
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
  /// An unreadable row of a word index.
  init(searching index: IndexDefinition, _ error: MalformedBytes) {
    if error.isOfNewerVersion {
      self.init(
        .unimplemented,
        "the index '\(index.name)' was written by a newer version of Ondol: \(error.reason)")
    } else {
      self.init(
        .dataLoss, "a row of the index '\(index.name)' is damaged: \(error.reason)",
        suggestion: "build the index again")
    }
  }
}
