// Firebase Storage's protocol, as its clients on devices call it: metadata, lists, download tokens,
// and uploads that continue after a broken connection, by headers that begin with X-Goog-Upload.

#if Server
  import Foundation
  import Ondol
  import OndolJSON

  extension StorageFace {
    func answer(
      _ route: StorageRoute.Firebase, _ call: HTTPCall
    ) async throws -> HTTPAnswer {
      switch route {
      case .list(let bucket): return try await list(bucket, call)
      case .upload(let bucket, let name): return try await upload(to: bucket, name, call)
      case .get(let place):
        let calls = try await calls(call, bucket: place.bucket)
        if call.query["alt"] == "media" {
          return try await download(place, ObjectConditions(), call, calls)
        }
        var object = try await calls.metadata(of: place)
        // A client asks for metadata to make an address for downloads of it.
        if object.downloadTokens.isEmpty { object = try await addToken(to: object, calls) }
        return .json(object.firebaseResource(in: place.bucket))
      case .update(let place):
        let calls = try await calls(call, bucket: place.bucket)
        let object = try await calls.update(place, try ObjectConditions(call.query)) {
          (metadata) throws(StorageFailure) in try Self.change(&metadata, call)
        }
        return .json(object.firebaseResource(in: place.bucket))
      case .delete(let place):
        try await calls(call, bucket: place.bucket).delete(place, ObjectConditions())
        return HTTPAnswer(status: 204)
      }
    }

    private func list(_ bucket: String, _ call: HTTPCall) async throws -> HTTPAnswer {
      let calls = try await calls(call, bucket: bucket)
      let page = try await calls.list(try ObjectListing(call.query, mostResults: 1_000))
      var fields: [String: Value] = [
        "prefixes": .array(page.prefixes.map(Value.string)),
        "items": .array(
          page.items.map { ["name": .string($0.path), "bucket": .string(bucket)] }),
      ]
      fields["nextPageToken"] = page.next.map { .string(ObjectListing.token(after: $0)) }
      return .json(.map(fields))
    }

    /// Changes metadata, or download tokens.
    private static func change(
      _ metadata: inout StorageMetadata, _ call: HTTPCall
    ) throws(StorageFailure) {
      if let token = call.query["delete_token"] {
        metadata.downloadTokens = metadata.downloadTokens.filter { $0 != token }
        // Without one, the next client that asks for metadata would make another, and this makes
        // the old address useless at once.
        if metadata.downloadTokens.isEmpty { metadata.downloadTokens = [newToken()] }
      } else if call.query["create_token"] != nil {
        metadata.downloadTokens += [newToken()]
      } else {
        try SentMetadata(call.body).apply(to: &metadata, isFirebase: true)
      }
    }

    private static func newToken() -> String { UUID().uuidString.lowercased() }

    /// Gives an object that has no download token one.
    private func addToken(
      to object: StorageMetadata, _ calls: ObjectCalls
    ) async throws -> StorageMetadata {
      let database = calls.database
      guard !database.isReadOnly else { return object }
      return try await database.commitObject(at: object.path) { transaction in
        guard var present = try transaction.getMetadata(at: object.path) else {
          throw StorageFailure.noObject(object.path, in: calls.bucket)
        }
        if present.downloadTokens.isEmpty { present.downloadTokens = [Self.newToken()] }
        try transaction.updateObject(at: object.path, present)
      }
    }

    // MARK: - Uploads

    private func upload(
      to bucket: String, _ name: String?, _ call: HTTPCall
    ) async throws -> HTTPAnswer {
      if let id = call.query["upload_id"] { return try await resume(id, bucket, call) }
      let calls = try await calls(call, bucket: bucket)
      let kind = call.headers["x-goog-upload-protocol"]?.lowercased()
      if kind == "resumable" {
        guard Self.commands(of: call) == ["start"] else {
          throw StorageFailure.invalid("An upload begins with the command start.")
        }
        return try await begin(calls, name, call)
      }
      let isParts =
        call.headers["content-type"]?.lowercased().hasPrefix("multipart/related") == true
      let object: StorageMetadata
      if kind == "multipart" || call.query["uploadType"] == "multipart" || isParts {
        object = try await calls.uploadParts(call, ObjectConditions()) { sent, type in
          try Self.intent(sent, type, bucket, name, call)
        }
      } else {
        let intent = try Self.intent(.none, call.headers["content-type"], bucket, name, call)
        object = try await calls.upload(intent, call, ObjectConditions())
      }
      return .json(object.firebaseResource(in: bucket))
    }

    private static func intent(
      _ sent: SentMetadata, _ type: String?, _ bucket: String, _ name: String?, _ call: HTTPCall
    ) throws(StorageFailure) -> ObjectCalls.Intent {
      guard let name = name ?? sent.name else { throw .invalid("The object has no name.") }
      var metadata = StorageMetadata(contentType: type)
      try sent.apply(to: &metadata, isFirebase: true)
      metadata.contentType = metadata.contentType ?? StorageMetadata.usualType
      metadata.downloadTokens = [newToken()]
      return ObjectCalls.Intent(
        place: ObjectPlace(bucket: bucket, name: name), metadata: metadata,
        expected: sent.expected.adding(call.headers))
    }

    private func begin(
      _ calls: ObjectCalls, _ name: String?, _ call: HTTPCall
    ) async throws -> HTTPAnswer {
      let sent = try SentMetadata(try await call.metadataBody())
      let type = call.headers["x-goog-upload-header-content-type"]
      let intent = try Self.intent(sent, type, calls.bucket, name, call)
      let total = try call.headers["x-goog-upload-header-content-length"].map(Self.length)
      let session = try await calls.begin(intent, ObjectConditions(), total: total)
      let url =
        "\(origin(of: call))/v0/b/\(calls.bucket)/o?name="
        + "\(StorageMetadata.encoded(intent.place.name))&upload_id=\(session.id)"
        + "&upload_protocol=resumable"
      var answer = Self.status("active", session)
      answer.headers += [
        ("x-goog-upload-url", url), ("x-goog-upload-control-url", url),
        ("x-goog-upload-chunk-granularity", "262144"),
      ]
      return answer
    }

    private static func commands(of call: HTTPCall) -> [String] {
      (call.headers["x-goog-upload-command"] ?? "").split(separator: ",")
        .map { $0.filter { $0 != " " }.lowercased() }
    }

    private func resume(
      _ id: String, _ bucket: String, _ call: HTTPCall
    ) async throws -> HTTPAnswer {
      let session = try await session(id, bucket)
      let calls = try await calls(session, call)
      let commands = Self.commands(of: call)
      switch commands {
      case ["query"]: return Self.status(session.isDone ? "final" : "active", session)
      case ["cancel"]:
        guard !session.isDone else { throw UploadSessions.unknown }
        try await calls.sessions.cancel(session)
        return Self.status("cancelled", session)
      case ["upload"], ["upload", "finalize"], ["finalize"]:
        let isLast = commands.last == "finalize"
        if session.isDone {
          return Self.final(session, try await calls.metadata(ofDone: session))
        }
        var next = ObjectCalls.Continuation(offset: session.received, isLast: isLast)
        if commands.first == "upload" {
          guard let offset = call.headers["x-goog-upload-offset"].flatMap({ byteCount($0) }) else {
            throw StorageFailure.invalid("The header X-Goog-Upload-Offset is missing.")
          }
          next.offset = offset
        } else {
          next.count = 0
        }
        let (state, object) = try await calls.receive(session, call, next)
        return object.map { Self.final(state, $0) } ?? Self.status("active", state)
      default: throw StorageFailure.invalid("The header X-Goog-Upload-Command is not known.")
      }
    }

    private static func final(_ session: UploadSession, _ object: StorageMetadata) -> HTTPAnswer {
      var answer = HTTPAnswer.json(object.firebaseResource(in: session.place.bucket))
      answer.headers.append(("x-goog-upload-status", "final"))
      return answer
    }

    private static func status(_ name: String, _ session: UploadSession) -> HTTPAnswer {
      var answer = HTTPAnswer(status: 200)
      answer.headers += [
        ("x-goog-upload-status", name), ("x-goog-upload-size-received", "\(session.received)"),
      ]
      return answer
    }
  }
#endif
