// A list of documents that rules decide about. If the query proves that the rules allow whatever it
// finds, nothing more is asked. If not, the rules are asked about each document of the answer, and
// the first refusal ends the call. So an answer never has a document that its reader may not see.

#if Server
  import Ondol
  import OndolMapping
  import OndolWire

  /// A list that has been allowed, for all documents or for those that pass.
  struct RuledList: Sendable {
    let access: RuledAccess
    private let parameters: RuleValue
    /// Whether the rules are asked about each document.
    let asksForEach: Bool
    private let isGroup: Bool
    /// The documents that the rules asked for.
    private(set) var reads: Set<DocumentPath>

    /// Asks the rules.
    ///
    /// - Throws: `.permissionDenied` when they allow no document, or with `isStrict` when they may
    ///   not allow all; `.invalidArgument` when the query's values are wrong.
    init(
      _ wire: WireStructuredQuery, below parent: DocumentPath?, _ values: ValueMapping,
      _ access: RuledAccess, at moment: ReadMoment
    ) async throws(DatabaseError) {
      let query = try RuledQuery(
        wire, below: parent, values, access, at: moment.database.ruleTime)
      let (proof, reads) = try await moment.withDocuments { (documents) throws(DatabaseError) in
        let reads = RuleReads(documents, of: access, moment.database)
        return (try query.proof(access, reads), reads.paths)
      }
      guard proof == .proven || proof == .notProven && !access.isStrict else { throw .refused }
      self.access = access
      self.reads = reads
      parameters = query.parameters
      asksForEach = proof != .proven
      isGroup = query.isGroup
    }

    /// Checks documents of the answer.
    ///
    /// - Returns: the documents that the rules asked for.
    /// - Throws: `.permissionDenied` when one of them is not allowed.
    @discardableResult
    func check(
      _ documents: [DocumentSnapshot], at moment: ReadMoment
    ) async throws(DatabaseError) -> Set<DocumentPath> {
      guard asksForEach else {
        if isGroup { try refuseClosed(documents) }
        return []
      }
      let (isAllowed, reads) = try await moment.withDocuments { (reader) throws(DatabaseError) in
        let reads = RuleReads(reader, of: access, moment.database)
        return (try access.allows(.list, documents, query: parameters, reads), reads.paths)
      }
      guard isAllowed else { throw .refused }
      return reads
    }

    /// A proof about a group of collections knows nothing of their roots.
    private func refuseClosed(_ documents: [DocumentSnapshot]) throws(DatabaseError) {
      for document in documents
      where RuledAccess.isClosed(try DocumentPath(document.reference.path)) {
        throw .refused
      }
    }
  }
#endif
