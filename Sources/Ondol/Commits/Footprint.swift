// What a transaction has read: the keys of documents, whether they existed or not, and the ranges
// that its queries walked. It commits only if no other commit has changed anything in its footprint
// meanwhile. This makes it serializable: lost updates, write skew and phantoms all change something
// that a transaction has read.

internal import OndolEngine

/// The rows that something was derived from.
struct Footprint: Sendable {
  private var keys: Set<[UInt8]> = []
  private var ranges: [KeyRange] = []
  /// The root collections read from.
  private(set) var roots: Set<ExactText> = []
  /// The documents read, existing or not, for a witness of the commit.
  private(set) var documents: [DocumentPath] = []
  /// The queries whose results were read, for a witness of the commit.
  private(set) var queries: [Query] = []

  /// Adds a read of the document at `path`.
  ///
  /// If the catalog knows no such collection, the family's row would change first. If it does,
  /// dropping the collection, or reading it in another way, changes the collection's own row.
  mutating func add(_ path: DocumentPath, in rows: Rows) throws(DatabaseError) {
    let pattern = CollectionPattern(path.collection)
    roots.insert(ExactText(pattern.root))
    note(path, in: rows)
    let family = try rows.catalog.family(pattern.root, in: rows)
    guard let entry = family?.collections[pattern] else {
      keys.insert(CatalogKey.family(pattern.root))
      return
    }
    keys.insert(CatalogKey.keyspace(entry.keyspace))
    keys.insert(DocumentKey.key(entry.keyspace, path))
  }

  /// Records a document that was read for a witness, if there is one.
  mutating func note(_ path: DocumentPath, in rows: Rows) {
    if rows.catalog.seat.isOccupied { documents.append(path) }
  }

  /// Records a query that was read for a witness, if there is one.
  mutating func note(_ query: Query, in rows: Rows) {
    if rows.catalog.seat.isOccupied { queries.append(query) }
  }

  /// Adds everything that could change the result of a query: the documents it looks up, or
  /// otherwise all documents of each collection. For a group, that includes every change of the
  /// catalog, because a new collection may belong to it.
  mutating func add(_ query: Executor) {
    switch query.shape.source {
    case .collection(let path):
      let pattern = CollectionPattern(path)
      roots.insert(ExactText(pattern.root))
      if query.parts.isEmpty { keys.insert(CatalogKey.family(pattern.root)) }
    case .group:
      ranges.append(KeyRange(prefix: CatalogKey.families))
      roots.insert(Database.everyGate)
      for part in query.parts { roots.insert(ExactText(part.naming.pattern.root)) }
    }
    for part in query.parts {
      keys.insert(CatalogKey.keyspace(part.naming.keyspace))
      if part.plan.ways.count == 1, case .lookups(let found) = part.plan.ways[0] {
        keys.formUnion(found)
      } else {
        ranges.append(KeyRange(prefix: part.naming.prefix))
      }
    }
  }

  /// Adds all documents below one, in existing and future collections.
  mutating func add(below path: DocumentPath, _ collections: [DocumentRange]) {
    keys.insert(CatalogKey.family(path.segments[0]))
    for collection in collections { ranges.append(collection.range) }
  }

  /// Adds a row, whether it exists or not.
  mutating func add(key: [UInt8]) {
    keys.insert(key)
  }

  /// Adds a root collection, or another name of a gate.
  mutating func add(root: ExactText) {
    roots.insert(root)
  }

  /// Adds all rows in a range.
  mutating func add(_ range: KeyRange) {
    ranges.append(range)
  }

  /// Makes the batch fail when anything in the footprint has changed.
  func guardUnchanged(in batch: inout Batch) {
    for key in keys {
      batch.guardUnchanged(key.bytes)
    }
    for range in ranges {
      batch.guardUnchanged(from: range.lower.bytes, to: range.upper.bytes)
    }
  }
}
