// The records of migrations: each is a document of a root collection that apps cannot name. So
// transactions write records in their commits, and they are checked, dumped and saved like
// documents. MigrationRecord defines their contents.

internal import OndolEngine

/// The mapping of migration records to documents.
enum MigrationRows {
  /// The root collection. Apps cannot name it: names of this form are reserved.
  static let root = "__migrations__"
  static let pattern = CollectionPattern([root])

  static func document(_ name: String) -> DocumentPath { DocumentPath(unchecked: [root, name]) }
}
