// The part of an export with objects: `buckets.json`, a file of metadata for each object, and the
// bytes under the same name in another folder. The names are the emulator's own, and older versions
// name the files by bucket and path. A bucket is a database's storage, so all objects are of one.

#if Server
  import Foundation
  import Ondol
  import OndolJSON

  /// Reads the objects of an export.
  struct ObjectsExportReader: Sendable {
    static let folder = "storage_export"
    static let bucketsName = "buckets.json"
    static let metadataName = "metadata"
    static let bytesName = "blobs"
    /// How much of a file is in memory.
    private static let pieceLength = 1 << 20

    private struct Object: Sendable {
      /// The file of metadata, as faults name it.
      let file: String
      let name: String
      let metadata: StorageMetadata
      let expected: ExpectedChecksums
      /// The path of the file with the bytes.
      let bytes: String
      let size: Int
    }

    private var objects: [Object] = []

    /// - Parameter part: the name of the folder.
    init(_ folder: ProjectFolder, _ part: String) throws(ProjectFault) {
      let root = "\(part)/\(Self.metadataName)"
      guard folder.exists(root) else { return }
      var (bucket, first) = ("", "")
      for name in try folder.names(in: root, isDeep: true) where name.hasSuffix(".json") {
        let file = folder.place("\(root)/\(name)")
        guard let fields = try folder.json("\(root)/\(name)").map else {
          throw ProjectFault(file, nil, "it is no object")
        }
        let object = try Self.object(fields, file, folder, part, String(name.dropLast(5)))
        guard let here = fields["bucket"]?.string, first.isEmpty || here == bucket else {
          throw ProjectFault(
            file, "bucket", "it is another one than in \(first), and a database has one")
        }
        (bucket, first) = (here, file)
        objects.append(object)
      }
    }

    private static func object(
      _ fields: [String: Value], _ file: String, _ folder: ProjectFolder, _ part: String,
      _ name: String
    ) throws(ProjectFault) -> Object {
      guard let path = fields["name"]?.string else {
        throw ProjectFault(file, "name", "it is no text")
      }
      // Some versions encode the name of the metadata once more.
      let names = [name, PercentCoding.decoded(name[...]) ?? name]
        .filter(ProjectFolder.isInside).map { "\(part)/\(bytesName)/\($0)" }
      guard let bytes = names.first(where: folder.isFile), let size = folder.size(of: bytes) else {
        throw ProjectFault(file, nil, "there is no file \(part)/\(bytesName)/\(name) of its bytes")
      }
      if let announced = fields["size"]?.integer, announced != Int64(size) {
        throw ProjectFault(folder.place(bytes), nil, "it has \(size) bytes instead of \(announced)")
      }
      var sent = fields
      var custom = fields["customMetadata"]?.map ?? [:]
      let tokens = fields["downloadTokens"]?.array?.compactMap(\.string) ?? []
      if !tokens.isEmpty {
        custom[StorageMetadata.tokensName] = .string(tokens.joined(separator: ","))
      }
      sent["metadata"] = .map(custom)
      var metadata = StorageMetadata()
      do throws(StorageFailure) {
        try SentMetadata(sent).apply(to: &metadata, isFirebase: false)
      } catch {
        throw ProjectFault(file, nil, error.message)
      }
      return Object(
        file: file, name: path, metadata: metadata, expected: expected(fields),
        bytes: folder.place(bytes), size: size)
    }

    /// The checksums, which the emulator writes as a decimal number and in Base64.
    private static func expected(_ fields: [String: Value]) -> ExpectedChecksums {
      var expected = ExpectedChecksums(
        crc32c: fields["crc32c"]?.string, md5: fields["md5Hash"]?.string)
      if let number = expected.crc32c.flatMap({ UInt32($0) }) {
        let bytes = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
        expected.crc32c = Data(bytes).base64EncodedString()
      }
      return expected
    }

    /// Throws when a database can have no object of one of the names.
    func check(for database: Database) throws(ProjectFault) {
      for object in objects {
        do throws(DatabaseError) {
          try database.storage.check(name: object.name)
        } catch {
          throw ProjectFault(object.file, "name", error.message)
        }
      }
    }

    /// Puts the objects into a database, with new generations and times.
    ///
    /// - Parameter progress: called after each object.
    /// - Throws: `ProjectFault` for bytes with another checksum than the metadata has, and for
    ///   metadata that no object here can have.
    func load(into database: Database, _ progress: () throws -> Void) async throws {
      for object in objects {
        do {
          let content = try await Self.content(of: object, in: database)
          try object.expected.check(content)
          _ = try await database.commitObject(at: object.name) { transaction in
            try transaction.putObject(content, at: object.name, object.metadata)
          }
        } catch let error as StorageFailure {
          throw ProjectFault(object.file, nil, error.message)
        } catch let error as DatabaseError where error.code == .invalidArgument {
          throw ProjectFault(object.file, nil, error.message)
        }
        try progress()
      }
    }

    private static func content(
      of object: Object, in database: Database
    ) async throws -> ObjectContent {
      guard let handle = FileHandle(forReadingAtPath: object.bytes) else {
        throw ProjectFault(object.bytes, nil, "it cannot be read")
      }
      defer { try? handle.close() }
      var intake = ObjectIntake(database)
      do {
        while let piece = try handle.read(upToCount: pieceLength), !piece.isEmpty {
          try await intake.append(Array(piece))
        }
        return try await intake.finish()
      } catch {
        await intake.abandon()
        throw error
      }
    }
  }

  /// Writes the objects of an export.
  struct ObjectsExport {
    /// The bucket that the export names.
    let bucket: String

    private static let pageLength = 500
    /// A download begins again when the object was replaced meanwhile.
    private static let attempts = 16

    /// `buckets.json`.
    var buckets: [UInt8] {
      Array((JSONWriter.line(["buckets": [["id": .string(bucket)]]], .plain) + "\n").utf8)
    }

    /// Writes all objects of a database.
    ///
    /// - Parameters:
    ///   - begin: begins a file, by its name below the part's folder.
    ///   - write: adds bytes to it.
    func write(
      _ database: Database, _ counts: inout ExportCounts, begin: (String) throws -> Void,
      write: ([UInt8]) throws -> Void
    ) async throws {
      var listing = ObjectListing()
      listing.limit = Self.pageLength
      repeat {
        let page = try await database.storage.page(of: listing)
        for object in page.items {
          let name = "\(counts.objects)"
          guard let written = try await bytes(of: object, database, name, begin, write) else {
            continue
          }
          try begin("\(ObjectsExportReader.metadataName)/\(name).json")
          try write(Array((JSONWriter.line(metadata(of: written), .plain) + "\n").utf8))
          counts.objects += 1
        }
        listing.last = page.next
      } while listing.last != nil
    }

    /// Writes the bytes of an object. Returns what they belong to; nil when the object is gone.
    private func bytes(
      of object: StorageMetadata, _ database: Database, _ name: String,
      _ begin: (String) throws -> Void, _ write: ([UInt8]) throws -> Void
    ) async throws -> (StorageMetadata, ContentChecksums)? {
      var object = object
      for _ in 0..<Self.attempts {
        if let content = try await database.open(object) {
          var sums = RunningChecksums()
          try begin("\(ObjectsExportReader.bytesName)/\(name)")
          for try await piece in content.bytes(in: 0..<object.size) {
            sums.update(piece)
            try write(piece)
          }
          return (object, sums.finalize())
        }
        do throws(DatabaseError) {
          object = try await database.storage.reference(withPath: object.path).getMetadata()
        } catch {
          guard error.code == .notFound else { throw error }
          return nil
        }
      }
      throw DatabaseError(.aborted, "\(object.path) changes too often")
    }

    /// The object as the emulator writes it.
    private func metadata(
      of written: (object: StorageMetadata, sums: ContentChecksums)
    ) -> Value {
      let (object, sums) = written
      var fields: [String: Value] = [
        "name": .string(object.path), "bucket": .string(bucket),
        "generation": .integer(object.generation),
        "metageneration": .integer(object.metageneration), "storageClass": "STANDARD",
        "contentType": .string(object.contentType ?? StorageMetadata.usualType),
        "size": .integer(Int64(object.size)), "md5Hash": .string(sums.md5Text),
        "crc32c": .string("\(sums.crc32c)"), "etag": .string(object.tag),
        "downloadTokens": .array(object.downloadTokens.map { .string($0) }),
        "customMetadata": .map(object.appMetadata.mapValues { .string($0) }),
      ]
      fields["cacheControl"] = object.cacheControl.map(Value.string)
      fields["contentDisposition"] = object.contentDisposition.map(Value.string)
      fields["contentEncoding"] = object.contentEncoding.map(Value.string)
      fields["contentLanguage"] = object.contentLanguage.map(Value.string)
      fields["timeCreated"] = object.created.map { .string(Moment.text($0)) }
      fields["updated"] = object.updated.map { .string(Moment.text($0)) }
      return .map(fields)
    }
  }
#endif
