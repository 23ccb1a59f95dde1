// Storage's protocols, Google Cloud Storage's and Firebase's, over a database's storage: start
// reading here. A call is one route; its bucket names the database; its caller is admitted; and
// then ObjectCalls does it. A bucket is a database's storage, so objects are the paths of the app's
// own code. A server of one database serves it under any bucket's name.

#if Server
  import Ondol
  import OndolMapping

  /// Answers clients of storage.
  package struct StorageFace: HTTPFace {
    let directory: any DatabaseDirectory
    let admission: Admission
    /// Whether callers without credentials are administrators.
    let policy: AccessPolicy

    /// A face that everybody uses as an administrator.
    package init(open directory: any DatabaseDirectory) {
      self.init(directory: directory, admission: Admission(), policy: .open)
    }

    init(directory: any DatabaseDirectory, admission: Admission, policy: AccessPolicy) {
      self.directory = directory
      self.admission = admission
      self.policy = policy
    }

    private static let methods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
    /// The headers that a page of another origin may read.
    private static let exposed = [
      "Content-Range", "Content-Length", "Content-Disposition", "ETag", "Location", "Range",
      "X-Goog-Generation", "X-Goog-Hash", "X-Goog-Metageneration",
      "X-Goog-Stored-Content-Encoding", "X-Goog-Stored-Content-Length",
      "X-Goog-Upload-Chunk-Granularity", "X-Goog-Upload-Control-URL",
      "X-Goog-Upload-Size-Received", "X-Goog-Upload-Status", "X-Goog-Upload-URL",
    ].joined(separator: ", ")

    package func name(of call: HTTPCall) -> String {
      if call.method == "OPTIONS" { return "preflight" }
      return StorageRoute(call)?.name ?? "storage.unknown"
    }

    package func takesStream(_ call: HTTPCall) -> Bool {
      switch StorageRoute(call) {
      case .google(.upload)?, .firebase(.upload)?: true
      default: false
      }
    }

    package func answer(_ call: HTTPCall) async -> HTTPAnswer {
      var answer: HTTPAnswer
      if call.method == "OPTIONS" {
        answer = .preflight(call, Self.methods)
      } else {
        answer = await answerAlone(call)
      }
      Self.addHeaders(to: &answer)
      return answer
    }

    package func refusal(_ limit: LimitReached) -> HTTPAnswer {
      var answer = StorageFailure(429, limit.error.message).answer
      answer.headers.append(("retry-after", "\(limit.seconds)"))
      Self.addHeaders(to: &answer)
      return answer
    }

    private static func addHeaders(to answer: inout HTTPAnswer) {
      // A page of any origin may ask. Whether it may have an answer, its proof says.
      answer.headers.append(("access-control-allow-origin", "*"))
      answer.headers.append(("access-control-expose-headers", exposed))
      answer.headers.append(("x-content-type-options", "nosniff"))
    }

    /// The answer to a call, which may be part of a batch.
    func answerAlone(_ call: HTTPCall) async -> HTTPAnswer {
      do {
        guard let route = StorageRoute(call) else { throw StorageFailure.notFound }
        switch route {
        case .google(let route): return try await answer(route, call)
        case .firebase(let route): return try await answer(route, call)
        case .address(let place):
          let calls = try await calls(call, bucket: place.bucket)
          return try await download(place, ObjectConditions(call.query), call, calls)
        }
      } catch {
        return StorageFailure(error).answer
      }
    }

    // MARK: - Steps

    /// How the client reaches the server.
    func origin(of call: HTTPCall) -> String {
      "\(admission.scheme)://\(call.headers["host"] ?? "")"
    }

    /// The objects of a bucket as the caller may use them.
    func calls(_ call: HTTPCall, bucket: String) async throws -> ObjectCalls {
      let (project, served) = try await served(bucket)
      var caller: Principal = .nobody
      // Everybody knows how to be an administrator of this machine's server, also the pages that a
      // browser on it shows.
      let isHere = policy.isLocal && Admission.isLocal(call)
      if let header = call.headers["authorization"] {
        caller = try await admission.principal(
          ofBearer: header, project: project, in: directory)
        if case .admin = caller, try !admission.isAdministrator(call) {
          throw StorageFailure.refused
        }
      } else if policy.isOpen, isHere {
        caller = .admin
      }
      return try await calls(served, bucket, caller, isHere: isHere)
    }

    /// The objects of a bucket as the one who began an upload may use them.
    func calls(_ session: UploadSession, _ call: HTTPCall) async throws -> ObjectCalls {
      let (_, served) = try await served(session.place.bucket)
      let isHere = policy.isLocal && Admission.isLocal(call)
      return try await calls(served, session.place.bucket, session.caller, isHere: isHere)
    }

    private func calls(
      _ served: ServedDatabase, _ bucket: String, _ caller: Principal, isHere: Bool
    ) async throws -> ObjectCalls {
      var access = ObjectAccess.everything
      var documents = CallAccess.everything
      if case .admin = caller {
      } else {
        let rules = try await served.rules.current()
        if rules != nil || !isHere {
          let auth = caller.auth(in: DatabaseName.usual)
          access = .ruled(RuledObjects(rules: rules?.storage, auth: auth))
          documents = .ruled(
            RuledAccess(
              rules: rules?.firestore, database: DatabaseName.usual, auth: auth, isStrict: false))
        }
      }
      return ObjectCalls(
        database: served.database, bucket: bucket, caller: caller, access: access,
        documents: documents)
    }

    /// The database of a bucket.
    func served(_ bucket: String) async throws -> (project: String, ServedDatabase) {
      let isName = bucket.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
          UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
          true
        default: false
        }
      }
      guard isName, (3...222).contains(bucket.utf8.count) else {
        throw StorageFailure.invalid("Invalid bucket name.")
      }
      var project = bucket
      for suffix in [".appspot.com", ".firebasestorage.app"] where bucket.hasSuffix(suffix) {
        project = String(bucket.dropLast(suffix.count))
      }
      return (project, try await directory.database(project: project, id: DatabaseName.usual))
    }

    /// The bytes of an object.
    func download(
      _ place: ObjectPlace, _ conditions: ObjectConditions, _ call: HTTPCall, _ calls: ObjectCalls
    ) async throws -> HTTPAnswer {
      let (object, content) = try await calls.open(
        place, conditions, token: call.query["token"])
      return try ObjectDownload.answer(object, content, for: call)
    }

    /// The upload that a request continues.
    func session(_ id: String, _ bucket: String) async throws -> UploadSession {
      let (_, served) = try await served(bucket)
      return try await UploadSessions(database: served.database).session(id, in: bucket)
    }
  }
#endif
