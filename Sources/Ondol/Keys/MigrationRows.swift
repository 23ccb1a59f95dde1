// Where migrations are recorded: each is a document of a root collection that no app can name, so
// that records are written in the commits of transactions, checked, dumped and saved as documents
// are. What is in one is said by MigrationRecord.

internal import OndolEngine

/// How records of migrations are documents.
enum MigrationRows {
  /// The root collection. Apps cannot name it: names of this form are reserved.
  static let root = "__migrations__"
  static let pattern = CollectionPattern([root])

  static func document(_ name: String) -> DocumentPath { DocumentPath(unchecked: [root, name]) }

  /// The record that a path in a dump names; nil when it names none.
  static func document(named name: String) -> DocumentPath? {
    let segments = name.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    guard let path = try? DocumentPath(stored: segments), HiddenRows.isRecord(path),
      isSame(path.segments[0], root)
    else { return nil }
    return path
  }
}
