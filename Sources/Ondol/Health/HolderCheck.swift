// Whether the rows that say who holds what are those that documents give: every blob reference in a
// document has its row, every row stands for a reference, and what is held is stored. Storage paths
// are documents, so they are among them; rows of links are checked as those of indexes are.
//
// A CollectionCheck asks for each document it walks whether its contents' rows are there. The walk
// over the rows here finds those that are too many, in steps as there.

internal import OndolEngine

/// A check of all holders' rows, between two steps.
struct HolderCheck: SteppedCheck {
  private let rows: Rows
  private var namer: RowNamer
  /// The last key of the step before.
  private var last: [UInt8]?
  private var findings: [Finding] = []
  private(set) var isDone = false
  /// The content looked up last, which mostly is the next one, too.
  private var known: (digest: BlobDigest, isStored: Bool)?

  private static let stepCount = 256

  init(_ rows: Rows) {
    self.rows = rows
    namer = RowNamer(rows)
  }

  /// What was found since it was asked last.
  mutating func takeFindings() -> [Finding] {
    defer { findings = [] }
    return findings
  }

  /// Does some more. Blocks the thread while blocks are read from disk.
  mutating func step() {
    do throws(DatabaseError) {
      try walkSome()
    } catch {
      findings.append(Finding(error, .holder))
      isDone = true
    }
  }

  private mutating func walkSome() throws(DatabaseError) {
    var range = ContentKey.all(ContentKey.holders)
    if let last { range.lower = last + [0] }
    var walk = RangeWalk(rows, [range])
    for _ in 0..<Self.stepCount {
      guard try walk.next() else {
        isDone = true
        return
      }
      let key = walk.cursor.key.array
      last = key
      do throws(DatabaseError) {
        try check(key)
      } catch {
        findings.append(Finding(error, .holder))
      }
    }
  }

  private mutating func check(_ key: [UInt8]) throws(DatabaseError) {
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
    guard let entry = try catalog.family(pattern.root, in: self)?.collections[pattern] else {
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
