// Who holds a content, for the reclaimer, for checks and for people: rows of the holders' keyspace,
// and the rows these name.

internal import OndolEngine

extension Rows {
  /// Shows the key of each row that holds the content, until `visit` says that it has seen enough.
  /// Those in keyspaces that were dropped are among them.
  func forEachHolder(
    of digest: BlobDigest, _ visit: ([UInt8]) throws(DatabaseError) -> Bool
  ) throws(DatabaseError) {
    var walk = RangeWalk(self, [ContentKey.holders(of: digest)])
    while try walk.next() {
      guard try visit(ContentKey.holdingRow(in: walk.cursor.key)) else { return }
    }
  }

  /// The names of rows that hold the content, some of them.
  func holderNames(of digest: BlobDigest, atMost limit: Int) throws(DatabaseError) -> [String] {
    var names: [String] = []
    var namer = RowNamer(self)
    try forEachHolder(of: digest) { (row) throws(DatabaseError) in
      if let name = try namer.name(of: row) { names.append(name) }
      return names.count < limit
    }
    return names
  }
}

/// Tells documents by the keys of their rows.
struct RowNamer: Sendable {
  private struct Collection: Sendable {
    var pattern: CollectionPattern
    var symbols: SymbolTable
  }

  let rows: Rows
  /// The collections by their keyspaces, once one was asked for.
  private var collections: [UInt32: Collection]?

  init(_ rows: Rows) {
    self.rows = rows
  }

  /// The document that the row is, or the storage path with a "/" in front; nil when its keyspace
  /// is no more.
  mutating func name(of key: [UInt8]) throws(DatabaseError) -> String? {
    guard let pattern = try collection(of: key)?.pattern else { return nil }
    let ids = try DocumentKey.ids(in: key.bytes, ancestorCount: pattern.ancestorCount)
    if StorageRows.isHidden(root: pattern.root), let path = StorageRows.path(ofID: ids[0]) {
      return "/" + path
    }
    return zip(pattern.collectionIDs, ids).map { "\($0)/\($1)" }.joined(separator: "/")
  }

  /// Whether the row's keyspace is still there.
  mutating func isLive(_ key: [UInt8]) throws(DatabaseError) -> Bool {
    try collection(of: key) != nil
  }

  /// The names of fields in the row's keyspace; nil when it is no more.
  mutating func symbols(of key: [UInt8]) throws(DatabaseError) -> SymbolTable? {
    try collection(of: key)?.symbols
  }

  private mutating func collection(of key: [UInt8]) throws(DatabaseError) -> Collection? {
    guard key.count > Keyspace.prefixLength else { return nil }
    let keyspace = key.prefix(Keyspace.prefixLength).reduce(0) { $0 << 8 | UInt32($1) }
    if let collections { return collections[keyspace] }
    var found: [UInt32: Collection] = [:]
    for family in try rows.catalog.families(in: rows) {
      for (pattern, entry) in family.collections {
        found[entry.keyspace.rawValue] = Collection(pattern: pattern, symbols: entry.symbols)
      }
    }
    collections = found
    return found[keyspace]
  }
}
