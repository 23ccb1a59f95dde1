// Bytes that come in requests: in one, with or without metadata beside them, or in several that
// continue each other. They go to the device as they come; memory holds a few pieces.

#if Server
  import Ondol

  extension ObjectCalls {
    /// What an upload says of its object.
    struct Intent: Sendable {
      var place: ObjectPlace
      var metadata: StorageMetadata
      var expected: ExpectedChecksums
    }

    /// Makes an object of the whole body of a request.
    func upload(
      _ intent: Intent, _ call: HTTPCall, _ conditions: ObjectConditions
    ) async throws -> StorageMetadata {
      let length = call.bodyLength
      try await check(intent.place, intent.metadata, size: length)
      var intake = ObjectIntake(database)
      let content: ObjectContent
      do {
        try await call.takeBody { try await intake.append($0) }
        // A connection that ends early is no end of the content.
        guard length == nil || length == intake.length else { throw Self.wrongLength }
        content = try await intake.finish()
      } catch {
        await intake.abandon()
        throw error
      }
      try intent.expected.check(content)
      return try await put(content, at: intent.place, intent.metadata, conditions)
    }

    /// Makes an object of a body of two parts: the metadata, and the bytes.
    ///
    /// - Parameter intent: gets the metadata and the type of the bytes.
    func uploadParts(
      _ call: HTTPCall, _ conditions: ObjectConditions,
      _ intent: (SentMetadata, _ type: String?) throws -> Intent
    ) async throws -> StorageMetadata {
      guard var reader = MultipartReader(contentType: call.headers["content-type"] ?? "") else {
        throw MultipartReader.broken
      }
      let length = call.bodyLength
      var (parts, json) = (0, [UInt8]())
      var wanted: Intent?
      var intake = ObjectIntake(database)
      let content: ObjectContent
      do {
        try await call.takeBody { piece in
          for event in try reader.take(piece) {
            switch event {
            case .part(let headers, let offset):
              parts += 1
              guard parts == 2 else { continue }
              let found = try intent(try SentMetadata(json), headers["content-type"])
              let least = length.map { max(0, $0 - offset - reader.endLength - 2) }
              try await check(found.place, found.metadata, size: least)
              wanted = found
            case .bytes(let bytes) where parts == 1:
              guard json.count + bytes.count <= HTTPCall.mostMetadata else {
                throw StorageFailure.invalid("The metadata is too long.")
              }
              json += bytes
            case .bytes(let bytes) where parts == 2: try await intake.append(bytes)
            case .bytes: throw MultipartReader.broken
            }
          }
        }
        guard reader.isComplete, parts == 2 else { throw MultipartReader.broken }
        content = try await intake.finish()
      } catch {
        await intake.abandon()
        throw error
      }
      guard let wanted else { throw MultipartReader.broken }
      try wanted.expected.check(content)
      return try await put(content, at: wanted.place, wanted.metadata, conditions)
    }

    // MARK: - In several requests

    /// What a request adds to an upload.
    struct Continuation: Sendable {
      /// The place of its first byte in the object.
      var offset: Int
      /// How many bytes it has; nil when it does not say.
      var count: Int?
      /// How many the object has; nil when it is not known yet.
      var total: Int?
      /// Whether the upload ends with it.
      var isLast = false
    }

    /// Begins an upload.
    ///
    /// - Parameter total: how many bytes it will have; nil when the client does not say.
    func begin(
      _ intent: Intent, _ conditions: ObjectConditions, total: Int?
    ) async throws -> UploadSession {
      try await check(intent.place, intent.metadata, size: total ?? 0)
      let session = UploadSession(
        intent.place, intent.metadata, conditions, intent.expected, by: caller, total: total)
      try await sessions.begin(session)
      return session
    }

    /// Takes the bytes of a request. Those that have arrived before are left out.
    ///
    /// - Returns: the upload's state, and the object if it is complete.
    func receive(
      _ session: UploadSession, _ call: HTTPCall, _ next: Continuation
    ) async throws -> (UploadSession, StorageMetadata?) {
      var session = session
      if let total = next.total {
        guard session.total == nil || session.total == total else {
          throw StorageFailure.invalid("The upload has another size.")
        }
        session.total = total
      }
      guard next.offset <= session.received else {
        throw StorageFailure.invalid("\(session.received) bytes have arrived.")
      }
      let length = next.count ?? call.bodyLength
      let (end, isTooLong) = next.offset.addingReportingOverflow(length ?? 0)
      guard !isTooLong, end <= session.total ?? .max else { throw Self.pastSize }
      try await check(session.place, session.metadata, size: length.map { _ in end })
      var skipped = session.received - next.offset
      var seen = 0
      var intake = ObjectIntake(database)
      do {
        try await call.takeBody { piece in
          seen += piece.count
          guard seen <= length ?? .max else { throw Self.wrongLength }
          let known = min(skipped, piece.count)
          skipped -= known
          let bytes = known == 0 ? piece : Array(piece.dropFirst(known))
          guard !bytes.isEmpty else { return }
          let arrived = session.received + intake.length
          guard bytes.count <= (session.total ?? .max) - arrived else { throw Self.pastSize }
          if intake.length >= UploadSessions.pieceLength {
            session = try await sessions.add(try await intake.finish(), to: session)
            intake = ObjectIntake(database)
          }
          try await intake.append(bytes)
        }
        guard length == nil || seen == length else { throw Self.wrongLength }
        let arrived = session.received + intake.length
        let isComplete = next.isLast || arrived == session.total
        guard !next.isLast || session.total == nil || session.total == arrived else {
          throw StorageFailure.invalid("The upload has \(arrived) bytes.")
        }
        if isComplete, session.pieces == 0 {
          return try await complete(session, with: try await intake.finish())
        }
        if intake.length > 0 {
          session = try await sessions.add(try await intake.finish(), to: session)
        }
        guard isComplete else { return (session, nil) }
        return try await complete(session, with: try await sessions.content(of: session))
      } catch {
        await intake.abandon()
        throw error
      }
    }

    private func complete(
      _ session: UploadSession, with content: ObjectContent
    ) async throws -> (UploadSession, StorageMetadata?) {
      try session.expected.check(content)
      let metadata = try await put(
        content, at: session.place, session.metadata, session.conditions, ending: session)
      // Of a content's only stretch, the upload is what holds it.
      if !session.place.isContent || session.pieces > 1 {
        await sessions.removePieces(of: session)
      }
      return (session, metadata)
    }

    private static let wrongLength = StorageFailure.invalid(
      "The request has another number of bytes than it says.")
    private static let pastSize = StorageFailure.invalid(
      "The upload has more bytes than it was begun with.")
  }

  extension HTTPCall {
    /// The most bytes of metadata in a request.
    static let mostMetadata = 1 << 20

    /// How many bytes the body has, if the client says so.
    var bodyLength: Int? {
      stream == nil ? body.count : headers["content-length"].flatMap { byteCount($0) }
    }

    /// Takes the body piece by piece.
    func takeBody(_ take: HTTPBody.Take) async throws {
      guard let stream else { return try await take(body) }
      try await stream.forEach(take)
    }

    /// The whole body, which is metadata.
    func metadataBody() async throws -> [UInt8] {
      var bytes: [UInt8] = []
      try await takeBody { piece in
        guard bytes.count + piece.count <= Self.mostMetadata else {
          throw StorageFailure(413, "The body is too long.")
        }
        bytes += piece
      }
      return bytes
    }
  }
#endif
