// Whether the rows that say who holds what are those that documents give: every blob reference in a
// document has its row, every row stands for a reference, and what is held is stored. Storage paths
// are documents, so they are among them; rows of links are checked as those of indexes are.
//
// A CollectionCheck asks for each document it walks whether its contents' rows are there. The walk
// over the rows here finds those that are too many, in steps as there.

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
    guard try rows.contents(ofRow: holder, &namer).contains(digest) else {
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
    findings.append(
      Finding(message, of: try namer.document(of: holder), .holder))
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
  /// The document whose row has the key; nil when it is no document's.
  mutating func document(of key: [UInt8]) throws(DatabaseError) -> DocumentPath? {
    guard let pattern = try pattern(ofRow: key) else { return nil }
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
