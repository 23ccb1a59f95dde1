// Whether the rows that say who holds what are those that documents give: every blob reference in a
// document has its row, every row stands for a reference, and what is held is stored. Storage paths
// are documents, so they are among them; rows of links are checked as those of indexes are.
//
// A CollectionCheck asks for each document it walks whether its contents' rows are there. The walk
// over the rows here finds those that are too many, in steps as there. Of collections with keys of
// their own no row leads to its document: there the rows are counted.

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
  /// The content looked up last, which mostly is the next one, too.
  private var known: (digest: BlobDigest, isStored: Bool)?
  /// The rows of collections with keys of their own, by their documents' keyspaces.
  private var counts: [Keyspace: Int] = [:]

  init(_ rows: Rows) {
    self.rows = rows
    namer = RowNamer(rows)
  }

  mutating func check(_ row: borrowing RangeWalk) throws(DatabaseError) {
    let key = row.cursor.key.array
    let digest = try ContentKey.digest(in: key.bytes)
    let holder = ContentKey.holdingRow(in: key.bytes)
    // Of a collection that was dropped: swept by the reclaimer.
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

  /// Notes where there are more rows than documents give.
  ///
  /// - Parameter holders: how many these give, by the documents' keyspaces.
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
  /// The contents that the row refers to which is said to hold one.
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

extension RowNamer {
  /// The document whose row has the key; nil when it is no document's, or that of a collection with
  /// a key of its own, in the place of which a name stands.
  mutating func document(of key: [UInt8]) throws(DatabaseError) -> DocumentPath? {
    guard Keyspace(of: key)?.keyedGroup == nil, let pattern = try pattern(ofRow: key) else {
      return nil
    }
    let ids = try DocumentKey.ids(in: key.bytes, ancestorCount: pattern.ancestorCount)
    return DocumentPath(unchecked: zip(pattern.collectionIDs, ids).flatMap { [$0, $1] })
  }
}

extension Finding {
  /// Something about a document, or a storage path that is one.
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
