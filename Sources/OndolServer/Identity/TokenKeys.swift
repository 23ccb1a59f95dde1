// The keys that sign a database's tokens. The first sign-in makes one, and each rotation another.
// A rotated key signs nothing more, and stays published until the last token that it signed has
// ended. All servers of a database share its keys: they are documents.

#if Server
  import Crypto
  import Foundation
  package import Ondol
  import Synchronization

  /// A key that signs tokens, or has signed them.
  struct TokenKey: Sendable {
    let id: String
    let secret: P256.Signing.PrivateKey
    /// What the world sees of it.
    let published: P256.Signing.PublicKey
    let createdAt: Timestamp
    /// When another key replaced it; nil for the key that signs.
    let retiredAt: Timestamp?

    /// Nil for a record that is damaged.
    fileprivate init?(_ id: String, _ record: TokenKeyRecord) {
      guard let secret = try? P256.Signing.PrivateKey(rawRepresentation: record.key) else {
        return nil
      }
      self.id = id
      self.secret = secret
      published = secret.publicKey
      createdAt = record.createdAt
      retiredAt = record.retiredAt
    }

    /// The key as RFC 7517's JSON Web Key, without its secret.
    var webKey: Value {
      let point = published.rawRepresentation
      return [
        "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": .string(id),
        "x": .string(Base64URL.encode(point.prefix(32))),
        "y": .string(Base64URL.encode(point.suffix(32))),
      ]
    }

    /// Whether a token that it has signed may still be valid.
    func isPublished(at now: Int64) -> Bool {
      guard let retiredAt else { return true }
      let (end, overflow) = retiredAt.microsecondsSince1970.addingReportingOverflow(
        TokenKeys.longestTokenMicroseconds)
      return overflow || now < end
    }
  }

  /// A document of the collection of keys.
  private struct TokenKeyRecord: Codable, Sendable {
    var key: Data
    var createdAt: Timestamp
    var retiredAt: Timestamp?
  }

  /// The keys of one database.
  package final class TokenKeys: Sendable {
    /// The longest life of a token, and the difference between clocks: two weeks of a session
    /// cookie, and an hour.
    static let longestTokenMicroseconds: Int64 = (14 * 86_400 + 3_600) * 1_000_000
    /// The time after which a server sees what another has rotated.
    private static let staleMicroseconds: Int64 = 60_000_000

    private struct Known: Sendable {
      var keys: [String: TokenKey] = [:]
      /// When all of them were read; nil for never.
      var readAt: Int64?
    }

    private let database: Database
    private let known = Mutex(Known())

    package init(_ database: Database) { self.database = database }

    /// The key that signs. Makes it when there is none.
    ///
    /// - Complexity: no I/O within a minute of the last read of the keys.
    func signing() async throws(DatabaseError) -> TokenKey {
      if let key = Self.newest(try await current()) { return key }
      _ = try await Self.make(in: database, rotates: false)
      try await read()
      guard let key = Self.newest(known.withLock(\.keys)) else { throw Self.damaged }
      return key
    }

    /// The key with an id; nil if there is none, or its last token has ended.
    ///
    /// - Complexity: one get at most.
    func key(_ id: String) async throws(DatabaseError) -> TokenKey? {
      if let key = try await current()[id] {
        return key.isPublished(at: database.now()) ? key : nil
      }
      // Another server of this database may have made it just now.
      let document = database.tokenKeys.document(id)
      guard Self.isID(id),
        let record = try await document.getDocument().data(as: TokenKeyRecord?.self),
        let key = TokenKey(id, record), key.isPublished(at: database.now())
      else { return nil }
      known.withLock { $0.keys[id] = key }
      return key
    }

    /// All keys whose tokens may still be valid, oldest first.
    func published() async throws(DatabaseError) -> [TokenKey] {
      let now = database.now()
      return try await current().values.filter { $0.isPublished(at: now) }.sorted(by: Self.isOlder)
    }

    /// Makes a key that signs from now on. The present one stays published until its tokens have
    /// ended. Removes the keys whose last token has ended.
    ///
    /// - Returns: the id of the new key.
    @discardableResult
    package static func rotate(in database: Database) async throws(DatabaseError) -> String {
      try await make(in: database, rotates: true)
    }

    // MARK: - Steps

    private func current() async throws(DatabaseError) -> [String: TokenKey] {
      let now = database.now()
      let fresh = known.withLock { known -> [String: TokenKey]? in
        guard let readAt = known.readAt, (0..<Self.staleMicroseconds).contains(now &- readAt) else {
          return nil
        }
        return known.keys
      }
      if let fresh { return fresh }
      return try await read()
    }

    @discardableResult
    private func read() async throws(DatabaseError) -> [String: TokenKey] {
      let now = database.now()
      var keys: [String: TokenKey] = [:]
      for document in try await database.tokenKeys.getDocuments().documents {
        let record = try document.data(as: TokenKeyRecord.self)
        keys[document.documentID] = TokenKey(document.documentID, record)
      }
      let read = keys
      known.withLock { $0 = Known(keys: read, readAt: now) }
      return keys
    }

    /// Makes a key in one transaction, so that of several servers that start one makes it.
    private static func make(
      in database: Database, rotates: Bool
    ) async throws(DatabaseError) -> String {
      do {
        return try await database.runTransaction { transaction in
          let now = try Timestamp(microsecondsSince1970: database.now())
          var present: String?
          for document in try transaction.getDocuments(database.tokenKeys.query).documents {
            var record = try document.data(as: TokenKeyRecord.self)
            let key = TokenKey(document.documentID, record)
            if key?.isPublished(at: now.microsecondsSince1970) != true {
              try transaction.deleteDocument(document.reference)
            } else if record.retiredAt == nil {
              present = document.documentID
              guard rotates else { continue }
              record.retiredAt = now
              try transaction.setData(from: record, forDocument: document.reference)
            }
          }
          if let present, !rotates { return present }
          let document = database.tokenKeys.document()
          let secret = P256.Signing.PrivateKey()
          let record = TokenKeyRecord(key: secret.rawRepresentation, createdAt: now)
          try transaction.create(from: record, forDocument: document)
          return document.documentID
        }
      } catch let error as DatabaseError {
        throw error
      } catch {
        throw DatabaseError(.internal, "a key for tokens could not be made")
      }
    }

    private static func newest(_ keys: [String: TokenKey]) -> TokenKey? {
      keys.values.filter { $0.retiredAt == nil }.max(by: isOlder)
    }

    private static func isOlder(_ one: TokenKey, _ other: TokenKey) -> Bool {
      (one.createdAt.microsecondsSince1970, one.id)
        < (other.createdAt.microsecondsSince1970, other.id)
    }

    private static func isID(_ text: String) -> Bool {
      text.utf8.count == 20
        && text.utf8.allSatisfy { byte in
          switch byte {
          case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
          default: false
          }
        }
    }

    private static var damaged: DatabaseError {
      DatabaseError(.dataLoss, "the key that signs tokens is damaged; rotate the keys")
    }
  }
#endif
