// Why the rules of a database allow or deny a request, with the documents that are stored.

#if Server
  package import Ondol
  import OndolMapping

  /// A request that somebody might make.
  package struct ExplainedRequest: Sendable {
    /// get, list, create, update or delete.
    package var method: String
    package var path: DocumentPath
    /// The uid of the caller; nil for nobody.
    package var user: String?
    /// The claims of their token.
    package var claims: [String: Value] = [:]
    /// What the document will be, for a create or an update.
    package var fields: [String: Value] = [:]

    package init(_ method: String, _ path: DocumentPath, as user: String?) {
      self.method = method
      self.path = path
      self.user = user
    }

    /// Asks the rules.
    ///
    /// - Parameter file: the rules; those that are deployed for nil.
    /// - Returns: whether they allow the request, and what they saw, line by line.
    /// - Throws: `.invalidArgument` for an unknown method, `.failedPrecondition` without rules for
    ///   Firestore; otherwise as `DocumentReference.getDocument()`.
    package func explanation(
      in database: Database, _ file: RulesFile? = nil
    ) async throws(DatabaseError) -> (isAllowed: Bool, text: String) {
      guard let method = RuleMethods.byName[method], method.rawValue.nonzeroBitCount == 1 else {
        throw DatabaseError(
          .invalidArgument, "a request is get, list, create, update or delete, not \(method)")
      }
      let deployed = try await ServerRules(database).current()?.firestore
      guard let rules = file == nil ? deployed : file?.rules, rules.has(.firestore) else {
        throw DatabaseError(.failedPrecondition, "there are no rules for Firestore")
      }
      let id = DatabaseName.usual
      let principal = user.map {
        Principal.user(VerifiedToken(uid: $0, claims: claims.merging(["sub": .string($0)]) { $1 }))
      }
      let access = RuledAccess(
        rules: rules, database: id, auth: (principal ?? .nobody).auth(in: id), isStrict: false)
      let moment = try database.readMoment()
      return try await moment.withDocuments { (documents) throws(DatabaseError) in
        let reads = RuleReads(documents, of: access, database)
        var request = access.request(
          method, path, at: reads.time, stored: try documents.document(at: path))
        if method == .create || method == .update {
          request.newResource = .document(
            RuleDocument(
              path: request.path, data: .map(fields.mapValues { RuleValue($0, in: id) })))
        }
        let verdict = rules.verdict(
          request, documents: reads, digests: .usual, explain: true)
        if let failure = reads.failure { throw failure }
        guard !RuledAccess.isClosed(path) else {
          return (false, "denied\n  no rule opens this collection")
        }
        return (verdict.isAllowed, verdict.description)
      }
    }
  }
#endif
