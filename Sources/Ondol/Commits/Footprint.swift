// What a transaction has read: the keys of documents, whether they were there or not, and the
// ranges its queries went through. It commits only if nothing in its footprint was changed by
// others meanwhile, which is what makes it serializable: lost updates, write skew and phantoms all
// change something that somebody has read.

internal import OndolEngine

/// The rows something was derived from.
struct Footprint: Sendable {
  private var keys: Set<[UInt8]> = []
  private var ranges: [KeyRange] = []
  /// The root collections read from.
  private(set) var roots: Set<ExactText> = []

  /// Adds a read of the document at `path`.
  ///
  /// Where the catalog knows no such collection, the family's row is what would change first. Where
  /// it does, the collection's own row changes when it is dropped, or read in another way.
  mutating func add(_ path: DocumentPath, in rows: Rows) throws(DatabaseError) {
    let pattern = CollectionPattern(path.collection)
    roots.insert(ExactText(pattern.root))
    let family = try rows.catalog.family(pattern.root, in: rows)
    guard let entry = family?.collections[pattern] else {
      keys.insert(CatalogKey.family(pattern.root))
      return
    }
    keys.insert(CatalogKey.keyspace(entry.keyspace))
    keys.insert(DocumentKey.key(entry.keyspace, path))
  }

  /// Adds whatever could change the result of a query: the documents it looks up, or else all of
  /// each collection's. For a group, that is also every change of the catalog, because a new
  /// collection may belong to it.
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

  /// Adds all documents below one, in the collections that there are and in those that may come.
  mutating func add(below path: DocumentPath, _ collections: [DocumentRange]) {
    keys.insert(CatalogKey.family(path.segments[0]))
    for collection in collections { ranges.append(collection.range) }
  }

  /// Adds a row, whether it is there or not.
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

  /// Makes the batch fail when any of it has changed.
  func guardUnchanged(in batch: inout Batch) {
    for key in keys {
      batch.guardUnchanged(key.bytes)
    }
    for range in ranges {
      batch.guardUnchanged(from: range.lower.bytes, to: range.upper.bytes)
    }
  }
}
