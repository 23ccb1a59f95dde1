// What a call may do with objects. Administrators may do everything. For everybody else, the
// database's storage.rules decide. As in Firebase, to write bytes is `create`, whether or not there
// is an object already, and `update` is to change metadata.

#if Server
  import Ondol
  import OndolMapping

  /// What a call may do.
  enum ObjectAccess: Sendable {
    case everything
    case ruled(RuledObjects)

    /// Refuses calls that only administrators make.
    func requireEverything() throws(StorageFailure) {
      guard case .everything = self else { throw .refused }
    }

    /// Refuses a request about one object, in a transaction.
    ///
    /// - Parameters:
    ///   - stored: the object as it is stored.
    ///   - new: the object as it will be.
    /// - Throws: `StorageFailure.refused`, and the errors of reading what the rules ask for.
    func check(
      _ method: RuleMethods, _ place: ObjectPlace, stored: StorageMetadata?,
      new: ProposedObject? = nil, in transaction: Transaction, _ database: Database
    ) throws {
      guard case .ruled(let access) = self else { return }
      let reads = access.reads(database) { (path, _) throws(DatabaseError) in
        try transaction.getDocument(database.document(path))
      }
      guard try access.allows(method, place, stored: stored, new: new, reads) else {
        throw StorageFailure.refused
      }
    }

    /// Refuses a request about one object, as of a moment.
    func check(
      _ method: RuleMethods, _ place: ObjectPlace, stored: StorageMetadata?,
      new: ProposedObject? = nil, _ documents: MomentDocuments, _ database: Database
    ) throws(DatabaseError) {
      guard case .ruled(let access) = self else { return }
      let reads = access.reads(database) { (path, _) throws(DatabaseError) in
        try documents.document(at: path)
      }
      guard try access.allows(method, place, stored: stored, new: new, reads) else {
        throw .refused
      }
    }
  }

  /// An object as a call would leave it.
  struct ProposedObject: Sendable {
    var metadata: StorageMetadata
    /// Of an upload, as many bytes as are known to come.
    var size: Int
    /// Nil before the bytes have come.
    var checksums: ContentChecksums?

    init(_ metadata: StorageMetadata, size: Int) {
      self.metadata = metadata
      self.size = size
    }

    init(_ metadata: StorageMetadata, _ content: ObjectContent) {
      self.metadata = metadata
      size = content.length
      checksums = content.checksums
    }
  }

  /// The decisions of a database's rules about one caller.
  struct RuledObjects: Sendable {
    /// Nil when nothing is allowed.
    let rules: RuleSet?
    /// `request.auth`.
    let auth: RuleValue

    fileprivate func reads(_ database: Database, _ read: @escaping RuleReads.Read) -> RuleReads {
      let access = RuledAccess(
        rules: nil, database: DatabaseName.usual, auth: auth, isStrict: false)
      return RuleReads(access, at: database.ruleTime, read)
    }

    fileprivate func allows(
      _ method: RuleMethods, _ place: ObjectPlace, stored: StorageMetadata?, new: ProposedObject?,
      _ reads: RuleReads
    ) throws(DatabaseError) -> Bool {
      guard let rules else { return false }
      let path = place.name.split(separator: "/").map(String.init)
      var request = RuleRequest(
        service: .storage, method: method,
        path: RuleRequest.storage(path, bucket: place.bucket), auth: auth, time: reads.time)
      if let stored { request.resource = RuleValue(stored, in: place.bucket) }
      if let new {
        request.newResource = RuleValue(new, at: place, after: stored, time: reads.time)
      }
      let verdict = rules.verdict(request, documents: reads, digests: .usual)
      if let failure = reads.failure { throw failure }
      return verdict.isAllowed
    }
  }

  extension RuleValue {
    /// A stored object.
    fileprivate init(_ object: StorageMetadata, in bucket: String) {
      var fields = Self.fields(of: object, named: object.path, in: bucket)
      fields["size"] = .int(Int64(object.size))
      fields["generation"] = .int(object.generation)
      fields["metageneration"] = .int(object.metageneration)
      fields["etag"] = .string(object.tag)
      fields["crc32c"] = object.crc32cText.map(RuleValue.string)
      fields["md5Hash"] = object.md5Text.map(RuleValue.string)
      fields["timeCreated"] = object.created.map { .timestamp(RuleTimestamp($0)) }
      fields["updated"] = object.updated.map { .timestamp(RuleTimestamp($0)) }
      self = .map(fields)
    }

    /// An object that a call would leave.
    ///
    /// - Parameter stored: the present one.
    fileprivate init(
      _ new: ProposedObject, at place: ObjectPlace, after stored: StorageMetadata?,
      time: RuleTimestamp
    ) {
      var fields = Self.fields(of: new.metadata, named: place.name, in: place.bucket)
      fields["size"] = .int(Int64(new.size))
      fields["updated"] = .timestamp(time)
      fields["timeCreated"] = .timestamp(time)
      if new.metadata.sha256 != nil, let stored {
        // Only the metadata changes.
        fields["timeCreated"] = stored.created.map { .timestamp(RuleTimestamp($0)) }
        fields["generation"] = .int(stored.generation)
        fields["metageneration"] = .int(stored.metageneration + 1)
      }
      if let checksums = new.checksums {
        fields["crc32c"] = .string(checksums.crc32cText)
        fields["md5Hash"] = .string(checksums.md5Text)
      }
      self = .map(fields)
    }

    private static func fields(
      of object: StorageMetadata, named name: String, in bucket: String
    ) -> [String: RuleValue] {
      var fields: [String: RuleValue] = [
        "name": .string(name), "bucket": .string(bucket),
        "contentType": .string(object.contentType ?? StorageMetadata.usualType),
        "metadata": .map(object.appMetadata.mapValues(RuleValue.string)),
      ]
      fields["cacheControl"] = object.cacheControl.map(RuleValue.string)
      fields["contentDisposition"] = object.contentDisposition.map(RuleValue.string)
      fields["contentEncoding"] = object.contentEncoding.map(RuleValue.string)
      fields["contentLanguage"] = object.contentLanguage.map(RuleValue.string)
      return fields
    }
  }
#endif
