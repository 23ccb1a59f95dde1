// A folder of databases by project and id, each opened when it is first asked for and made when
// there is none: what `ondol serve --many` serves.

#if Server
  import Foundation
  package import Ondol

  /// Opens databases by their names.
  package actor DatabaseFolder: DatabaseDirectory {
    /// Opens the database with a name, at its place below the folder.
    package typealias Open =
      @Sendable (_ path: String) async throws(DatabaseError) -> Database

    private let folder: URL
    private let open: Open
    private var opening: [DatabaseName: Task<Result<ServedDatabase, DatabaseError>, Never>] = [:]
    private var isClosed = false

    package init(at folder: String, _ open: @escaping Open) {
      self.folder = URL(filePath: folder, directoryHint: .isDirectory)
      self.open = open
    }

    package func database(
      project: String, id: String
    ) async throws(DatabaseError) -> ServedDatabase {
      let name = DatabaseName(project: project, id: id)
      if let known = opening[name] { return try await known.value.get() }
      guard !isClosed else {
        throw DatabaseError(.unavailable, "the server is shutting down")
      }
      let path = try path(of: name)
      let task = Task { [open] () -> Result<ServedDatabase, DatabaseError> in
        do throws(DatabaseError) {
          return .success(ServedDatabase(try await open(path)))
        } catch {
          return .failure(error)
        }
      }
      opening[name] = task
      let result = await task.value
      // What failed is tried again by the next call.
      if case .failure = result { opening[name] = nil }
      return try result.get()
    }

    /// Closes all databases.
    ///
    /// - Throws: what the first of them threw; all are closed.
    package func close() async throws(DatabaseError) {
      isClosed = true
      var first: DatabaseError?
      for task in opening.values {
        guard case .success(let served) = await task.value else { continue }
        do throws(DatabaseError) {
          try await served.database.close()
        } catch {
          first = first ?? error
        }
      }
      opening = [:]
      if let first { throw first }
    }

    /// Where the database is; the folder of its project is made.
    private func path(of name: DatabaseName) throws(DatabaseError) -> String {
      for part in [name.project, name.id] where !Self.isPlain(part) {
        throw DatabaseError(
          .invalidArgument,
          "\"\(part)\" cannot name a folder: letters, digits, and -_.:() after the first")
      }
      let project = folder.appending(path: name.project, directoryHint: .isDirectory)
      do {
        try FileManager.default.createDirectory(at: project, withIntermediateDirectories: true)
      } catch {
        throw DatabaseError(
          .unavailable, "the folder cannot be made: \(error.localizedDescription)",
          path: project.path(percentEncoded: false))
      }
      return project.appending(path: "\(name.id).ondol").path(percentEncoded: false)
    }

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
  }
#endif
