// Firestore's names of databases, documents and collections, with their meaning here:
//
//   projects/P/databases/D                              a database
//   projects/P/databases/D/documents                    its root
//   projects/P/databases/D/documents/items/lamp         a document
//
// A DatabaseDirectory decides which database a project and a name lead to.

#if Server || Sync
  package import Ondol

  /// A database's name in the protocol.
  package struct DatabaseName: Sendable, Hashable, CustomStringConvertible {
    /// The database's name in projects with a single database.
    package static let usual = "(default)"

    package let project: String
    package let id: String

    package init(project: String, id: String) {
      self.project = project
      self.id = id
    }

    /// Reads `projects/P/databases/D`.
    ///
    /// Throws `.invalidArgument` for anything else.
    package init(_ text: String) throws(DatabaseError) {
      let (name, rest) = try Self.split(text)
      guard rest.isEmpty else { throw Self.malformed(text) }
      self = name
    }

    package var description: String { "projects/\(project)/databases/\(id)" }

    /// The prefix of the names of all its documents, without the "/" after it.
    package var documents: String { "\(self)/documents" }

    /// The name of a document.
    package func name(of path: DocumentPath) -> String {
      "\(documents)/\(path.segments.joined(separator: "/"))"
    }

    /// Splits a name of a document or of the root into its database and the rest.
    ///
    /// Throws `.invalidArgument` for anything else.
    package static func split(
      _ text: String
    ) throws(DatabaseError) -> (database: DatabaseName, rest: [String]) {
      let parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        .map { String(Substring($0)) }
      guard parts.count >= 4, parts[0] == "projects", parts[2] == "databases", !parts[1].isEmpty,
        !parts[3].isEmpty
      else { throw malformed(text) }
      return (DatabaseName(project: parts[1], id: parts[3]), Array(parts.dropFirst(4)))
    }

    /// The document with this name.
    ///
    /// Throws `.invalidArgument` for a name in another database or an invalid name.
    package func path(of text: String) throws(DatabaseError) -> DocumentPath {
      let (database, path) = try Self.document(text)
      guard database == self else { throw foreign(text) }
      return path
    }

    /// A position among documents' names, for a comparison. It may have the least of all ids, which
    /// no document has. Clients refer to that by a number, as Firestore's ids may be numbers.
    package func bound(of text: String) throws(DatabaseError) -> DocumentPath {
      let (database, rest) = try Self.split(text)
      guard database == self else { throw foreign(text) }
      guard rest.first == "documents", rest.count > 1, rest.last == Self.leastID else {
        return try path(of: text)
      }
      let segments = rest.dropFirst().dropLast()
      let collection = try CollectionPath(segments: Array(segments))
      return DocumentPath(unchecked: collection.segments + [""])
    }

    private static let leastID = "__id-9223372036854775808__"

    /// Splits a document's name.
    package static func document(
      _ text: String
    ) throws(DatabaseError) -> (database: DatabaseName, path: DocumentPath) {
      let (database, rest) = try split(text)
      guard rest.first == "documents", rest.count > 1 else { throw malformed(text) }
      return (database, try DocumentPath(segments: Array(rest.dropFirst())))
    }

    /// Splits the name of a parent of collections: a document, or the root, with a nil path.
    package static func parent(
      _ text: String
    ) throws(DatabaseError) -> (database: DatabaseName, path: DocumentPath?) {
      let (database, rest) = try split(text)
      guard rest.first == "documents" else { throw malformed(text) }
      if rest.count == 1 { return (database, nil) }
      return (database, try DocumentPath(segments: Array(rest.dropFirst())))
    }

    private static func malformed(_ text: String) -> DatabaseError {
      DatabaseError(
        .invalidArgument,
        "\"\(text)\" is no name of Firestore's: projects/P/databases/D/documents/COLLECTION/ID")
    }

    private func foreign(_ text: String) -> DatabaseError {
      DatabaseError(.invalidArgument, "\"\(text)\" is in another database than \(self)")
    }
  }

  extension Optional<DocumentPath> {
    /// The collection with this id below the document, or at the top.
    package func collection(_ id: String) throws(DatabaseError) -> CollectionPath {
      try CollectionPath(segments: (self?.segments ?? []) + [id])
    }
  }
#endif
