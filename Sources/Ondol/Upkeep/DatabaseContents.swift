// The contents of a database, for tools that inspect it. On the read path: one snapshot, the
// catalog, and a walk over all rows. Because of that walk, apps have no such call.

internal import OndolEngine

/// The contents of a database as of one moment.
package struct DatabaseContents: Sendable {
  /// The collections of one pattern: `workInfo/workHistory` means every user's.
  package struct Collections: Sendable {
    /// Collection ids without the documents' ids between them.
    package var pattern: String
    package var documents: Int
    /// Bytes of the documents' rows, before compression.
    package var bytes: Int
    package var indexes: [IndexSize]
    /// Its own key, or the key of the root collection that it is below.
    package var ownKey: OwnKey?
  }

  /// A collection's own key.
  package enum OwnKey: String, Sendable {
    case present
    /// It is missing, so nothing was counted.
    case missing
  }

  /// An index and its size.
  package struct IndexSize: Sendable {
    package var name: String
    package var isReady: Bool
    package var entries: Int
    package var bytes: Int
  }

  /// The version of the files' format.
  package var format: String
  /// The number of the newest commit.
  package var sequence: UInt64
  package var shards: Int
  /// In the order of their patterns.
  package var collections: [Collections]
}

extension Database {
  /// Counts the contents of the database.
  ///
  /// - Complexity: O(rows), all of which are read.
  package func contents() async throws(DatabaseError) -> DatabaseContents {
    let shards = engine.metrics.shards.count
    return try await read(try engineSnapshot()) { (rows) throws(DatabaseError) in
      try rows.contents(shards: shards)
    }
  }
}

extension Database {
  /// The patterns of the collections in the catalog, `users/posts` for every user's, whether they
  /// have documents or not.
  package func collectionPatterns() async throws(DatabaseError) -> [String] {
    try await families().flatMap { $0.collections.keys.map(\.description) }
  }
}

extension Rows {
  fileprivate func contents(shards: Int) throws(DatabaseError) -> DatabaseContents {
    var collections: [DatabaseContents.Collections] = []
    for family in try catalog.families(in: self) where !HiddenRows.isHidden(root: family.root) {
      let isLocked = catalog.keys.isLocked(family)
      for (pattern, entry) in family.collections {
        if isLocked {
          collections.append(
            DatabaseContents.Collections(
              pattern: pattern.description, documents: 0, bytes: 0, indexes: [], ownKey: .missing))
          continue
        }
        let size = try countedSize(of: entry.keyspace)
        var indexes: [DatabaseContents.IndexSize] = []
        for index in entry.allIndexes {
          let size = try countedSize(of: index.keyspace)
          indexes.append(
            DatabaseContents.IndexSize(
              name: index.name, isReady: index.state == .ready, entries: size.rows,
              bytes: size.bytes))
        }
        collections.append(
          DatabaseContents.Collections(
            pattern: pattern.description, documents: size.rows, bytes: size.bytes,
            indexes: indexes, ownKey: family.hasOwnKey ? .present : nil))
      }
    }
    collections.sort { ValueOrder.compare($0.pattern, $1.pattern) < 0 }
    return DatabaseContents(
      format: FileFormat.version, sequence: snapshot.sequence.rawValue,
      shards: shards, collections: collections)
  }

  /// The number of a keyspace's rows and their bytes.
  private func countedSize(of keyspace: Keyspace) throws(DatabaseError) -> RangeSize {
    var walk = RangeWalk(self, [KeyRange(prefix: keyspace.prefix)])
    var size = RangeSize()
    while try walk.next() {
      size.rows += 1
      size.bytes += walk.cursor.key.byteCount + (try walk.value.byteCount)
    }
    return size
  }
}
