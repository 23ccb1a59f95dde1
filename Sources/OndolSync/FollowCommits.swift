// Commits about follows, and about documents that none has any more, and what the app decides of
// rejections.

#if Sync
  import Ondol
  import OndolEngine
  import OndolMapping

  extension LocalCommits {
    /// Writes the row of a new follow, and removes documents that only the device has or puts them
    /// into the outbox. All of it is one commit, so a cancelled call leaves nothing behind.
    ///
    /// - Returns: the follow; the one that asks the same, if there is one.
    func begin(
      _ query: Query, removing: [DocumentPath], uploading: [DocumentPath], session: String,
      _ environment: Environment
    ) async throws(DatabaseError) -> FollowedQuery {
      let names = uploading.map { _ in AutomaticID.make(environment.random) }
      let time = Timestamp(clock: environment.now())
      try await warm(removing + uploading)
      let (follow, count, bytes) = try await commit { (transaction) throws(DatabaseError) in
        // Numbers are never used again: rows of documents may still have that of an ended follow.
        let counter = database.syncClient.document("follows")
        let last = try transaction.base.getDocument(counter)["last"] as Int64? ?? 0
        let follow = try FollowedQuery(query, number: last + 1)
        for document in try transaction.base.getDocuments(database.syncFollows).documents {
          let other = try FollowedQuery(document)
          if other.isSame(as: follow), !other.isEnding { return (other, 0, 0) }
        }
        try transaction.base.setValues(["last": .integer(follow.number)], counter)
        try transaction.base.setValues(try follow.fields(), database.followRow(follow.number))
        for path in removing where try transaction.row(of: path).isForgotten {
          try transaction.base.add(ClientWrite(path: path, .delete))
        }
        var (count, bytes) = (0, 0)
        for (path, name) in zip(uploading, names) {
          guard let size = try upload(path, as: name, session, time, transaction) else { continue }
          count += 1
          bytes += size
        }
        return (follow, count, bytes)
      }
      if count > 0 {
        witness.count(entries: count, bytes: bytes)
        witness.bell.ring()
      }
      return follow
    }

    /// Puts a document that only the device has into the outbox.
    ///
    /// - Returns: the bytes of its entry; nil when it is gone, or the server knows of it.
    func upload(
      _ path: DocumentPath, as name: String, _ session: String, _ time: Timestamp,
      _ transaction: LocalTransaction
    ) throws(DatabaseError) -> Int? {
      var row = try transaction.row(of: path)
      let document = try transaction.base.getDocument(database.document(path))
      guard row.isForgotten, document.exists else { return nil }
      let write = ClientWrite(path: path, .replace(document.data()), condition: .exists(false))
      let entry = OutboxEntry(
        name: name, writes: [OutboxEntry.Write(write: write)], session: session, time: time,
        order: 0)
      row.waiting = [name]
      try transaction.write(row)
      let bytes = try transaction.write(entry, isNew: true)
      // Changes nothing, and has listeners learn that the document waits.
      try transaction.base.add(ClientWrite(path: path, .patch([:], mask: [])))
      return bytes
    }

    /// Writes the row of a follow that has its documents already.
    func write(_ follow: FollowedQuery) async throws(DatabaseError) {
      try await commit { (transaction) throws(DatabaseError) in
        try transaction.base.setValues(try follow.fields(), database.followRow(follow.number))
      }
    }

    /// Removes those of these documents from a follow that nothing else keeps.
    func leave(_ number: Int64, _ paths: [DocumentPath]) async throws(DatabaseError) {
      try await warm(paths)
      try await commit { (transaction) throws(DatabaseError) in
        for path in paths {
          var row = try transaction.row(of: path)
          guard row.follows.remove(number) != nil else { continue }
          if row.isForgotten {
            try show(row, transaction)
          } else {
            try transaction.write(row)
          }
        }
      }
    }

    /// Removes the row of a follow that has no documents.
    func remove(_ follow: FollowedQuery) async throws(DatabaseError) {
      try await commit { (transaction) throws(DatabaseError) in
        try transaction.base.deleteDocument(database.followRow(follow.number))
      }
    }

    /// Writes who this device is.
    func write(_ client: SyncClient) async throws(DatabaseError) {
      try await commit { (transaction) throws(DatabaseError) in
        try client.write(transaction.base, in: database)
      }
    }

    /// Writes a row, or removes it.
    func write(
      _ row: DocumentReference, _ fields: [String: Value]?
    ) async throws(DatabaseError) {
      try await commit { (transaction) throws(DatabaseError) in
        if let fields {
          try transaction.base.setValues(fields, row)
        } else {
          try transaction.base.deleteDocument(row)
        }
      }
    }

    /// Removes a rejection.
    func remove(rejection name: String) async throws(DatabaseError) {
      try await commit { (transaction) throws(DatabaseError) in
        try transaction.base.deleteDocument(database.syncRejections.document(name))
      }
    }
  }
#endif
