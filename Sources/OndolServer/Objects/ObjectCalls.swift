// The objects of a database as one caller may use them, for both protocols. Whatever changes an
// object asks the rules and checks the conditions within the transaction that commits it.

#if Server
  import Ondol

  /// Calls about a database's objects.
  struct ObjectCalls: Sendable {
    /// The most objects of a compose.
    static let mostComposed = 32
    /// How often a download begins again because the object was replaced meanwhile.
    private static let attempts = 16

    let database: Database
    let bucket: String
    let caller: Principal
    let access: ObjectAccess
    /// What the caller may do with documents.
    let documents: CallAccess

    var sessions: UploadSessions { UploadSessions(database: database) }

    func place(_ name: String) throws(StorageFailure) -> ObjectPlace {
      let place = ObjectPlace(bucket: bucket, name: name)
      try check(place)
      return place
    }

    /// Refuses what can be no object's name.
    func check(_ place: ObjectPlace) throws(StorageFailure) {
      guard !place.isContent else {
        throw .invalid("The name is kept for the contents of documents.")
      }
      do throws(DatabaseError) {
        try database.storage.check(name: place.name)
      } catch {
        throw StorageFailure(error)
      }
    }

    // MARK: - Reading

    /// The metadata of an object.
    ///
    /// - Parameter token: allows the read if it is one of the object's.
    func metadata(
      of place: ObjectPlace, _ conditions: ObjectConditions = ObjectConditions(),
      token: String? = nil
    ) async throws -> StorageMetadata {
      try check(place)
      let (database, access) = (database, access)
      let found = try await database.readMoment().withDocuments {
        (documents) throws(DatabaseError) -> StorageMetadata? in
        let object = try documents.object(at: place.name)
        if let token, object?.hasToken(token) == true { return object }
        try access.check(.get, place, stored: object, documents, database)
        return object
      }
      guard let found, conditions.isMeant(found) else {
        throw StorageFailure.noObject(place.name, in: bucket)
      }
      try conditions.check(found, isRead: true)
      return found
    }

    /// The metadata of the object that an upload has made, for the caller who began it.
    func metadata(ofDone session: UploadSession) async throws -> StorageMetadata {
      if session.place.isContent { return session.metadata }
      return try await database.storage.reference(withPath: session.place.name).getMetadata()
    }

    /// The metadata of an object, and its bytes.
    func open(
      _ place: ObjectPlace, _ conditions: ObjectConditions, token: String?
    ) async throws -> (StorageMetadata, OpenedContent) {
      for _ in 0..<Self.attempts {
        let metadata = try await metadata(of: place, conditions, token: token)
        if let content = try await database.open(metadata) { return (metadata, content) }
      }
      throw StorageFailure(503, "The object changes too often.")
    }

    func list(_ listing: ObjectListing) async throws -> ObjectPage {
      // Rules are about a folder: what is before the prefix's last "/".
      let folder = listing.prefix.split(separator: "/", omittingEmptySubsequences: false)
        .dropLast().joined(separator: "/")
      let place = ObjectPlace(bucket: bucket, name: folder)
      let (database, access) = (database, access)
      try await database.readMoment().withDocuments { (documents) throws(DatabaseError) in
        try access.check(.list, place, stored: nil, documents, database)
      }
      return try await database.storage.page(of: listing)
    }

    // MARK: - Writing

    /// Refuses an upload before its bytes come, as far as that can be known.
    ///
    /// - Parameter size: how many bytes the object will have at least.
    func check(_ place: ObjectPlace, _ metadata: StorageMetadata, size: Int?) async throws {
      if place.digest == nil { try check(place) }
      guard case .ruled = access else { return }
      guard let size else {
        throw StorageFailure(411, "The request must say how many bytes it has.")
      }
      let (database, access) = (database, access)
      let new = ProposedObject(metadata, size: size)
      try await database.readMoment().withDocuments { (documents) throws(DatabaseError) in
        let stored = try documents.object(at: place.name)
        try access.check(.create, place, stored: stored, new: new, documents, database)
      }
    }

    /// Puts a content at a place.
    ///
    /// - Parameter session: the upload that ends with it.
    func put(
      _ content: ObjectContent, at place: ObjectPlace, _ metadata: StorageMetadata,
      _ conditions: ObjectConditions, ending session: UploadSession? = nil
    ) async throws -> StorageMetadata {
      if let digest = place.digest {
        return try await keep(content, as: digest, at: place, metadata, ending: session)
      }
      try check(place)
      return try await database.commitObject(at: place.name) { transaction in
        if let session { try sessions.finish(session, in: transaction) }
        let stored = try transaction.getMetadata(at: place.name)
        try access.check(
          .create, place, stored: stored, new: ProposedObject(metadata, content), in: transaction,
          database)
        try conditions.check(stored)
        try transaction.putObject(content, at: place.name, metadata)
      }
    }

    /// Changes an object's metadata.
    ///
    /// - Parameter change: gets the present metadata.
    func update(
      _ place: ObjectPlace, _ conditions: ObjectConditions,
      _ change: (inout StorageMetadata) throws(StorageFailure) -> Void
    ) async throws -> StorageMetadata {
      try check(place)
      return try await database.commitObject(at: place.name) { transaction in
        let stored = try transaction.getMetadata(at: place.name)
        var changed = stored ?? StorageMetadata()
        try change(&changed)
        var new = ProposedObject(changed, size: changed.size)
        new.checksums = changed.checksums
        try access.check(.update, place, stored: stored, new: new, in: transaction, database)
        guard let stored, conditions.isMeant(stored) else {
          throw StorageFailure.noObject(place.name, in: bucket)
        }
        try conditions.check(stored)
        try transaction.updateObject(at: place.name, changed)
      }
    }

    func delete(_ place: ObjectPlace, _ conditions: ObjectConditions) async throws {
      try check(place)
      try await database.runTransaction { transaction in
        let stored = try transaction.getMetadata(at: place.name)
        try access.check(.delete, place, stored: stored, in: transaction, database)
        guard let stored, conditions.isMeant(stored) else {
          throw StorageFailure.noObject(place.name, in: bucket)
        }
        try conditions.check(stored)
        try transaction.deleteObject(at: place.name)
      }
    }

    /// Puts the content of an object at another place as well, or instead.
    ///
    /// - Parameter sent: replaces the metadata of the copy; nil to take that of the source.
    func copy(
      _ source: ObjectPlace, to target: ObjectPlace, _ sent: SentMetadata?,
      ifSource sourceConditions: ObjectConditions, _ conditions: ObjectConditions,
      isMove: Bool = false
    ) async throws -> StorageMetadata {
      try check(source)
      try check(target)
      return try await database.commitObject(at: target.name) { transaction in
        let found = try transaction.getMetadata(at: source.name)
        try access.check(.get, source, stored: found, in: transaction, database)
        if isMove { try access.check(.delete, source, stored: found, in: transaction, database) }
        guard let found, sourceConditions.isMeant(found), let content = ObjectContent(of: found)
        else { throw StorageFailure.noObject(source.name, in: source.bucket) }
        try sourceConditions.check(found)
        var metadata = StorageMetadata(copyOf: found)
        if let sent {
          metadata = StorageMetadata(contentType: found.contentType)
          try sent.apply(to: &metadata, isFirebase: false)
        }
        let stored = try transaction.getMetadata(at: target.name)
        let new = ProposedObject(metadata, content)
        try access.check(.create, target, stored: stored, new: new, in: transaction, database)
        try conditions.check(stored)
        if isMove, source.name != target.name { try transaction.deleteObject(at: source.name) }
        try transaction.putObject(content, at: target.name, metadata)
      }
    }

    /// Puts the contents of objects at a place, one after the other. They may change while they
    /// are read: then the call fails.
    func compose(
      _ sources: [(name: String, conditions: ObjectConditions)], to target: ObjectPlace,
      _ metadata: StorageMetadata, _ conditions: ObjectConditions
    ) async throws -> StorageMetadata {
      try check(target)
      var metadata = metadata
      var parts: [(StorageMetadata, OpenedContent)] = []
      var size = 0
      for source in sources {
        let part = try await open(try place(source.name), source.conditions, token: nil)
        parts.append(part)
        size += part.0.size
      }
      if metadata.contentType == nil { metadata.contentType = parts.first?.0.contentType }
      try await check(target, metadata, size: size)
      var intake = ObjectIntake(database)
      let content: ObjectContent
      do {
        for (part, opened) in parts {
          for try await bytes in opened.bytes(in: 0..<part.size) { try await intake.append(bytes) }
        }
        content = try await intake.finish()
      } catch {
        await intake.abandon()
        throw error
      }
      return try await put(content, at: target, metadata, conditions)
    }
  }

  extension StorageMetadata {
    /// The properties of an object without its facts.
    fileprivate init(copyOf other: StorageMetadata) {
      self.init(
        contentType: other.contentType, cacheControl: other.cacheControl,
        contentDisposition: other.contentDisposition, contentEncoding: other.contentEncoding,
        contentLanguage: other.contentLanguage, customMetadata: other.customMetadata)
    }

    /// Whether a text is one of the download tokens. Takes the same time for all that are not.
    fileprivate func hasToken(_ text: String) -> Bool {
      let wanted = Array(text.utf8)
      return downloadTokens.reduce(false) { found, token in
        let token = Array(token.utf8)
        let difference = zip(token, wanted).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) }
        return found || token.count == wanted.count && difference == 0
      }
    }
  }
#endif
