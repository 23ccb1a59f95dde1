// Documents in bulk, for the tool's import: the reader compiles them, on any thread, and they are
// committed a few thousand at a time on the ordinary write path.

/// A write of an import, checked as far as possible before anything is read.
package struct ImportedDocument: Sendable {
  /// What happens to an existing document, and to a missing one.
  package enum Mode: String, Sendable, CaseIterable {
    /// It must not exist.
    case insert
    /// Replaced or created.
    case upsert
    /// The fields are set, all others stay; created when it does not exist.
    case merge
    /// Replaced; it must exist.
    case replace
  }

  let write: DocumentWrite

  /// Where the document is.
  package var path: DocumentPath { write.path }

  /// - Throws: `.invalidArgument`, naming the field, for an invalid name or value.
  fileprivate init(
    _ fields: [String: Value], _ row: EncodedRow?, at path: DocumentPath, _ mode: Mode
  ) throws(DatabaseError) {
    var intent =
      if mode == .merge {
        try WriteCompiler.merge(fields.mapValues { FieldInput($0) })
      } else if let row {
        WriteIntent(change: .put(row))
      } else {
        try WriteCompiler.set(FieldInput(.map(fields)))
      }
    switch mode {
    case .insert: intent.precondition = .exists(false)
    case .replace: intent.precondition = .exists(true)
    case .upsert, .merge: break
    }
    write = DocumentWrite(path: path, intent: intent)
  }
}

/// Prepares the documents of an import, if possible as their final rows, so that the commit has
/// less to do. For one thread at a time.
package struct ImportEncoder {
  private let database: Database
  private var encoders = RowEncoders()

  package init(_ database: Database) {
    self.database = database
  }

  /// A document with these fields.
  ///
  /// - Throws: `.invalidArgument`, naming the field, for an invalid name or value.
  package mutating func document(
    _ fields: [String: Value], at path: DocumentPath, _ mode: ImportedDocument.Mode
  ) throws(DatabaseError) -> ImportedDocument {
    let encoder = mode == .merge ? nil : encoders.encoder(for: path, in: database)
    return try ImportedDocument(fields, encoder?.row(of: fields), at: path, mode)
  }
}

extension Database {
  /// Commits the documents, all or none.
  ///
  /// - Throws: as `WriteBatch.commit(durability:)`.
  package func commit(
    _ documents: [ImportedDocument], durability: Durability
  ) async throws(DatabaseError) {
    guard !documents.isEmpty else { return }
    _ = try await commit(documents.map(\.write), durability: durability)
  }
}
