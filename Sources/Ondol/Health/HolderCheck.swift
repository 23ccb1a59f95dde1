// Checks whether the rows of holders match the documents: every blob reference in a document has
// its row, every row has its reference, and every held content is stored. Storage paths are
// documents, so they are included; rows of links are checked like those of indexes.
//
// A CollectionCheck asks for each document it walks whether its contents' rows exist. The walk over
// the rows here finds superfluous ones, also in steps. In collections with keys of their own, rows
// do not lead to documents, so there they are counted.

internal import OndolEngine

/// A check of all holders' rows, between two steps.
struct HolderCheck: RowCheck {
  let rows: Rows
  let range = ContentKey.all(ContentKey.holders)
  let kind = Finding.Kind.holder
  private var namer: RowNamer
  var last: [UInt8]?
  var findings: [Finding] = []
  var isDone = false
  /// The content that was looked up last; usually it is also the next one.
  private var known: (digest: BlobDigest, isStored: Bool)?
  /// The number of rows of collections with keys of their own, by their documents' keyspaces.
  private var counts: [Keyspace: Int] = [:]

  init(_ rows: Rows) {
    self.rows = rows
    namer = RowNamer(rows)
  }

  mutating func check(_ row: borrowing RangeWalk) throws(DatabaseError) {
    let key = row.cursor.key.array
    let digest = try ContentKey.digest(in: key.bytes)
    let holder = ContentKey.holdingRow(in: key.bytes)
    // Of a dropped collection: the reclaimer removes it.
    guard try namer.isLive(holder) else { return }
    if let keyspace = Keyspace(of: holder), keyspace.keyedGroup != nil {
      counts[keyspace, default: 0] += 1
    } else if try !rows.contents(ofRow: holder, &namer).contains(digest) {
      return try note("it is said to hold the content \(digest.hex), and does not", holder)
    }
    if known?.digest != digest {
      known = (digest, try rows.row(ContentKey.location(digest)) != nil)
    }
    if known?.isStored == false {
      try note("the content it holds is not stored: \(digest.hex)", holder)
    }
  }

  private mutating func note(_ message: String, _ holder: [UInt8]) throws(DatabaseError) {
    guard let pattern = try namer.pattern(ofRow: holder), Keyspace(of: holder)?.keyedGroup != nil
    else {
      findings.append(Finding(message, of: try namer.document(of: holder), .holder))
      return
    }
    findings.append(
      Finding(
        .error, .holder, message, collection: pattern.description, hint: Finding.damageHint))
  }

  /// Records where there are more rows than documents have.
  ///
  /// - Parameter holders: the number that documents have, by their keyspaces.
  mutating func compare(with holders: [Keyspace: Int]) throws(DatabaseError) {
    for (keyspace, count) in counts.sorted(by: { $0.key < $1.key }) {
      guard let expected = holders[keyspace], count > expected else { continue }
      findings.append(
        Finding(
          .error, .holder,
          "\(count - expected) contents are said to be held by documents of it, and are not",
          collection: try rows.pattern(of: keyspace)?.description, hint: Finding.damageHint))
    }
  }
}

extension Rows {
  /// The contents that a holder's row refers to.
  func contents(
    ofRow key: [UInt8], _ namer: inout RowNamer
  ) throws(DatabaseError) -> Set<BlobDigest> {
    guard let row = try row(key) else { return [] }
    if key.starts(with: DerivedRows.keyspace.prefix) {
      return [try DerivedRows.child(row.bytes).digest]
    }
    guard let path = try namer.document(of: key) else { return [] }
    let pattern = CollectionPattern(path.collection)
    guard let entry = try entry(of: pattern) else {
      return []
    }
    do throws(MalformedBytes) {
      return try DocumentView(row.bytes).fields(entry.symbols).contents
    } catch {
      throw DatabaseError(error, documentAt: path)
    }
  }
}

extension Finding {
  /// A finding about a document, or a storage path that is one.
  init(
    _ message: String, of document: DocumentPath?, _ kind: Kind,
    hint: String? = Self.damageHint
  ) {
    if let path = document?.storagePath {
      self.init(.error, kind, message, storagePath: path, hint: hint)
    } else {
      self.init(
        .error, kind, message, collection: document?.collection.description,
        id: document?.documentID, hint: hint)
    }
  }
}
