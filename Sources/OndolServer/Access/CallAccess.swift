// What a call may do with a database. Administrators may do everything. For everybody else, the
// database's rules decide about each document that a call would read, and a WriteGuard about each
// that it would write (RuleGuard). A refusal says nothing of what is stored.

#if Server
  import Ondol
  import OndolAccounts

  /// What a call may do.
  enum CallAccess: Sendable {
    case everything
    case ruled(RuledAccess)

    /// The rules that decide; nil for callers to whom none apply.
    var rules: RuledAccess? { if case .ruled(let access) = self { access } else { nil } }

    /// Refuses calls that only administrators make.
    func requireEverything() throws(DatabaseError) {
      guard case .everything = self else { throw .refused }
    }
  }

  /// The decisions of a database's rules about one caller.
  struct RuledAccess: Sendable {
    /// Nil when nothing is allowed, because the database has no rules.
    let rules: RuleSet?
    /// The id of the database.
    let database: String
    /// `request.auth`.
    let auth: RuleValue
    /// Whether a list is refused when the query alone does not prove that it is allowed, as in
    /// Firestore.
    let isStrict: Bool

    /// Collections of the root that rules cannot open: accounts and their secrets, and the rules
    /// themselves.
    private static let closedRoots = AccountCollection.all + [ServerRules.root]

    static func isClosed(root: String?) -> Bool {
      root.map { root in closedRoots.contains { isExactly($0, root) } } ?? true
    }

    static func isClosed(_ path: DocumentPath) -> Bool { isClosed(root: path.segments.first) }

    /// The request about one document.
    ///
    /// - Parameters:
    ///   - stored: the document as it is stored.
    ///   - new: the document as it will be; nil when nothing is written.
    func request(
      _ method: RuleMethods, _ path: DocumentPath, at time: RuleTimestamp,
      stored: DocumentSnapshot, new: DocumentSnapshot? = nil
    ) -> RuleRequest {
      RuleRequest(
        service: .firestore, method: method,
        path: RuleRequest.firestore(path.segments, database: database), auth: auth, time: time,
        resource: RuleValue(stored, at: path, in: database),
        newResource: new.map { RuleValue($0, at: path, in: database) } ?? .null)
    }

    /// Whether the rules allow a request about a document.
    ///
    /// - Throws: the errors of reading the documents that the rules ask for.
    func allows(
      _ request: RuleRequest, at path: DocumentPath, _ documents: RuleReads
    ) throws(DatabaseError) -> Bool {
      guard let rules, !Self.isClosed(path) else { return false }
      let verdict = rules.verdict(request, documents: documents, digests: .usual)
      if let failure = documents.failure { throw failure }
      return verdict.isAllowed
    }

    /// Whether the rules allow a caller to read documents that it named, or that a list has.
    func allows(
      _ method: RuleMethods, _ documents: [DocumentSnapshot], query: RuleValue = .null,
      _ reads: RuleReads
    ) throws(DatabaseError) -> Bool {
      let time = reads.time
      for document in documents {
        let path = try DocumentPath(document.reference.path)
        var request = request(method, path, at: time, stored: document)
        request.query = query
        guard try allows(request, at: path, reads) else { return false }
      }
      return true
    }

    /// Refuses a call that names documents which the caller may not get.
    ///
    /// - Returns: the documents that the rules asked for.
    @discardableResult
    func check(
      get documents: [DocumentSnapshot], at moment: ReadMoment
    ) async throws(DatabaseError) -> Set<DocumentPath> {
      let (isAllowed, paths) = try await moment.withDocuments { (reader) throws(DatabaseError) in
        let reads = RuleReads(reader, of: self, moment.database)
        return (try allows(.get, documents, reads), reads.paths)
      }
      guard isAllowed else { throw .refused }
      return paths
    }
  }

  /// The documents that rules ask for during one call. Each is read once.
  final class RuleReads: RuleDocuments {
    /// Reads a document, if wanted as of after the call's writes.
    typealias Read = (DocumentPath, _ afterWrites: Bool) throws(DatabaseError) -> DocumentSnapshot

    /// `request.time`.
    let time: RuleTimestamp
    private let database: String
    private let read: Read
    private var known: [RuleRead: RuleValue] = [:]
    /// The first error of a read. The verdict does not count then.
    private(set) var failure: DatabaseError?

    init(_ access: RuledAccess, at time: RuleTimestamp, _ read: @escaping Read) {
      database = access.database
      self.time = time
      self.read = read
    }

    convenience init(
      _ documents: MomentDocuments, of access: RuledAccess, _ database: Database
    ) {
      self.init(access, at: database.ruleTime) { (path, _) throws(DatabaseError) in
        try documents.document(at: path)
      }
    }

    /// The documents that were asked for, whether or not they exist.
    var paths: Set<DocumentPath> { Set(known.keys.compactMap { try? path($0.path) }) }

    func document(at segments: [String], afterWrites: Bool) throws -> RuleValue? {
      let place = RuleRead(path: segments, afterWrites: afterWrites)
      if let known = known[place] { return known.isNull ? nil : known }
      let path = try path(segments)
      let document: DocumentSnapshot
      do throws(DatabaseError) {
        document = try read(path, afterWrites)
      } catch {
        failure = failure ?? error
        throw error
      }
      let fields: RuleValue =
        document.exists ? .map(document.data().mapValues { RuleValue($0, in: database) }) : .null
      known[place] = fields
      return fields.isNull ? nil : fields
    }

    /// Throws `.invalidArgument` for what is no document of this database.
    private func path(_ segments: [String]) throws(DatabaseError) -> DocumentPath {
      guard segments.count > 3, isExactly(segments[1], database) else {
        throw DatabaseError(.invalidArgument, "the rules ask for a document of another database")
      }
      return try DocumentPath(segments: Array(segments.dropFirst(3)))
    }
  }

  extension Database {
    /// The present time as rules have it.
    var ruleTime: RuleTimestamp {
      let (seconds, rest) = wallClock.dividedDown(by: 1_000_000)
      return RuleTimestamp(clampingSeconds: seconds, nanoseconds: rest * 1_000)
    }
  }
#endif
