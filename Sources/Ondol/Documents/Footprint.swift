// What a transaction has read: the keys of documents, whether they were there or not, and the ranges
// its queries went through. The transaction commits only if nothing in its footprint was changed by
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
  /// Where the catalog knows no such collection, the family's row is what would change first.
  mutating func add(_ path: DocumentPath, in rows: Rows) throws(DatabaseError) {
    let pattern = CollectionPattern(path.collection)
    roots.insert(ExactText(pattern.root))
    let family = try rows.catalog.family(pattern.root, in: rows)
    guard let entry = family?.collections[pattern] else {
      keys.insert(CatalogKey.family(pattern.root))
      return
    }
    keys.insert(DocumentKey.key(entry.keyspace, path))
  }

  /// Adds whatever could change the result of a query: the documents it looks up, or else all of
  /// the collection's.
  mutating func add(_ query: Executor, in rows: Rows) throws(DatabaseError) {
    let path = query.shape.collection
    if case .lookups(let ids) = query.plan.access {
      for id in ids { try add(DocumentPath(unchecked: path.segments + [id]), in: rows) }
      return
    }
    let pattern = CollectionPattern(path)
    roots.insert(ExactText(pattern.root))
    let family = try rows.catalog.family(pattern.root, in: rows)
    guard let entry = family?.collections[pattern] else {
      keys.insert(CatalogKey.family(pattern.root))
      return
    }
    let prefix = DocumentKey.prefix(entry.keyspace, ancestors: path.ancestorIDs)
    ranges.append(KeyRange(lower: prefix, upper: prefix + [KeyCoding.afterAll]))
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
