// Root collections that belong to the database and not to the app: storage paths, and records that
// the database keeps of its own work. Both are documents, so the write path, checks, backups and
// salvage treat them as such. No app can name these collections, and no list shows them.

/// Which documents are not the app's.
enum HiddenRows {
  private static let recordRoots =
    [MigrationRows.root, WriteStreamRows.root, TokenKeyRows.root, UploadRows.root]
    + SyncRows.roots

  /// Whether a root collection is not the app's.
  static func isHidden(root: String) -> Bool {
    isSame(root, StorageRows.root) || recordRoots.contains { isSame(root, $0) }
  }

  /// Whether a collection has records of the database's own work.
  static func hasRecords(_ pattern: CollectionPattern) -> Bool {
    recordRoots.contains { pattern == CollectionPattern([$0]) }
  }

  /// The record that a path in a dump names; nil when it names none of the collection's.
  static func record(named name: String, in pattern: CollectionPattern) -> DocumentPath? {
    let segments = name.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    guard let path = try? DocumentPath(stored: segments), isRecord(path),
      CollectionPattern(collectionOf: path) == pattern
    else { return nil }
    return path
  }

  /// Whether a document is a record of the database's own work. The change feed leaves it out.
  static func isRecord(_ path: DocumentPath) -> Bool {
    path.segments.count == 2 && recordRoots.contains { isSame(path.segments[0], $0) }
      && ResourceName.problem(withID: path.segments[1]) == nil
  }
}
