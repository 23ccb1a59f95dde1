// The uploads of a database that are not complete: beginning one, adding what arrives, and making
// the object of it. Each step is a transaction, so of two requests that continue one upload at
// once, one finds that the other was first.

#if Server
  import Ondol

  /// The uploads of a database.
  struct UploadSessions: Sendable {
    /// The most bytes of a stretch. A longer request is several stretches, so that a crash costs no
    /// more than one.
    static let pieceLength = 128 << 20
    /// How many stretches are removed in one commit.
    private static let removedAtOnce = 100

    let database: Database

    private func document(_ id: String) -> DocumentReference { database.uploads.document(id) }

    /// The upload with an id.
    ///
    /// - Throws: when there is none.
    func session(_ id: String, in bucket: String) async throws -> UploadSession {
      // Another process may have taken the last stretch.
      if database.isOnStore { try await database.refresh() }
      guard UploadSession.isID(id),
        let session = UploadSession(
          id: id, try await document(id).getDocument().data()),
        session.place.bucket == bucket
      else { throw Self.unknown }
      return session
    }

    func begin(_ session: UploadSession) async throws {
      try await database.prepareForUploads()
      try await document(session.id).setData(session.fields(at: database.wallClock))
    }

    /// Adds what has arrived after what had.
    ///
    /// - Returns: the new state.
    /// - Throws: when another request was first.
    func add(_ content: ObjectContent, to session: UploadSession) async throws -> UploadSession {
      var next = session
      next.received += content.length
      next.pieces += 1
      let piece = document(UploadSession.pieceID(of: session.id, next.pieces))
      let now = database.wallClock
      try await database.runTransaction { transaction in
        try check(session, in: transaction)
        let blob = try transaction.bring(content)
        var fields: [String: (any FieldContent)?] = [
          "content": Value.blob(blob), "start": Value.integer(Int64(session.received)),
          "ends": UploadSession.end(at: now),
        ]
        fields["checksums"] = content.checksums.map { Value.bytes($0.bytes) }
        try transaction.setData(fields, forDocument: piece)
        try transaction.setData(next.fields(at: now), forDocument: document(session.id))
      }
      return next
    }

    /// Refuses to go on from a state that is not the present one.
    func check(_ session: UploadSession, in transaction: Transaction) throws {
      let fields = try transaction.getDocument(document(session.id)).data()
      guard let present = UploadSession(id: session.id, fields) else { throw Self.unknown }
      guard present.received == session.received, present.pieces == session.pieces,
        present.isDone == session.isDone
      else {
        throw StorageFailure(503, "Another request continues this upload.")
      }
    }

    /// Records that the object is stored, in the transaction that stores it.
    func finish(_ session: UploadSession, in transaction: Transaction) throws {
      try check(session, in: transaction)
      var done = session
      done.isDone = true
      try transaction.setData(
        done.fields(at: database.wallClock), forDocument: document(session.id))
    }

    /// All bytes of an upload as one content. Those of one stretch are stored already.
    func content(of session: UploadSession) async throws -> ObjectContent {
      if session.pieces == 1 {
        let (blob, checksums) = try await piece(1, of: session, from: 0)
        return ObjectContent(blob, checksums)
      }
      var intake = ObjectIntake(database)
      do {
        for number in 0..<session.pieces {
          let (blob, _) = try await piece(number + 1, of: session, from: intake.length)
          for try await bytes in database.storage.bytes(of: blob) { try await intake.append(bytes) }
        }
        guard intake.length == session.received else { throw Self.unknown }
        return try await intake.finish()
      } catch {
        await intake.abandon()
        throw error
      }
    }

    private func piece(
      _ number: Int, of session: UploadSession, from start: Int
    ) async throws -> (BlobReference, ContentChecksums?) {
      let id = UploadSession.pieceID(of: session.id, number)
      let fields = try await document(id).getDocument().data()
      guard let blob = fields["content"]?.blob, fields["start"]?.integer == Int64(start) else {
        throw Self.unknown
      }
      return (blob, fields["checksums"]?.bytes.flatMap { ContentChecksums(bytes: $0) })
    }

    /// Ends an upload without an object.
    func cancel(_ session: UploadSession) async throws {
      try await database.runTransaction { transaction in
        try check(session, in: transaction)
        try transaction.deleteDocument(document(session.id))
      }
      await removePieces(of: session)
    }

    /// Removes the stretches, some at a time. What an error leaves ends by itself.
    func removePieces(of session: UploadSession) async {
      var next = 1
      while next <= session.pieces {
        let last = min(session.pieces, next + Self.removedAtOnce - 1)
        let batch = database.batch()
        do {
          for number in next...last {
            batch.deleteDocument(document(UploadSession.pieceID(of: session.id, number)))
          }
          try await batch.commit()
        } catch {
          return
        }
        next = last + 1
      }
    }

    static let unknown = StorageFailure(404, "There is no such upload, or it has ended.")
  }
#endif
