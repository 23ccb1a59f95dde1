// The holders of a content, for the reclaimer, for checks and for people: rows of the holders'
// keyspace, and the rows that these name.

internal import OndolEngine

extension Rows {
  /// Shows the name of each row that holds the content, until `visit` ends the walk. Includes rows
  /// in dropped keyspaces.
  func forEachHolder(
    of digest: BlobDigest, _ visit: ([UInt8]) throws(DatabaseError) -> Bool
  ) throws(DatabaseError) {
    var walk = RangeWalk(self, [ContentKey.holders(of: digest)])
    while try walk.next() {
      guard try visit(ContentKey.holdingRow(in: walk.cursor.key)) else { return }
    }
  }

  /// The names of some rows that hold the content.
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

/// Names documents by the keys of their rows, or by the names that replace these keys in other
/// rows.
struct RowNamer {
  private let rows: Rows
  /// The patterns of documents' keyspaces that were looked up before.
  private var patterns: [Keyspace: CollectionPattern?] = [:]

  init(_ rows: Rows) {
    self.rows = rows
  }

  /// The document of the row; nil when its keyspace was dropped. For a document in a collection
  /// with a key of its own, only the collection is named.
  mutating func name(of key: [UInt8]) throws(DatabaseError) -> String? {
    guard key.count > Keyspace.prefixLength, let keyspace = Keyspace(of: key) else { return nil }
    if keyspace == DerivedRows.keyspace {
      let (parent, name) = try DerivedRows.parse(key.bytes)
      return "'\(name)' of \(parent.hex)"
    }
    if keyspace.rawValue < Keyspace.familyCapacity {
      return "/" + String(decoding: key.dropFirst(4), as: UTF8.self)
    }
    guard let pattern = try pattern(of: keyspace) else { return nil }
    if keyspace.keyedGroup != nil { return "a document of \(pattern)" }
    let ids = try DocumentKey.ids(in: key.bytes, ancestorCount: pattern.ancestorCount)
    return DocumentPath(unchecked: zip(pattern.collectionIDs, ids).flatMap { [$0, $1] }).name
  }

  /// Whether the row's keyspace still exists.
  mutating func isLive(_ key: [UInt8]) throws(DatabaseError) -> Bool {
    guard key.count > Keyspace.prefixLength, let keyspace = Keyspace(of: key) else { return false }
    if keyspace.rawValue < Keyspace.familyCapacity { return true }
    return try pattern(of: keyspace) != nil
  }

  /// The pattern of the document whose row has the key; nil when it is not a document's row.
  mutating func pattern(ofRow key: [UInt8]) throws(DatabaseError) -> CollectionPattern? {
    guard key.count > Keyspace.prefixLength, let keyspace = Keyspace(of: key) else { return nil }
    return try pattern(of: keyspace)
  }

  private mutating func pattern(of keyspace: Keyspace) throws(DatabaseError) -> CollectionPattern? {
    if let known = patterns[keyspace] { return known }
    let pattern = try rows.pattern(of: keyspace)
    patterns[keyspace] = .some(pattern)
    return pattern
  }
}

extension RowNamer {
  /// The document whose row has the key; nil when it is not a document's, or when it belongs to a
  /// collection with a key of its own, for which a name replaces the key.
  mutating func document(of key: [UInt8]) throws(DatabaseError) -> DocumentPath? {
    guard Keyspace(of: key)?.keyedGroup == nil, let pattern = try pattern(ofRow: key) else {
      return nil
    }
    let ids = try DocumentKey.ids(in: key.bytes, ancestorCount: pattern.ancestorCount)
    return DocumentPath(unchecked: zip(pattern.collectionIDs, ids).flatMap { [$0, $1] })
  }
}
