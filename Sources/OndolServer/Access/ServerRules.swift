// The rules that are deployed to a database. They are documents of it, so a deployment is a commit,
// every server of the database follows it, and dumps and copies have them:
//
//   serverRules/000000000012
//     firestore, storage, database   strings: the files; those that are missing allow nothing
//     deployed                       timestamp
//
// The document with the greatest number is in force. The last ten stay.

#if Server
  import Logging
  package import Ondol
  import OndolEngine
  import Synchronization

  /// The texts of a deployment.
  package struct RulesTexts: Sendable, Hashable {
    package var firestore: String?
    package var storage: String?
    package var database: String?

    package init(firestore: String? = nil, storage: String? = nil, database: String? = nil) {
      self.firestore = firestore
      self.storage = storage
      self.database = database
    }

    /// - Parameter fields: those of a deployment's document.
    init(_ fields: [String: Value]) {
      firestore = fields["firestore"]?.string
      storage = fields["storage"]?.string
      database = fields["database"]?.string
    }

    /// The fields of a deployment's document, but for its time.
    var fields: [String: Value] {
      var fields: [String: Value] = [:]
      if let firestore { fields["firestore"] = .string(firestore) }
      if let storage { fields["storage"] = .string(storage) }
      if let database { fields["database"] = .string(database) }
      return fields
    }

    /// These texts, and those of `before` that they do not have.
    package func replacing(_ before: RulesTexts) -> RulesTexts {
      RulesTexts(
        firestore: firestore ?? before.firestore, storage: storage ?? before.storage,
        database: database ?? before.database)
    }
  }

  extension RulesFile {
    /// Adds the file to a deployment.
    ///
    /// - Throws: what another file has already.
    package func add(to texts: inout RulesTexts) throws(Problem) {
      func put(_ place: inout String?, _ name: String) throws(Problem) {
        guard place == nil else { throw Problem(description: "another file has rules for \(name)") }
        place = text
      }
      if isOfTree { try put(&texts.database, "the Realtime Database") }
      if has(.firestore) { try put(&texts.firestore, "Firestore") }
      if has(.storage) { try put(&texts.storage, "Storage") }
    }
  }

  /// Follows the rules in force.
  package final class ServerRules: Sendable {
    /// The collection.
    static let root = "serverRules"
    /// How many deployments stay.
    package static let most = 10

    /// What is in force.
    struct Current: Sendable {
      /// The deployment's number.
      let number: Int64
      /// Nil when nothing is allowed.
      let firestore: RuleSet?
      let storage: RuleSet?
      let tree: TreeRules?
      /// The file of the tree's rules.
      let treeText: String?
    }

    private struct State: Sendable {
      var current: Current?
      /// The number of the newest deployment that was looked at, right or wrong.
      var seen: Int64 = 0
      var loading: Task<DatabaseError?, Never>?
      var following: Task<Void, Never>?
      /// Whether changes are not seen any more, because the database is closed or has failed.
      var hasEnded = false
    }

    private let database: Database
    private let logger = Logger(label: "ondol.rules")
    private let state = Mutex(State())
    /// Called after every change of the rules.
    let handlers = Handlers()

    init(_ database: Database) {
      self.database = database
    }

    deinit {
      state.withLock(\.following)?.cancel()
    }

    private static func newest(_ database: Database) -> Query {
      database.collection(root).order(by: FieldPath.documentID(), descending: true).limit(to: 1)
    }

    /// The rules in force, as `current()`; nil before its first call has ended.
    ///
    /// Calls ask this first: an asynchronous call more would stay in the memory of each stream.
    var loaded: Current?? {
      state.withLock { $0.following == nil ? nil : .some($0.current) }
    }

    /// The rules in force; nil when none have ever been deployed.
    ///
    /// - Throws: the errors of the first read.
    /// - Complexity: O(1), but for the first call.
    func current() async throws(DatabaseError) -> Current? {
      if let loaded { return loaded }
      let loading = state.withLock { state in
        let loading =
          state.loading
          ?? Task(executorPreference: executor) { [weak self] in await self?.load() }
        state.loading = loading
        return loading
      }
      if let error = await loading.value { throw error }
      return state.withLock(\.current)
    }

    private var executor: (any TaskExecutor)? { database.environment.executor }

    private func load() async -> DatabaseError? {
      do throws(DatabaseError) {
        install(try await Self.newest(database).getDocuments().documents.first)
      } catch {
        state.withLock { $0.loading = nil }
        return error
      }
      let following = Task(executorPreference: executor) { [weak self, database] in
        do {
          for try await newest in Self.newest(database).snapshots {
            self?.install(newest.documents.first)
          }
        } catch {
          self?.logger.error("the rules are not followed any more: \(error)")
        }
        self?.state.withLock { $0.hasEnded = true }
        self?.handlers.call()
      }
      state.withLock { $0.following = following }
      return nil
    }

    /// The number of the newest deployment that was looked at, right or wrong.
    var seen: Int64 { state.withLock(\.seen) }

    private func install(_ document: DocumentSnapshot?) {
      guard let document, let number = Int64(document.documentID),
        state.withLock({ number != $0.current?.number })
      else { return }
      defer {
        state.withLock { $0.seen = number }
        handlers.call()
      }
      let current: Current
      do throws(DatabaseError) {
        current = try Current(parsing: RulesTexts(document.data()), number: number)
      } catch {
        logger.error("deployment \(number) of the rules is wrong and not used: \(error)")
        // Without rules before it, nothing is allowed.
        guard state.withLock({ $0.current == nil }) else { return }
        current = Current(number: number)
      }
      state.withLock { $0.current = current }
    }
  }

  extension ServerRules.Current {
    /// Nothing is allowed.
    init(number: Int64) {
      self.init(number: number, firestore: nil, storage: nil, tree: nil, treeText: nil)
    }

    /// Throws `.invalidArgument` with the place of the first error.
    init(parsing texts: RulesTexts, number: Int64) throws(DatabaseError) {
      func parsed<Rules>(
        _ name: String, _ text: String?, _ parse: (String) throws(RuleError) -> Rules
      ) throws(DatabaseError) -> Rules? {
        guard let text else { return nil }
        do throws(RuleError) {
          return try parse(text)
        } catch {
          throw DatabaseError(.invalidArgument, "\(name) rules: \(error)")
        }
      }
      self.init(
        number: number,
        firestore: try parsed("firestore", texts.firestore) { text throws(RuleError) in
          try RuleSet(parsing: text)
        },
        storage: try parsed("storage", texts.storage) { text throws(RuleError) in
          try RuleSet(parsing: text)
        },
        tree: try parsed("database", texts.database) { text throws(RuleError) in
          try TreeRules(parsing: text)
        }, treeText: texts.database)
    }
  }

  extension ServerRules {
    /// Deploys rules. A file that `texts` does not have stays as it is.
    ///
    /// - Returns: the deployment's number; nil when all files are in force already.
    /// - Throws: `.invalidArgument` with the place when a file is wrong: nothing is deployed then.
    ///   Otherwise as `Database.runTransaction(attempts:durability:_:)`.
    package static func deploy(
      _ texts: RulesTexts, to database: Database
    ) async throws -> Int64? {
      try check(texts)
      let collection = database.collection(root)
      return try await database.runTransaction { transaction -> Int64? in
        let newest = try transaction.getDocuments(newest(database)).documents.first
        let before = RulesTexts(newest?.data() ?? [:])
        let after = texts.replacing(before)
        // Somebody may have written a wrong file by hand, and all files are in force together.
        try check(after)
        guard newest == nil || after != before else { return nil }
        let number = number(after: newest?.documentID)
        var fields: [String: (any FieldContent)?] = after.fields
        fields["deployed"] = FieldValue.serverTimestamp()
        try transaction.setData(fields, forDocument: collection.document(id(number)))
        let outdated = collection.whereField(
          FieldPath.documentID(), isLessThanOrEqualTo: id(number - Int64(most)))
        for document in try transaction.getDocuments(outdated).documents {
          try transaction.deleteDocument(document.reference)
        }
        return number
      }
    }

    /// Deploys rules as `deploy(_:to:)` does, and returns when they are in force here.
    ///
    /// - Throws: also `.unavailable` when the database is closed meanwhile.
    func deploy(_ texts: RulesTexts) async throws -> Int64? {
      _ = try await current()
      let (changes, change) = AsyncStream.makeStream(
        of: Void.self, bufferingPolicy: .bufferingNewest(1))
      let registration = handlers.add { change.yield() }
      defer { withExtendedLifetime(registration) {} }
      guard let number = try await Self.deploy(texts, to: database) else { return nil }
      var arriving = changes.makeAsyncIterator()
      while seen < number {
        guard !state.withLock(\.hasEnded), await arriving.next() != nil else {
          throw DatabaseError(.unavailable, "the rules are deployed, and not in force here")
        }
      }
      return number
    }

    /// The newest deployment: its number and its texts. Nil when none has been made.
    package static func newest(
      in database: Database
    ) async throws(DatabaseError) -> (number: Int64, texts: RulesTexts)? {
      let found = try await newest(database).getDocuments().documents.first
      guard let found, let number = Int64(found.documentID) else { return nil }
      return (number, RulesTexts(found.data()))
    }

    /// The number of the deployment after that of a document.
    static func number(after id: String?) -> Int64 { (id.flatMap { Int64($0) } ?? 0) + 1 }

    /// The id of a deployment's document.
    static func id(_ number: Int64) -> String {
      let digits = String(max(0, number))
      return String(repeating: "0", count: max(0, 12 - digits.count)) + digits
    }

    /// Throws `.invalidArgument` with the place of the first error.
    static func check(_ texts: RulesTexts) throws(DatabaseError) {
      _ = try Current(parsing: texts, number: 0)
    }
  }
#endif
