// Google Cloud Storage's JSON interface, as its clients call it. What it has and a database's
// storage has not, such as access lists and versions, is refused.

#if Server
  import Foundation
  import Ondol
  import OndolJSON

  extension StorageFace {
    func answer(
      _ route: StorageRoute.Google, _ call: HTTPCall
    ) async throws -> HTTPAnswer {
      switch route {
      case .unavailable: throw StorageFailure.unimplemented
      case .batch: return try await batch(call)
      case .buckets: return try await buckets(call)
      case .newBucket:
        let name = try SentMetadata(call.body).name ?? ""
        try await calls(call, bucket: name).access.requireEverything()
        throw StorageFailure(409, "A bucket is a database's storage: this one exists.")
      case .bucket(let bucket):
        try await calls(call, bucket: bucket).access.requireEverything()
        return .json(resource(ofBucket: bucket, call))
      case .list(let bucket):
        let calls = try await calls(call, bucket: bucket)
        let page = try await calls.list(try ObjectListing(call.query, mostResults: 1_000))
        return .json(resource(of: page, bucket, call))
      case .upload(let bucket): return try await upload(to: bucket, call)
      case .get(let place):
        let calls = try await calls(call, bucket: place.bucket)
        let conditions = try ObjectConditions(call.query)
        if let digest = place.digest { return try await calls.content(digest, call) }
        if call.query["alt"] == "media" || call.path.first == "download" {
          return try await download(place, conditions, call, calls)
        }
        let object = try await calls.metadata(of: place, conditions)
        try object.check(tagsIn: call.headers)
        return .json(object, place.bucket, origin(of: call))
      case .update(let place): return try await update(place, call, replacing: false)
      case .replaceMetadata(let place): return try await update(place, call, replacing: true)
      case .delete(let place):
        let calls = try await calls(call, bucket: place.bucket)
        try await calls.delete(place, try ObjectConditions(call.query))
        return HTTPAnswer(status: 204)
      case .copy(let source, let target, let isRewrite):
        return try await copy(source, to: target, call, isRewrite: isRewrite)
      case .move(let source, let target):
        let calls = try await calls(call, bucket: source.bucket)
        let object = try await calls.copy(
          source, to: target, nil, ifSource: try ObjectConditions(call.query, ofSource: true),
          try ObjectConditions(call.query), isMove: true)
        return .json(object, target.bucket, origin(of: call))
      case .compose(let target): return try await compose(target, call)
      }
    }

    // MARK: - Buckets

    private func buckets(_ call: HTTPCall) async throws -> HTTPAnswer {
      guard let project = call.query["project"], !project.isEmpty else {
        throw StorageFailure.invalid("The parameter project is missing.")
      }
      let bucket = "\(project.lowercased()).appspot.com"
      try await calls(call, bucket: bucket).access.requireEverything()
      guard bucket.hasPrefix(call.query["prefix"] ?? "") else {
        return .json(["kind": "storage#buckets"])
      }
      return .json(
        ["kind": "storage#buckets", "items": .array([resource(ofBucket: bucket, call)])])
    }

    private func resource(ofBucket bucket: String, _ call: HTTPCall) -> Value {
      [
        "kind": "storage#bucket", "id": .string(bucket), "name": .string(bucket),
        "selfLink": .string("\(origin(of: call))/storage/v1/b/\(bucket)"),
        "projectNumber": "1", "metageneration": "1", "location": "LOCAL",
        "locationType": "region", "storageClass": "STANDARD", "etag": "1",
      ]
    }

    private func resource(of page: ObjectPage, _ bucket: String, _ call: HTTPCall) -> Value {
      let origin = origin(of: call)
      var fields: [String: Value] = ["kind": "storage#objects"]
      if !page.items.isEmpty {
        fields["items"] = .array(page.items.map { $0.googleResource(in: bucket, at: origin) })
      }
      if !page.prefixes.isEmpty { fields["prefixes"] = .array(page.prefixes.map(Value.string)) }
      fields["nextPageToken"] = page.next.map { .string(ObjectListing.token(after: $0)) }
      return .map(fields)
    }

    // MARK: - Objects

    private func update(
      _ place: ObjectPlace, _ call: HTTPCall, replacing: Bool
    ) async throws -> HTTPAnswer {
      let calls = try await calls(call, bucket: place.bucket)
      let sent = try SentMetadata(call.body)
      let object = try await calls.update(place, try ObjectConditions(call.query)) {
        (metadata) throws(StorageFailure) in
        if replacing { metadata.clear() }
        try sent.apply(to: &metadata, isFirebase: false)
      }
      return .json(object, place.bucket, origin(of: call))
    }

    private func copy(
      _ source: ObjectPlace, to target: ObjectPlace, _ call: HTTPCall, isRewrite: Bool
    ) async throws -> HTTPAnswer {
      let calls = try await calls(call, bucket: source.bucket)
      guard try await served(target.bucket).1.database === calls.database else {
        throw StorageFailure.invalid("An object can only be copied within its database.")
      }
      // Without a body, or with an empty one, the copy has the metadata of the source.
      let sent = try SentMetadata(call.body)
      let object = try await calls.copy(
        source, to: target, sent.isEmpty ? nil : sent,
        ifSource: try ObjectConditions(call.query, ofSource: true),
        try ObjectConditions(call.query))
      let resource = object.googleResource(in: target.bucket, at: origin(of: call))
      guard isRewrite else { return .json(resource) }
      return .json([
        "kind": "storage#rewriteResponse", "done": true, "resource": resource,
        "objectSize": .string("\(object.size)"),
        "totalBytesRewritten": .string("\(object.size)"),
      ])
    }

    private func compose(_ target: ObjectPlace, _ call: HTTPCall) async throws -> HTTPAnswer {
      let calls = try await calls(call, bucket: target.bucket)
      let sent = try SentMetadata(call.body)
      guard let sources = sent["sourceObjects"]?.array,
        (1...ObjectCalls.mostComposed).contains(sources.count)
      else {
        throw StorageFailure.invalid(
          "A compose has 1 to \(ObjectCalls.mostComposed) source objects.")
      }
      var named: [(name: String, conditions: ObjectConditions)] = []
      for source in sources {
        guard let name = source["name"]?.string else {
          throw StorageFailure.invalid("A source object has no name.")
        }
        var conditions = ObjectConditions()
        conditions.generation = try Self.number(source["generation"])
        conditions.generationMatch = try Self.number(
          source["objectPreconditions"]?["ifGenerationMatch"])
        named.append((name, conditions))
      }
      var metadata = StorageMetadata()
      if let destination = sent["destination"]?.map {
        try SentMetadata(destination).apply(to: &metadata, isFirebase: false)
      }
      let object = try await calls.compose(
        named, to: target, metadata, try ObjectConditions(call.query))
      return .json(object, target.bucket, origin(of: call))
    }

    /// A number of 64 bits, which may be a text; nil for a field that is not there.
    private static func number(_ value: Value?) throws(StorageFailure) -> Int64? {
      guard let value, !value.isNull else { return nil }
      if let number = value.integer, number >= 0 { return number }
      guard let number = value.string.flatMap({ byteCount($0) }) else {
        throw .invalid("A generation is not a number.")
      }
      return Int64(number)
    }

    // MARK: - Uploads

    private func upload(to bucket: String, _ call: HTTPCall) async throws -> HTTPAnswer {
      if let id = call.query["upload_id"] { return try await resume(id, bucket, call) }
      guard call.method == "POST" else { throw StorageFailure.notFound }
      let calls = try await calls(call, bucket: bucket)
      let conditions = try ObjectConditions(call.query)
      switch call.query["uploadType"] {
      case "media":
        let intent = try intent(.none, call.headers["content-type"], bucket, call)
        let object = try await calls.upload(intent, call, conditions)
        return .json(object, bucket, origin(of: call))
      case "multipart":
        let object = try await calls.uploadParts(call, conditions) { sent, type in
          try intent(sent, type, bucket, call)
        }
        return .json(object, bucket, origin(of: call))
      case "resumable":
        let sent = try SentMetadata(try await call.metadataBody())
        let intent = try intent(sent, call.headers["x-upload-content-type"], bucket, call)
        let total = try call.headers["x-upload-content-length"].map(Self.length)
        let session = try await calls.begin(intent, conditions, total: total)
        var answer = HTTPAnswer(status: 200)
        answer.headers.append(
          (
            "location",
            "\(origin(of: call))/upload/storage/v1/b/\(bucket)/o?uploadType=resumable"
              + "&upload_id=\(session.id)"
          ))
        return answer
      default: throw StorageFailure.invalid("The parameter uploadType is missing or not known.")
      }
    }

    private func intent(
      _ sent: SentMetadata, _ type: String?, _ bucket: String, _ call: HTTPCall
    ) throws(StorageFailure) -> ObjectCalls.Intent {
      guard let name = call.query["name"] ?? sent.name else {
        throw .invalid("The object has no name.")
      }
      var metadata = StorageMetadata(
        contentType: type, contentEncoding: call.query["contentEncoding"])
      try sent.apply(to: &metadata, isFirebase: false)
      metadata.contentType = metadata.contentType ?? StorageMetadata.usualType
      return ObjectCalls.Intent(
        place: ObjectPlace(bucket: bucket, name: name), metadata: metadata,
        expected: sent.expected.adding(call.headers))
    }

    static func length(_ text: String) throws(StorageFailure) -> Int {
      guard let length = byteCount(text) else { throw .invalid("A length is not a number.") }
      return length
    }

    /// Continues an upload, or says how far it is.
    private func resume(
      _ id: String, _ bucket: String, _ call: HTTPCall
    ) async throws -> HTTPAnswer {
      let session = try await session(id, bucket)
      let calls = try await calls(session, call)
      if call.method == "DELETE" {
        guard !session.isDone else { throw UploadSessions.unknown }
        try await calls.sessions.cancel(session)
        // Google's own status for a request that its client has cancelled.
        return HTTPAnswer(status: 499)
      }
      if session.isDone {
        return .json(
          try await calls.metadata(ofDone: session), bucket, origin(of: call))
      }
      var next = ObjectCalls.Continuation(offset: 0, isLast: true)
      if let header = call.headers["content-range"] {
        guard let range = UploadRange(header) else {
          throw StorageFailure.invalid("The header Content-Range cannot be read.")
        }
        guard let bytes = range.bytes else {
          if let total = range.total, total == session.received {
            next = ObjectCalls.Continuation(
              offset: session.received, count: 0, total: total, isLast: true)
            return try await answer(calls.receive(session, call, next), bucket, call)
          }
          return try await answer((session, nil), bucket, call)
        }
        next = ObjectCalls.Continuation(
          offset: bytes.lowerBound, count: bytes.count, total: range.total,
          isLast: bytes.upperBound == range.total)
      }
      return try await answer(calls.receive(session, call, next), bucket, call)
    }

    private func answer(
      _ state: (UploadSession, StorageMetadata?), _ bucket: String, _ call: HTTPCall
    ) async throws -> HTTPAnswer {
      let (session, object) = state
      if let object { return .json(object, bucket, origin(of: call)) }
      var answer = HTTPAnswer(status: 308)
      if session.received > 0 {
        answer.headers.append(("range", "bytes=0-\(session.received - 1)"))
      }
      return answer
    }

    // MARK: - Batches

    /// The most calls of a batch.
    private static let mostCalls = 100

    /// Answers several calls that come in one request.
    private func batch(_ call: HTTPCall) async throws -> HTTPAnswer {
      guard var reader = MultipartReader(contentType: call.headers["content-type"] ?? "") else {
        throw MultipartReader.broken
      }
      var parts: [(headers: [String: String], bytes: [UInt8])] = []
      // Some clients end lines by a line feed alone.
      let text = String(decoding: call.body, as: UTF8.self)
        .replacing("\r\n", with: "\n").replacing("\n", with: "\r\n")
      for event in try reader.take(Array(text.utf8)) {
        switch event {
        case .part(let headers, _): parts.append((headers, []))
        case .bytes(let bytes): parts[parts.count - 1].bytes += bytes
        }
      }
      guard reader.isComplete, parts.count <= Self.mostCalls else {
        throw StorageFailure.invalid("A batch has up to \(Self.mostCalls) calls.")
      }
      let boundary = "batch_\(UUID().uuidString)"
      var body: [UInt8] = []
      for part in parts {
        let answer: HTTPAnswer
        if let inner = HTTPCall(part: part.bytes, of: call), StorageRoute(inner) != .google(.batch),
          !takesStream(inner)
        {
          answer = await answerAlone(inner)
        } else {
          answer = StorageFailure.invalid("The part is no call.").answer
        }
        var text = "--\(boundary)\r\ncontent-type: application/http\r\n"
        if let id = part.headers["content-id"] {
          let id = id.hasPrefix("<") ? "<response-\(id.dropFirst())" : "response-\(id)"
          text += "content-id: \(id)\r\n"
        }
        // A body that is not in memory is no part of a batch.
        let isTooLong = answer.stream != nil
        let shown =
          isTooLong ? StorageFailure.invalid("Bytes do not come in a batch.").answer : answer
        text += "\r\nHTTP/1.1 \(shown.status) Answer\r\n"
        for header in shown.headers { text += "\(header.name): \(header.value)\r\n" }
        text += "content-length: \(shown.body.count)\r\n\r\n"
        body += Array(text.utf8) + shown.body + Array("\r\n".utf8)
      }
      body += Array("--\(boundary)--\r\n".utf8)
      return HTTPAnswer(type: "multipart/mixed; boundary=\(boundary)", body: body)
    }
  }

  extension HTTPCall {
    /// A call that is a part of another's body; nil for what is none.
    fileprivate init?(part: [UInt8], of batch: HTTPCall) {
      let text = String(decoding: part, as: UTF8.self)
      let halves = text.split(
        separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false)
      var lines = halves[0].split(whereSeparator: \.isNewline)
      guard !lines.isEmpty else { return nil }
      let words = lines.removeFirst().split(separator: " ")
      guard words.count == 3 else { return nil }
      // The authority of the part is that of the batch, whatever it says.
      var target = words[1]
      if let scheme = target.firstRange(of: "://") {
        target = target[scheme.upperBound...]
        target = target[(target.firstIndex(of: "/") ?? target.endIndex)...]
      }
      var headers: [String: String] = [:]
      for line in lines {
        guard let colon = line.firstIndex(of: ":") else { return nil }
        headers[line[..<colon].lowercased()] = String(
          line[line.index(after: colon)...].drop { $0 == " " })
      }
      for name in ["host", "origin"] { headers[name] = batch.headers[name] }
      headers["authorization"] = headers["authorization"] ?? batch.headers["authorization"]
      self.init(
        String(words[0]), String(target), headers: headers,
        body: halves.count > 1 ? Array(halves[1].utf8) : [], address: batch.address)
    }
  }

  extension HTTPAnswer {
    fileprivate static func json(
      _ object: StorageMetadata, _ bucket: String, _ origin: String
    ) -> HTTPAnswer { .json(object.googleResource(in: bucket, at: origin)) }
  }
#endif
