// Contents of documents on their way between a device and the server (OndolSync). A device names a
// content by its digest, as an object that does not exist: `__contents__/` and 64 hexadecimal
// digits. It puts the bytes there before it sends the document that names them, in one request or
// in several, and they stay for as long as the bytes of any put without a holder do. It gets them
// there as well, and says which document names them.
//
// Storage's rules decide who may put bytes, by `create` at that path. A caller who may get a
// document may get its contents.

#if Server
  import Ondol

  extension ObjectPlace {
    private static let contents = "__contents__/"

    /// Whether the name is kept for contents.
    var isContent: Bool { name.utf8.starts(with: Self.contents.utf8) }

    /// The content's digest, if the name is one of a content.
    var digest: BlobDigest? {
      guard isContent else { return nil }
      return BlobDigest(hex: String(name.dropFirst(Self.contents.count)))
    }
  }

  extension ObjectCalls {
    /// Stores the bytes of a content until a document holds them.
    ///
    /// - Parameter session: the upload that ends with it.
    func keep(
      _ content: ObjectContent, as digest: BlobDigest, at place: ObjectPlace,
      _ metadata: StorageMetadata, ending session: UploadSession?
    ) async throws -> StorageMetadata {
      guard content.isOf(digest) else { throw StorageFailure.wrongChecksum }
      try await check(place, metadata, size: content.length)
      try await database.keep(content)
      if let session {
        try await database.runTransaction { transaction in
          try sessions.finish(session, in: transaction)
        }
      }
      return metadata
    }

    /// The bytes of a content that a document names.
    func content(_ digest: BlobDigest, _ call: HTTPCall) async throws -> HTTPAnswer {
      guard let name = call.query["document"], let path = try? DocumentPath(name) else {
        throw StorageFailure.invalid("The parameter document is missing, or is no path.")
      }
      let (database, documents) = (database, documents)
      let isNamed = try await database.readMoment().withDocuments {
        (reader) throws(DatabaseError) in
        let document = try reader.document(at: path)
        if case .ruled(let access) = documents {
          let reads = RuleReads(reader, of: access, database)
          guard try access.allows(.get, [document], reads) else { throw .refused }
        }
        return document.exists && document.data().contents.contains(digest)
      }
      guard isNamed, let content = try await database.open(digest) else {
        throw StorageFailure(404, "The document does not have this content.")
      }
      var answer = HTTPAnswer(type: StorageMetadata.usualType)
      let range: Range<Int>
      switch WantedBytes(call.headers["range"], of: content.length) {
      case .all: range = 0..<content.length
      case .some(let some):
        range = some
        answer.status = 206
        answer.headers.append(
          ("content-range", "bytes \(some.lowerBound)-\(some.upperBound - 1)/\(content.length)"))
      case .none: throw StorageFailure(416, "There are no such bytes.")
      }
      answer.headers.append(("content-disposition", "attachment"))
      answer.stream = (range.count, content.bytes(in: range))
      return answer
    }
  }
#endif
