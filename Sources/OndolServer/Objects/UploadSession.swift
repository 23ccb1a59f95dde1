// An upload in several requests. It is a document of the database, and so is each stretch of bytes
// that has arrived: what a client was told has arrived is still there after a crash. The documents
// end after a week, and the database removes what has ended whether or not anybody calls.
//
//   ID                 bucket, name, metadata, custom, total, received, pieces, …: below
//   ID+000000000001    content: blob, checksums: bytes, start: integer

#if Server
  import Ondol

  /// The state of an upload, as its document has it.
  struct UploadSession: Sendable {
    /// How long an upload may take, in microseconds.
    static let lifetime: Int64 = 7 * 86_400 * 1_000_000

    /// Nobody can guess it. With a stretch's number it is a plain id, which has up to 64 bytes.
    let id: String
    var place: ObjectPlace
    /// The object's metadata, but for the facts.
    var metadata: StorageMetadata
    var conditions: ObjectConditions
    var expected: ExpectedChecksums
    /// Who began it. A client that knows its id continues it as them.
    var caller: Principal
    /// How many bytes there will be; nil when the client has not said.
    var total: Int?
    /// How many bytes have arrived.
    var received = 0
    /// In how many stretches.
    var pieces = 0
    /// Whether the object is stored.
    var isDone = false

    init(
      _ place: ObjectPlace, _ metadata: StorageMetadata, _ conditions: ObjectConditions,
      _ expected: ExpectedChecksums, by caller: Principal, total: Int?
    ) {
      var random = SystemRandomNumberGenerator()
      id = (0..<3).map { _ in
        let digits = String(random.next(), radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
      }.joined()
      self.place = place
      self.metadata = metadata
      self.conditions = conditions
      self.expected = expected
      self.caller = caller
      self.total = total
    }

    /// The id of the document of a stretch.
    ///
    /// - Parameter number: from 1.
    static func pieceID(of id: String, _ number: Int) -> String {
      let digits = String(number)
      return "\(id)+\(String(repeating: "0", count: max(0, 12 - digits.count)))\(digits)"
    }

    /// Whether a text can be an id.
    static func isID(_ text: String) -> Bool {
      text.utf8.count == 48
        && text.utf8.allSatisfy {
          (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
            || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
        }
    }
  }

  // MARK: - As a document

  extension UploadSession {
    /// The fields of its document.
    ///
    /// - Parameter now: microseconds since 1970.
    func fields(at now: Int64) -> [String: Value] {
      var fields: [String: Value] = [
        "bucket": .string(place.bucket), "name": .string(place.name),
        "received": .integer(Int64(received)), "pieces": .integer(Int64(pieces)),
        "isDone": .boolean(isDone), "ends": Self.end(at: now),
        "custom": .map(metadata.customMetadata.mapValues(Value.string)),
      ]
      fields["total"] = total.map { .integer(Int64($0)) }
      fields["contentType"] = metadata.contentType.map(Value.string)
      fields["cacheControl"] = metadata.cacheControl.map(Value.string)
      fields["contentDisposition"] = metadata.contentDisposition.map(Value.string)
      fields["contentEncoding"] = metadata.contentEncoding.map(Value.string)
      fields["contentLanguage"] = metadata.contentLanguage.map(Value.string)
      fields["crc32c"] = expected.crc32c.map(Value.string)
      fields["md5"] = expected.md5.map(Value.string)
      fields["generationMatch"] = conditions.generationMatch.map(Value.integer)
      fields["generationNotMatch"] = conditions.generationNotMatch.map(Value.integer)
      fields["metagenerationMatch"] = conditions.metagenerationMatch.map(Value.integer)
      fields["metagenerationNotMatch"] = conditions.metagenerationNotMatch.map(Value.integer)
      switch caller {
      case .admin: fields["isAdmin"] = true
      case .nobody: break
      case .user(let token):
        fields["uid"] = .string(token.uid)
        fields["claims"] = token.claims
      }
      return fields
    }

    /// Nil for what is no such document.
    init?(id: String, _ fields: [String: Value]) {
      guard let bucket = fields["bucket"]?.string, let name = fields["name"]?.string,
        let received = fields["received"]?.integer, let pieces = fields["pieces"]?.integer,
        let isDone = fields["isDone"]?.boolean
      else { return nil }
      self.id = id
      place = ObjectPlace(bucket: bucket, name: name)
      self.received = Int(received)
      self.pieces = Int(pieces)
      self.isDone = isDone
      total = fields["total"]?.integer.map { Int($0) }
      metadata = StorageMetadata(
        contentType: fields["contentType"]?.string, cacheControl: fields["cacheControl"]?.string,
        contentDisposition: fields["contentDisposition"]?.string,
        contentEncoding: fields["contentEncoding"]?.string,
        contentLanguage: fields["contentLanguage"]?.string,
        customMetadata: fields["custom"]?.map?.compactMapValues(\.string) ?? [:])
      expected = ExpectedChecksums(crc32c: fields["crc32c"]?.string, md5: fields["md5"]?.string)
      conditions = ObjectConditions()
      conditions.generationMatch = fields["generationMatch"]?.integer
      conditions.generationNotMatch = fields["generationNotMatch"]?.integer
      conditions.metagenerationMatch = fields["metagenerationMatch"]?.integer
      conditions.metagenerationNotMatch = fields["metagenerationNotMatch"]?.integer
      if fields["isAdmin"]?.boolean == true {
        caller = .admin
      } else if let uid = fields["uid"]?.string {
        caller = .user(VerifiedToken(uid: uid, claims: fields["claims"]?.map ?? [:]))
      } else {
        caller = .nobody
      }
    }

    static func end(at now: Int64) -> Value {
      let (end, isTooLate) = now.addingReportingOverflow(lifetime)
      return (isTooLate ? nil : try? Timestamp(microsecondsSince1970: end)).map(Value.timestamp)
        ?? .null
    }
  }
#endif
