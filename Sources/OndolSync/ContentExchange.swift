// Brings the bytes of contents to the server and from there. A device has a document before it has
// the contents that the document names, so they are fetched when somebody reads them, or all at
// once if the app wants that. The other way round, a server refuses a document whose contents it
// does not have: so they go before the entry that names them.
//
// A content is known by its digest. Bytes that are fetched are stored only when they have it, and
// bytes that are sent twice are the same: nothing has to be written down about either, but for the
// name of a long upload, which continues after a restart.

#if Sync
  import Foundation
  import Ondol
  import OndolEngine

  /// What the server says for good about bytes that an entry needs.
  struct ContentRefusal: Error {
    let reason: DatabaseError
  }

  /// Exchanges contents with a server's storage.
  actor ContentExchange: ContentSource {
    /// How often a piece is tried before the caller is told.
    private static let attempts = 4
    /// The documents on whose behalf a content is asked for.
    private static let mostDocuments = 16
    /// How long the server is known to have what it was sent, in microseconds. It keeps bytes that
    /// no document holds for a day, unless its owner says otherwise.
    private static let trust: Int64 = 600_000_000

    /// Not kept: the database keeps this object.
    private weak let database: Database?
    private let transport: any SyncTransport
    /// Nil for a server without storage.
    private let bucket: String?
    /// Bytes of a request.
    private let piece: Int
    /// Knows who the user is.
    private weak var engine: SyncEngine?

    private var arriving: [BlobDigest: Task<Void, any Error>] = [:]
    /// When the server got what this device has sent since it was opened.
    private var sent: [BlobDigest: Int64] = [:]
    private var isOver = false

    init(_ database: Database, _ transport: any SyncTransport, bucket: String?, piece: Int) {
      self.database = database
      self.transport = transport
      self.bucket = bucket
      self.piece = piece
    }

    /// Works for an engine from now on.
    func begin(for engine: SyncEngine) { self.engine = engine }

    /// Ends all work.
    func end() async {
      isOver = true
      let tasks = arriving.values
      for task in tasks { task.cancel() }
      for task in tasks { _ = await task.result }
    }

    private static let gone = DatabaseError(.unavailable, "the synchronisation has ended")

    private func opened() throws(DatabaseError) -> Database {
      guard !isOver, let database else { throw Self.gone }
      return database
    }

    private static let noStorage = DatabaseError(
      .unimplemented, "nobody has said where the server's storage is",
      suggestion: "give the server's `storage:`")

    /// The server's name of a content, as a part of an address.
    private static func object(_ content: ExchangedContent) -> String {
      "__contents__%2F\(content.digest.hex)"
    }

    // MARK: - From the server

    func fetch(_ digest: BlobDigest, length: UInt64) async throws(DatabaseError) {
      let executor = try opened().environment.executor
      let task =
        arriving[digest]
        ?? Task(executorPreference: executor) { [self] in
          try await arrive(ExchangedContent(digest: digest, length: length))
        }
      arriving[digest] = task
      do {
        try await task.value
      } catch {
        throw DatabaseError(sync: error)
      }
    }

    private func arrive(_ content: ExchangedContent) async throws {
      defer { arriving[content.digest] = nil }
      let database = try opened()
      guard try await !database.hasBytes(of: content.digest) else { return }
      let arrival = database.beginArrival(of: content)
      do {
        try await take(content, into: arrival, database)
        try await arrival.finish()
      } catch {
        await arrival.abandon()
        throw error
      }
    }

    private func take(
      _ content: ExchangedContent, into arrival: ContentArrival, _ database: Database
    ) async throws {
      // Rows of this device's own hold contents as well.
      var documents = try await database.documents(
        holding: content.digest, atMost: Self.mostDocuments
      ).filter { !$0.segments[0].hasPrefix("__") }[...]
      var (offset, failures) = (UInt64(0), 0)
      var refusal = DatabaseError(
        .notFound, "no document that a server has names the content \(content.digest.hex)")
      while offset < content.length {
        guard let document = documents.first else { throw refusal }
        let end = min(offset + UInt64(piece), content.length)
        do {
          guard let bucket else { throw Self.noStorage }
          let name = PercentCoding.encoded("\(document)") { _, _ in false }
          let object = Self.object(content)
          var request = StorageRequest(
            "GET", "/storage/v1/b/\(bucket)/o/\(object)?alt=media&document=\(name)")
          request.headers = [("range", "bytes=\(offset)-\(end - 1)")]
          request.mostBytes = max(request.mostBytes, Int(end - offset))
          let answer = try await call(request)
          guard answer.status == 206 else {
            guard [403, 404].contains(answer.status) else { throw answer.problem }
            refusal = answer.problem
            documents = documents.dropFirst()
            continue
          }
          guard answer.headers["content-range"] == "bytes \(offset)-\(end - 1)/\(content.length)",
            answer.body.count == Int(end - offset)
          else {
            throw DatabaseError(
              .dataLoss,
              "the server has sent other bytes than \(offset) to \(end) of \(content.length) of the"
                + " content \(content.digest.hex)")
          }
          try await arrival.append(answer.body)
          (offset, failures) = (end, 0)
        } catch {
          let reason = DatabaseError(sync: error)
          failures += 1
          guard reason.code == .unavailable, failures < Self.attempts, !Task.isCancelled else {
            throw reason
          }
          await database.environment.sleep(Int64(failures) * 250_000)
        }
      }
    }

    // MARK: - To the server

    /// Makes the server have the bytes of contents, as far as this device has them.
    ///
    /// - Throws: `ContentRefusal` when the server does not take them; otherwise the errors of
    ///   connections and of reading.
    func send(_ contents: [ExchangedContent]) async throws {
      for content in contents where !isReady(content) {
        let database = try opened()
        guard try await database.hasBytes(of: content.digest) else {
          // What is not here came from the server.
          sent[content.digest] = database.environment.uptime()
          continue
        }
        if content.length <= UInt64(piece) {
          try await sendWhole(content, database)
        } else {
          try await sendPieces(content, database)
        }
        sent[content.digest] = database.environment.uptime()
      }
    }

    /// Whether nothing has to be sent for these contents.
    func isReady(_ contents: [ExchangedContent]) -> Bool { contents.allSatisfy(isReady) }

    private func isReady(_ content: ExchangedContent) -> Bool {
      guard let database, let time = sent[content.digest] else { return false }
      return database.environment.uptime() - time < Self.trust
    }

    private func sendWhole(_ content: ExchangedContent, _ database: Database) async throws {
      var request = StorageRequest("POST", try beginning(content, "media"))
      request.headers = [("content-type", "application/octet-stream")]
      request.body = try await database.storedBytes(
        of: content.digest, in: 0..<Int(content.length))
      let answer = try await call(request)
      guard answer.status == 200 else { throw answer.refusal }
    }

    private func beginning(
      _ content: ExchangedContent, _ kind: String
    ) throws -> String {
      guard let bucket else { throw ContentRefusal(reason: Self.noStorage) }
      return "/upload/storage/v1/b/\(bucket)/o?uploadType=\(kind)"
        + "&name=\(Self.object(content))"
    }

    private func call(_ request: StorageRequest) async throws -> StorageAnswer {
      try await transport.call(try await engine?.credential(), request)
    }

    /// Sends a long content in several requests, and goes on where an earlier session has ended.
    private func sendPieces(_ content: ExchangedContent, _ database: Database) async throws {
      let row = database.syncClient.document(content.digest.hex)
      var known = try await row.getDocument().data()[Self.uploadField]?.string
      var attempts = 0
      while true {
        guard let target = known else {
          known = try await begin(content)
          try await engine?.commits.write(row, [Self.uploadField: .string(known ?? "")])
          continue
        }
        let answer = try await goOn(content, target, database)
        if [200, 201].contains(answer.status) { break }
        // The server no longer knows of it, or has other bytes than it said.
        attempts += 1
        guard [400, 404, 410, 499].contains(answer.status), attempts < Self.attempts else {
          throw answer.refusal
        }
        known = nil
      }
      try await engine?.commits.write(row, nil)
    }

    private static let uploadField = "target"

    private func begin(_ content: ExchangedContent) async throws -> String {
      var request = StorageRequest("POST", try beginning(content, "resumable"))
      request.headers = [
        ("x-upload-content-type", "application/octet-stream"),
        ("x-upload-content-length", "\(content.length)"),
      ]
      let answer = try await call(request)
      guard answer.status == 200 else { throw answer.refusal }
      guard let location = answer.headers["location"].flatMap({ URLComponents(string: $0) }),
        location.percentEncodedPath.hasPrefix("/"), let query = location.percentEncodedQuery
      else { throw DatabaseError(.dataLoss, "the server has begun an upload without an address") }
      return "\(location.percentEncodedPath)?\(query)"
    }

    /// Sends what the server lacks; returns the last answer.
    private func goOn(
      _ content: ExchangedContent, _ target: String, _ database: Database
    ) async throws -> StorageAnswer {
      var request = StorageRequest("PUT", target)
      request.headers = [("content-range", "bytes */\(content.length)")]
      var answer = try await call(request)
      var offset = 0
      while answer.status == 308 {
        let arrived = try Self.arrived(answer, of: content)
        guard offset == 0 || arrived > offset else {
          throw DatabaseError(.unavailable, "the server's storage takes no bytes")
        }
        offset = arrived
        let end = min(offset + piece, Int(content.length))
        request.headers = [("content-range", "bytes \(offset)-\(end - 1)/\(content.length)")]
        request.body = try await database.storedBytes(of: content.digest, in: offset..<end)
        answer = try await call(request)
      }
      return answer
    }

    /// How many bytes the server says to have.
    private static func arrived(
      _ answer: StorageAnswer, of content: ExchangedContent
    ) throws(DatabaseError) -> Int {
      guard let range = answer.headers["range"] else { return 0 }
      guard let last = Int(range.dropFirst("bytes=0-".count)), range.hasPrefix("bytes=0-"),
        last >= 0, last < Int(content.length) - 1
      else { throw DatabaseError(.dataLoss, "the server has \"\(range)\" of an upload") }
      return last + 1
    }
  }

  extension StorageAnswer {
    /// What the status means.
    fileprivate var problem: DatabaseError {
      let message = "the server's storage answers with the status \(status)"
      switch status {
      case 400, 411: return DatabaseError(.invalidArgument, message)
      case 401: return DatabaseError(.unauthenticated, message)
      case 403: return DatabaseError(.permissionDenied, message)
      case 404: return DatabaseError(.notFound, message)
      case 413: return DatabaseError(.outOfRange, message)
      case 416: return DatabaseError(.dataLoss, message)
      case 501: return DatabaseError(.unimplemented, message)
      default: return DatabaseError(.unavailable, message)
      }
    }

    /// The error of an upload: one for good, or one of now.
    fileprivate var refusal: any Error {
      switch status {
      case 400, 403, 411, 413, 501: ContentRefusal(reason: problem)
      default: problem
      }
    }
  }
#endif
