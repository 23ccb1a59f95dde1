// Where a server keeps uploads that are not complete. They are documents, so they survive a crash,
// hold the bytes that have arrived, and end by themselves. Who knows an upload's id may continue
// it, so their collection has a name that no app and no client can use.
//
//   __uploads__/ID                an upload; the server decides about its fields
//   __uploads__/ID+000000000001   bytes of it
//     ends     timestamp, in both: when the document ceases to exist

/// How uploads are documents.
enum UploadRows {
  /// The root collection. Apps cannot name it: names of this form are reserved.
  static let root = "__uploads__"
  static let pattern = CollectionPattern([root])

  /// The names of the fields.
  enum Field {
    static let ends = "ends"
  }
}

extension Database {
  /// The collection of the uploads that are not complete. No path that a caller gives leads to it.
  package var uploads: CollectionReference {
    let path = CollectionPath(unchecked: [UploadRows.root])
    return CollectionReference(database: self, place: .success(path))
  }

  /// Has uploads removed after their end. To be called before the first one begins.
  ///
  /// - Throws: as `CollectionReference.setTimeToLive(field:)`.
  /// - Complexity: O(1) lookups; the first time one commit.
  package func prepareForUploads() async throws(DatabaseError) {
    try await expire([UploadRows.Field.ends], of: UploadRows.pattern)
  }
}
