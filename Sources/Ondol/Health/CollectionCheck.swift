// Checks whether the documents of a pattern can be decoded and its indexes contain exactly their
// rows. It runs in steps, each from where the last one ended, so that a check of millions of
// documents takes the memory of a few hundred and can stop between any two.
//
// First it walks the documents: each determines its rows, and these are looked up. An index that
// has as many rows as were found there has no others. Only if an index has more rows, they are
// walked again, and each is compared with its document.

internal import OndolEngine

/// A check of one pattern's documents and indexes, between two steps.
struct CollectionCheck: SteppedCheck {
  private enum Phase {
    case documents
    /// Counting the rows of the index with this place.
    case counting(Int)
    /// Comparing them with their documents.
    case comparing(Int)
    case done
  }

  let pattern: CollectionPattern
  let keyspace: Keyspace
  private let symbols: SymbolTable
  private let rows: Rows
  /// The indexes that are ready. Others may lack rows, and queries do not use them.
  private let indexes: [IndexDefinition]
  private let links: [IndexDefinition]
  /// The checks of word indexes.
  let wordsChecks: [WordsCheck]
  /// For each index, the number of its documents' rows that exist.
  private var found: [Int]
  /// The number of rows in the index being counted.
  private var counted = 0
  private var phase = Phase.documents
  /// The last key of the previous step.
  private var last: [UInt8]?
  var findings: [Finding] = []
  private var documents = 0
  /// The number of rows by which its documents hold contents; nil when some documents cannot be
  /// read.
  private(set) var holders: Int? = 0

  /// Documents, or rows of an index, in one step.
  private static let stepCount = 256
  /// Bytes of documents after which a step is not made longer.
  private static let stepBytes = 1 << 20

  init(_ pattern: CollectionPattern, _ entry: CollectionEntry, in rows: Rows) {
    self.pattern = pattern
    keyspace = entry.keyspace
    symbols = entry.symbols
    self.rows = rows
    indexes = entry.allIndexes.filter { $0.state == .ready && !$0.kind.isOfWords }
    links = entry.links
    found = Array(repeating: 0, count: indexes.count)
    var wordsChecks: [WordsCheck] = []
    for index in entry.searches where index.state == .ready {
      if let check = WordsCheck(pattern, entry, index, in: rows) {
        wordsChecks.append(check)
      } else {
        findings.append(
          Finding(
            .warning, .index,
            "what the index '\(index.name)' says was not compared: the tokenizer that it is made"
              + " with is not at hand", collection: pattern.description,
            hint: "the app that brings the tokenizer can check it"))
      }
    }
    self.wordsChecks = wordsChecks
  }

  var isDone: Bool { if case .done = phase { true } else { false } }

  /// The number of documents checked since the last call.
  mutating func takeCount() -> Int {
    defer { documents = 0 }
    return documents
  }

  /// Runs a step. Blocks the thread while it reads blocks from disk.
  mutating func step() {
    do throws(DatabaseError) {
      switch phase {
      case .documents: try checkDocuments()
      case .counting(let index): try countRows(of: index)
      case .comparing(let index): try compareRows(of: index)
      case .done: break
      }
    } catch {
      // A block of it is unreadable: everything after that is out of reach, and sums are
      // meaningless.
      switch phase {
      case .documents:
        findings.append(Finding(error, .document, collection: pattern.description))
        holders = nil
        phase = .done
      case .counting(let index), .comparing(let index):
        findings.append(Finding(error, .index, collection: pattern.description))
        begin(.counting(index + 1))
      case .done: break
      }
    }
  }

  private mutating func begin(_ next: Phase) {
    last = nil
    counted = 0
    phase = next
    if case .counting(indexes.count) = next { phase = .done }
  }

  /// The rows of a keyspace after those of the previous steps.
  private func walk(_ keyspace: Keyspace) -> RangeWalk {
    var range = KeyRange(prefix: keyspace.prefix)
    if let last { range.lower = last + [0] }
    return RangeWalk(rows, [range])
  }

  // MARK: - Documents

  private mutating func checkDocuments() throws(DatabaseError) {
    var walk = walk(keyspace)
    var bytes = 0
    var count = 0
    defer { documents += count }
    while count < Self.stepCount, bytes < Self.stepBytes {
      guard try walk.next() else { return begin(.counting(0)) }
      let key = walk.cursor.key.array
      last = key
      count += 1
      do throws(DatabaseError) {
        let row = try walk.value.array
        bytes += row.count
        try check(key, row)
      } catch {
        let id = try? DocumentKey.ids(in: key.bytes, ancestorCount: pattern.ancestorCount)
        note(.document, error.message, id, hint: Finding.damageHint)
      }
    }
  }

  /// Checks one document and its rows in the indexes.
  private mutating func check(_ key: [UInt8], _ row: [UInt8]) throws(DatabaseError) {
    let ids = try DocumentKey.ids(in: key.bytes, ancestorCount: pattern.ancestorCount)
    let segments = zip(pattern.collectionIDs, ids).flatMap { [$0, $1] }
    let ancestors = Array(ids.dropLast())
    guard let path = try? DocumentPath(stored: segments),
      DocumentKey.key(keyspace, ancestors: ancestors, id: ids[ids.count - 1]) == key
    else {
      return note(.document, "its key is not that of a document", ids, hint: Finding.damageHint)
    }
    let fields: [String: Value]
    do throws(MalformedBytes) {
      let view = try DocumentView(row.bytes)
      try view.check(symbols)
      fields = try view.fields(symbols)
      if view.version == .zero || view.version > rows.snapshot.sequence {
        note(
          .document,
          "it is said to be of commit \(view.version.rawValue), and the last one is"
            + " \(rows.snapshot.sequence.rawValue)", ids, hint: Finding.damageHint)
      }
      if view.createTime > view.updateTime {
        note(
          .document, "it was changed before it was created", ids, hint: Finding.damageHint)
      }
    } catch {
      return note(
        .document, "its bytes are damaged at \(error.offset): \(error.reason)", ids,
        hint: Finding.damageHint)
    }
    try checkIndexes(of: fields, ids)
    try checkHolding(of: fields, path, key)
  }

  /// Looks up the contents that a document refers to, and whether it holds them.
  private mutating func checkHolding(
    of fields: [String: Value], _ path: DocumentPath, _ key: [UInt8]
  ) throws(DatabaseError) {
    if path.lacksObject(fields) {
      findings.append(Finding("it has no content, or no metadata", of: path, .document))
    }
    for digest in fields.contents {
      let name = try rows.catalog.keys.name(ofRow: key)
      if try rows.row(ContentKey.holder(digest, name)) != nil {
        holders? += 1
        continue
      }
      findings.append(
        Finding("it refers to the content \(digest.hex), and does not hold it", of: path, .holder))
    }
    for link in links where link.state == .ready {
      for linked in link.linkedPaths(in: fields) {
        guard let object = try rows.objectKey(linked), try rows.row(object) != nil else {
          findings.append(
            Finding(
              "it links the storage path '\(linked)', where there is no object", of: path, .holder))
          continue
        }
      }
    }
  }

  /// Looks up the rows that a document should have.
  private mutating func checkIndexes(
    of fields: [String: Value], _ ids: [String]
  ) throws(DatabaseError) {
    var wanted: [(index: Int, row: IndexRow)] = []
    for (place, index) in indexes.enumerated() {
      let rows = index.rows(of: fields, ancestors: ids.dropLast(), id: ids[ids.count - 1])
      wanted += rows.map { (place, $0) }
    }
    guard !wanted.isEmpty else { return }
    let keys = wanted.map(\.row.key)
    var stored = [[UInt8]?](repeating: nil, count: keys.count)
    _ = try rethrowing { () throws(EngineError) in
      try rows.snapshot.withValues(of: keys, at: keys.indices, mayBlock: true) { place, value in
        stored[place] = value.array
      }
    }
    for (wanted, value) in zip(wanted, stored) {
      let name = indexes[wanted.index].name
      guard let value else {
        note(.index, "the index '\(name)' lacks a row of it", ids, hint: Finding.indexHint)
        continue
      }
      found[wanted.index] += 1
      if value != wanted.row.value {
        note(
          .index, "its row in the index '\(name)' leads elsewhere", ids, hint: Finding.indexHint)
      }
    }
  }

  // MARK: - Indexes

  private mutating func countRows(of index: Int) throws(DatabaseError) {
    var walk = walk(indexes[index].keyspace)
    for _ in 0..<(16 * Self.stepCount) {
      guard try walk.next() else {
        return begin(counted == found[index] ? .counting(index + 1) : .comparing(index))
      }
      counted += 1
      last = walk.cursor.key.array
    }
  }

  private mutating func compareRows(of index: Int) throws(DatabaseError) {
    var walk = walk(indexes[index].keyspace)
    for _ in 0..<Self.stepCount {
      guard try walk.next() else { return begin(.counting(index + 1)) }
      let (key, value) = (walk.cursor.key.array, try walk.value.array)
      last = key
      try compare(key, value, indexes[index])
    }
  }

  /// Compares a row with the document it leads to.
  private mutating func compare(
    _ key: [UInt8], _ value: [UInt8], _ index: IndexDefinition
  ) throws(DatabaseError) {
    let document: [UInt8]
    let ids: [String]
    do throws(MalformedBytes) {
      document = try index.documentKey(
        of: key, value, ancestorCount: pattern.ancestorCount)
    } catch {
      return note(
        .index, "a row of the index '\(index.name)' is damaged: \(error.reason)", nil,
        hint: Finding.indexHint)
    }
    do throws(DatabaseError) {
      ids = try DocumentKey.ids(in: document.bytes, ancestorCount: pattern.ancestorCount)
    } catch {
      return note(
        .index, "a row of the index '\(index.name)' leads to no document", nil,
        hint: Finding.indexHint)
    }
    let row = try rows.row(document)
    guard let row else {
      return note(
        .index, "the index '\(index.name)' has a row of it, and there is no such document", ids,
        hint: Finding.indexHint)
    }
    // A document that cannot be decoded was reported as a document.
    guard let fields = try? DocumentView(row.bytes).fields(symbols) else { return }
    let rows = index.rows(of: fields, ancestors: ids.dropLast(), id: ids[ids.count - 1])
    if !rows.contains(where: { $0.key == key }) {
      note(
        .index, "the index '\(index.name)' has a row of it with values that it does not have", ids,
        hint: Finding.indexHint)
    }
  }

  // MARK: - Findings

  /// Records a finding about the document with these ids.
  private mutating func note(
    _ kind: Finding.Kind, _ message: String, _ ids: [String]?, hint: String
  ) {
    guard let ids, !ids.isEmpty else {
      findings.append(
        Finding(.error, kind, message, collection: pattern.description, hint: hint))
      return
    }
    let path = DocumentPath(unchecked: zip(pattern.collectionIDs, ids).flatMap { [$0, $1] })
    findings.append(Finding(message, of: path, kind, hint: hint))
  }
}
