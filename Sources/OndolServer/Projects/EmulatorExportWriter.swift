// A database as an export of Firebase's emulators, which they and `ondol serve --import` read. The
// file of metadata comes last, so an export that did not end is none.

#if Server
  import Foundation
  package import Ondol
  import OndolJSON
  import OndolMapping

  /// Writes an export.
  package struct EmulatorExportWriter: Sendable {
    /// The version of the formats: emulators of it and of later ones read them.
    private static let version = "11.0.0"
    private static let pieceLength = 1 << 20
    private static let pageLength = 256

    /// The id of the project that the export is for.
    private let project: String

    /// - Throws: `.invalidArgument` for what can be no project's id.
    package init(project: String) throws(DatabaseError) {
      let isPlain = project.utf8.allSatisfy { byte in
        (0x61...0x7A).contains(byte) || (0x30...0x39).contains(byte) || byte == UInt8(ascii: "-")
      }
      guard isPlain, (1...30).contains(project.utf8.count) else {
        throw DatabaseError(
          .invalidArgument,
          "\"\(project)\" is no project's id: up to 30 small letters, digits and hyphens")
      }
      self.project = project
    }

    /// Writes a database into a folder. The documents are those of one moment. Accounts, the tree
    /// and objects are read after them.
    ///
    /// - Parameters:
    ///   - path: a folder that is new or empty.
    ///   - progress: gets what is done so far. What it throws ends the export.
    /// - Throws: `DumpError` when the folder cannot be written; `.invalidArgument` for a document
    ///   that Firestore cannot have; otherwise the errors of reading.
    @discardableResult
    package func write(
      _ database: Database, to path: String,
      _ progress: (ExportCounts) throws -> Void = { _ in }
    ) async throws -> ExportCounts {
      let target = try DumpDirectory(path)
      var counts = ExportCounts()
      try await writeDocuments(database, target, &counts, progress)
      try target.begin("\(AccountsExportReader.folder)/\(AccountsExportReader.name)")
      try await AccountsExport.write(database, &counts) { try target.write(content: $0) }
      try target.begin("\(AccountsExportReader.folder)/\(AccountsExportReader.settingsName)")
      try target.write(content: Array("{\"signIn\":{\"allowDuplicateEmails\":false}}\n".utf8))
      try progress(counts)
      try await writeTree(database, target, &counts)
      let objects = ObjectsExport(bucket: "\(project).appspot.com")
      try target.begin("\(ObjectsExportReader.folder)/\(ObjectsExportReader.bucketsName)")
      try target.write(content: objects.buckets)
      try await objects.write(
        database, &counts, begin: { try target.begin("\(ObjectsExportReader.folder)/\($0)") },
        write: { try target.write(content: $0) })
      try target.begin(EmulatorExport.metadataName)
      try target.write(content: Array((JSONWriter.line(Self.metadata, .plain) + "\n").utf8))
      try target.finish()
      return counts
    }

    private static var metadata: Value {
      func part(_ folder: String) -> [String: Value] {
        ["version": .string(version), "path": .string(folder)]
      }
      var firestore = part(FirestoreExport.folder)
      firestore["metadata_file"] = .string(FirestoreExport.overall)
      return [
        "version": .string(version), "firestore": .map(firestore),
        "auth": .map(part(AccountsExportReader.folder)),
        "database": .map(part(TreeExportReader.folder)),
        "storage": .map(part(ObjectsExportReader.folder)),
      ]
    }

    // MARK: - Documents

    private func writeDocuments(
      _ database: Database, _ target: DumpDirectory, _ counts: inout ExportCounts,
      _ progress: (ExportCounts) throws -> Void
    ) async throws {
      let values = ValueMapping(
        database: DatabaseName(project: project, id: DatabaseName.usual))
      let writer = EntityWriter(project: project)
      let reader = try DumpReader(database)
      if let locked = try await reader.lockedCollections().first {
        throw DatabaseError(
          .failedPrecondition, "\(locked) has a key of its own, which is not here (the file KEYS)")
      }
      let kinds = "\(FirestoreExport.folder)/\(FirestoreExport.kinds)"
      let parent = kinds.prefix(through: kinds.lastIndex(of: "/") ?? kinds.startIndex)
      var log = RecordLogWriter()
      try target.begin(parent + FirestoreExport.output)
      for collection in try await reader.collections() where collection.isOfApp {
        var last: [UInt8]?
        repeat {
          let page = try await reader.documents(
            of: collection, after: last, limit: Self.pageLength)
          last = page.last
          for document in page.documents {
            guard log.append(try Self.record(document, writer, values)) else {
              throw DatabaseError(
                .resourceExhausted, "\(document.name) is too large for an export")
            }
            if log.bytes.count >= Self.pieceLength { try target.write(content: log.take()) }
          }
          counts.documents += page.documents.count
          try progress(counts)
        } while last != nil
      }
      try target.write(content: log.take())
      try target.begin(kinds)
      try target.write(content: FirestoreExport.kindBytes(at: database.wallClock))
      try target.begin(FirestoreExport.overall)
      try target.write(
        content: FirestoreExport.overallBytes(documents: counts.documents, bytes: log.length))
    }

    private static func record(
      _ document: DumpedDocument, _ writer: EntityWriter, _ values: ValueMapping
    ) throws(DatabaseError) -> [UInt8] {
      let path = try DocumentPath(document.name)
      do throws(EntityProblem) {
        return try writer.record(of: path, values.wire(document.fields))
      } catch {
        throw DatabaseError(
          .invalidArgument, "\(document.name): the field \(error.field): \(error.reason)")
      }
    }

    // MARK: - The tree

    private func writeTree(
      _ database: Database, _ target: DumpDirectory, _ counts: inout ExportCounts
    ) async throws {
      let data = try await database.tree.getData().nodeData
      counts.hasTree = data.exists
      try target.begin("\(TreeExportReader.folder)/\(project)-default-rtdb.json")
      try target.write(content: Array((TreeText.json(data) + "\n").utf8))
    }
  }
#endif
