// What `firebase emulators:export` writes, read into a database: start reading here. A folder has
// `firebase-export-metadata.json`, which names a folder for each emulator. Everything is read once
// without writing, so a folder with a mistake leaves the database as it was. Then each part goes
// in: documents, accounts, the tree, objects.

#if Server
  import Foundation
  package import Ondol
  import OndolAccounts
  import OndolMapping

  /// What an export has, or what was read of it.
  package struct ExportCounts: Sendable, Equatable {
    package var documents = 0
    package var accounts = 0
    /// Accounts with a password. No other system can check those of Ondol.
    package var passwords = 0
    package var objects = 0
    package var hasTree = false
  }

  /// An export of Firebase's emulators.
  package struct EmulatorExport: Sendable {
    static let metadataName = "firebase-export-metadata.json"
    /// The largest number of documents, and of bytes of their records, in one commit.
    private static let mostDocuments = 500
    private static let mostBytes = 4 << 20

    private let folder: ProjectFolder
    /// The name of Firestore's overall metadata; nil without documents.
    private let documents: String?
    private let accounts: AccountsExportReader?
    private let tree: TreeExportReader?
    private let objects: ObjectsExportReader?

    /// Reads the metadata of an export, and the smaller parts.
    ///
    /// - Parameter path: the folder.
    /// - Throws: `ProjectFault`.
    package init(at path: String) throws {
      let folder = ProjectFolder(path: path)
      self.folder = folder
      let metadata = try folder.json(Self.metadataName)
      func part(_ key: String, _ name: String = "path") throws(ProjectFault) -> String? {
        guard let value = metadata[key], !value.isNull else { return nil }
        // On Windows, the emulator writes the paths of its system.
        guard let path = value[name]?.string?.replacing("\\", with: "/"),
          ProjectFolder.isInside(path)
        else {
          throw ProjectFault(
            folder.place(Self.metadataName), "\(key).\(name)", "it is no path in this folder")
        }
        return path
      }
      guard metadata.map != nil else {
        throw ProjectFault(folder.place(Self.metadataName), nil, "it is no object")
      }
      guard try part("dataconnect") == nil else {
        throw ProjectFault(
          folder.place(Self.metadataName), "dataconnect", "Ondol has no such data; remove the key")
      }
      documents = try part("firestore", "metadata_file")
      accounts = try part("auth").map { (name) throws(ProjectFault) in
        try AccountsExportReader(folder, name)
      }
      tree = try part("database").flatMap { (name) throws(ProjectFault) in
        try TreeExportReader(folder, name)
      }
      objects = try part("storage").map { (name) throws(ProjectFault) in
        try ObjectsExportReader(folder, name)
      }
    }

    // MARK: - Reading

    /// Puts the export into a database that has no data.
    ///
    /// - Parameter progress: gets what is done so far. What it throws ends the import.
    /// - Returns: what the export has.
    /// - Throws: `ProjectFault` before anything is written; `.alreadyExists` for a database with
    ///   data. Otherwise a part may be written, and the import begins with another database.
    @discardableResult
    package func load(
      into database: Database, _ progress: (ExportCounts) throws -> Void = { _ in }
    ) async throws -> ExportCounts {
      try await Self.checkIsEmpty(database)
      try objects?.check(for: database)
      _ = try await readDocuments { _ in }
      var counts = ExportCounts()
      var encoder = ImportEncoder(database)
      counts.documents = try await readDocuments { documents in
        let prepared = try documents.map { try encoder.document($0.fields, at: $0.path, .insert) }
        try await database.commit(prepared, durability: .power)
        counts.documents += documents.count
        try progress(counts)
      }
      if let accounts {
        let opened = try await Identity(database).accounts(Server.Options().accounts)
        counts.accounts = try await accounts.load(into: opened)
        try progress(counts)
      }
      if let tree {
        try await tree.load(into: database)
        counts.hasTree = true
      }
      if let objects {
        try await objects.load(into: database) {
          counts.objects += 1
          try progress(counts)
        }
      }
      return counts
    }

    private static func checkIsEmpty(_ database: Database) async throws {
      let reader = try DumpReader(database)
      for collection in try await reader.collections()
      where collection.isOfApp || collection.isStorage
        || collection.pattern == [AccountCollection.accounts]
      {
        let page = try await reader.documents(of: collection, after: nil, limit: 1)
        guard page.documents.isEmpty, page.last == nil else { throw hasData }
      }
      guard try await reader.nodes(after: nil, limit: 1).nodes.isEmpty else { throw hasData }
    }

    private static let hasData = DatabaseError(
      .alreadyExists, "the database has data already, and an import is for a new one")

    /// A document to write.
    private struct Ready {
      let path: DocumentPath
      let fields: [String: Value]
    }

    /// Reads all documents, and shows those of a commit at a time. Returns their number.
    private func readDocuments(_ show: ([Ready]) async throws -> Void) async throws -> Int {
      guard let documents else { return 0 }
      var reader = try FirestoreExportReader(folder, documents)
      var (count, ready, bytes): (Int, [Ready], Int) = (0, [], 0)
      var database: DatabaseName?
      while let (document, place) = try reader.next() {
        let name = document.segments.joined(separator: "/")
        guard document.database.id == DatabaseName.usual else {
          throw place("\(name) is in another database than \(DatabaseName.usual)")
        }
        guard database == nil || database == document.database else {
          throw place("\(name) is in another project than the documents before it")
        }
        database = document.database
        do throws(DatabaseError) {
          let path = try DocumentPath(segments: document.segments)
          guard !RuledAccess.isClosed(path) else {
            throw DatabaseError(
              .invalidArgument, "the collection \(path.segments[0]) is Ondol's own")
          }
          let values = ValueMapping(database: document.database)
          ready.append(Ready(path: path, fields: try values.fields(document.fields)))
        } catch {
          throw place("\(name): \(error.message)")
        }
        bytes += document.length
        count += 1
        if ready.count >= Self.mostDocuments || bytes >= Self.mostBytes {
          try await show(ready)
          (ready, bytes) = ([], 0)
        }
      }
      if !ready.isEmpty { try await show(ready) }
      return count
    }
  }

  extension DumpedCollection {
    /// Whether its documents are an app's.
    var isOfApp: Bool {
      guard let root = pattern.first else { return false }
      // The names of the database's own collections, which no app can use.
      return !RuledAccess.isClosed(root: root) && !root.hasPrefix("__")
    }
  }
#endif
