// Databases by project and id, for `ondol serve --many`. The first request opens each, and creates
// it if it does not exist, in a folder or in a server's tables.

#if Server
  import Foundation
  package import Ondol
  import OndolMapping

  /// Opens databases by their names.
  package actor ManyDatabases: DatabaseDirectory {
    /// Opens a project's database.
    package typealias Open =
      @Sendable (_ project: String, _ id: String) async throws(DatabaseError) -> Database

    private let open: Open
    private var databases: [DatabaseName: OpenedDatabase] = [:]
    private var isClosed = false

    package init(_ open: @escaping Open) {
      self.open = open
    }

    package func database(
      project: String, id: String
    ) async throws(DatabaseError) -> ServedDatabase {
      let name = DatabaseName(project: project, id: id)
      if let known = databases[name] { return try await known.served() }
      guard !isClosed else {
        throw DatabaseError(.unavailable, "the server is shutting down")
      }
      for part in [project, id] where !Self.isPlain(part) {
        throw DatabaseError(
          .invalidArgument,
          "\"\(part)\" cannot name a database here: up to 128 letters, digits and -_.:(), and no"
            + " dot in front")
      }
      let database = OpenedDatabase { [open] () throws(DatabaseError) in
        try await open(project, id)
      }
      databases[name] = database
      return try await database.served()
    }

    /// Each database has rules of its own. One without them is administrators' alone.
    package var hasRules: Bool { true }

    /// Closes all databases.
    ///
    /// - Throws: the first error. All databases are closed in any case.
    package func close() async throws(DatabaseError) {
      isClosed = true
      var first: DatabaseError?
      for database in databases.values {
        do throws(DatabaseError) {
          try await database.close()
        } catch {
          first = first ?? error
        }
      }
      databases = [:]
      if let first { throw first }
    }

    /// Whether a name is valid in a file name and in an address without encoding.
    private static func isPlain(_ name: String) -> Bool {
      guard let first = name.utf8.first, first != UInt8(ascii: "."), name.utf8.count <= 128 else {
        return false
      }
      return name.unicodeScalars.allSatisfy { scalar in
        scalar.isASCII
          && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar)
            || "-_.:()".unicodeScalars.contains(scalar))
      }
    }

    /// Returns the path of a database in a folder of databases. Creates the folder of its project.
    ///
    /// - Throws: `.unavailable` when it cannot create the folder.
    package static func path(
      in folder: String, project: String, id: String
    ) throws(DatabaseError) -> String {
      let place = URL(filePath: folder, directoryHint: .isDirectory)
        .appending(path: project, directoryHint: .isDirectory)
      do {
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
      } catch {
        throw DatabaseError(
          .unavailable, "the folder cannot be made: \(error.localizedDescription)",
          path: place.path(percentEncoded: false))
      }
      return place.appending(path: "\(id).ondol").path(percentEncoded: false)
    }

    /// The address of a database among those that share a server's tables. The names contain
    /// nothing that an address must encode.
    package static func address(
      at server: String, project: String, id: String
    ) -> String {
      "\(server)\(server.contains("?") ? "&" : "?")ondol=\(project)%2F\(id)"
    }
  }
#endif
