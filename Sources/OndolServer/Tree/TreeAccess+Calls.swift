// Reads and writes as a principal. Where rules decide, they look at the same moment as the read, or
// are part of the transaction that writes, so nothing changes between their verdict and the commit.

#if Server
  import Ondol

  extension TreeAccess {
    private enum Decision {
      case allowed
      case denied
      case rules(TreeRules)
    }

    private func decision(for principal: TreePrincipal) -> Decision {
      if principal.isAdministrator { return .allowed }
      if let rules { return .rules(rules) }
      return isOpenWithoutRules ? .allowed : .denied
    }

    /// How often a transaction is tried, as often as the Realtime Database's clients do.
    private static let attempts = 25

    // MARK: - Reading

    /// Throws `.permissionDenied` unless the principal may read the query's result now.
    func checkRead(
      _ terms: TreeQueryTerms, at place: TreePlace, in database: Database,
      as principal: TreePrincipal
    ) async throws {
      switch decision(for: principal) {
      case .allowed: return
      case .denied: throw TreeRefusal.denied
      case .rules(let rules):
        try await database.runTransaction(attempts: Self.attempts) { transaction in
          try check(rules, terms, at: place, transaction, database, principal)
        }
      }
    }

    /// The result of a query, at one moment with the verdict.
    func read(
      _ terms: TreeQueryTerms, at place: TreePlace, in database: Database,
      as principal: TreePrincipal
    ) async throws -> TreeSnapshot {
      let query = terms.query(at: place.reference(in: database))
      switch decision(for: principal) {
      case .allowed: return try await query.getData()
      case .denied: throw TreeRefusal.denied
      case .rules(let rules):
        return try await database.runTransaction(attempts: Self.attempts) { transaction in
          try check(rules, terms, at: place, transaction, database, principal)
          return try transaction.getData(query)
        }
      }
    }

    private func check(
      _ rules: TreeRules, _ terms: TreeQueryTerms, at place: TreePlace,
      _ transaction: Transaction, _ database: Database, _ principal: TreePrincipal
    ) throws {
      let tree = TransactionTree(transaction, database, beforeWrites: true)
      let verdict = rules.read(
        at: place.keys, of: tree, auth: principal.auth, now: database.ruleTime,
        query: terms.rule)
      if let error = tree.error { throw error }
      guard verdict.isAllowed else { throw TreeRefusal.denied }
    }

    /// The index that rules should declare for a query's order; nil when there is none to declare.
    func missingIndex(_ terms: TreeQueryTerms, at place: TreePlace) -> String? {
      guard let rules else { return nil }
      return terms.missingIndex(in: rules.indexes(at: place.keys))
    }

    // MARK: - Writing

    /// Commits a write.
    ///
    /// - Parameters:
    ///   - hash: the hash that the place's data must have; nil for any.
    ///   - isReturned: whether to read the place with the write.
    /// - Returns: the place's data as it was committed. If the server computes a part of it, it is
    ///   read after the commit, so that other writes may be in it.
    /// - Throws: `.stale` for another hash; `.permissionDenied`.
    @discardableResult
    func write(
      _ write: TreeWrite, ifHash hash: String? = nil, to database: Database,
      as principal: TreePrincipal, isReturned: Bool = false
    ) async throws -> TreeData {
      let decision = decision(for: principal)
      if case .denied = decision { throw TreeRefusal.denied }
      let reference = write.place.reference(in: database)
      let isComputed = isReturned && write.hasServerValues
      let isReadNow = isReturned && !isComputed
      var data = TreeData.nothing
      if case .allowed = decision, hash == nil, !isReadNow {
        try await write.commit(to: database)
      } else {
        data = try await database.runTransaction(attempts: Self.attempts) { transaction in
          try prepare(write, ifHash: hash, decision, transaction, database, principal)
          return isReadNow ? try transaction.getData(reference).nodeData : .nothing
        }
      }
      return isComputed ? try await reference.getData().nodeData : data
    }

    /// Throws what a write would throw now, and writes nothing.
    func checkWrite(
      _ write: TreeWrite, to database: Database, as principal: TreePrincipal
    ) async throws {
      let decision = decision(for: principal)
      switch decision {
      case .allowed: return
      case .denied: throw TreeRefusal.denied
      case .rules:
        do {
          try await database.runTransaction(attempts: 1) { transaction in
            try prepare(write, ifHash: nil, decision, transaction, database, principal)
            throw Rehearsal()
          }
        } catch is Rehearsal {}
      }
    }

    /// Ends a transaction that must not be committed.
    private struct Rehearsal: Error {}

    private func prepare(
      _ write: TreeWrite, ifHash hash: String?, _ decision: Decision,
      _ transaction: Transaction, _ database: Database, _ principal: TreePrincipal
    ) throws {
      if let hash {
        let reference = write.place.reference(in: database)
        guard try TreeHash.hash(of: transaction.getData(reference).nodeData) == hash else {
          throw TreeRefusal.stale
        }
      }
      try write.apply(in: transaction, of: database)
      guard case .rules(let rules) = decision else { return }
      let before = TransactionTree(transaction, database, beforeWrites: true)
      let after = TransactionTree(transaction, database, beforeWrites: false)
      let now = database.ruleTime
      for place in write.places {
        let verdict = rules.write(
          at: place.keys, before: before, after: after, auth: principal.auth, now: now)
        if let error = before.error ?? after.error { throw error }
        guard verdict.isAllowed else { throw TreeRefusal.denied }
      }
    }
  }

  /// The tree within a transaction, as rules read it. Rules deny where a read fails, so the first
  /// error is kept: it says that the transaction must run again, or why it cannot.
  private final class TransactionTree: RuleTree {
    private let transaction: Transaction
    private let database: Database
    private let beforeWrites: Bool
    private(set) var error: DatabaseError?

    init(_ transaction: Transaction, _ database: Database, beforeWrites: Bool) {
      self.transaction = transaction
      self.database = database
      self.beforeWrites = beforeWrites
    }

    private func noting<Result>(
      _ path: [String], _ body: (TreeReference) throws(DatabaseError) -> Result
    ) throws(DatabaseError) -> Result {
      do throws(DatabaseError) {
        return try body(path.reduce(database.tree) { $0.child(key: $1) })
      } catch {
        // A key that rules make up and that cannot be one is the rules' own failure.
        if error.code != .invalidArgument { self.error = self.error ?? error }
        throw error
      }
    }

    private func outline(_ path: [String]) throws(DatabaseError) -> TreeOutline {
      try noting(path) { (reference) throws(DatabaseError) in
        try transaction.outline(of: reference, beforeWrites: beforeWrites)
      }
    }

    func content(at path: [String]) throws -> RuleTreeContent? {
      let node = try outline(path)
      if let leaf = node.leaf { return .leaf(RuleValue(leaf: leaf)) }
      return node.exists ? .branch : nil
    }

    func priority(at path: [String]) throws -> RuleValue {
      let node = try outline(path)
      return node.exists ? RuleValue(leaf: node.priority) : .null
    }

    func childNames(at path: [String]) throws -> [String] {
      try noting(path) { (reference) throws(DatabaseError) in
        try transaction.childKeys(of: reference, beforeWrites: beforeWrites)
      }
    }
  }
#endif
