// Rules for Firestore and for Storage, in Firebase's language. A server reads a file once, and gets
// a verdict for each request of a client before it does anything else. Nothing here waits, reads a
// clock or knows the database: documents come from `RuleDocuments`, and the time comes with the
// request.
//
//   let rules = try RuleSet(parsing: text)
//   let verdict = rules.verdict(request, documents: snapshot)
//
// Everything unclear denies: a path without a match, a condition that fails, a limit that is
// reached.

#if Server
  /// A parsed and checked rules file.
  struct RuleSet: Sendable {
    /// The largest number of steps to match a path with the blocks of a file. Beyond them the
    /// request is denied.
    static let mostMatchingSteps = 10_000

    let source: RuleSource
    /// The `rules_version`, 1 or 2.
    let version: Int
    private let matches: [RuleService: [RuleMatch]]

    /// Reads a file.
    ///
    /// Throws the first mistake in it.
    init(parsing text: String) throws(RuleError) {
      var parser = try RuleParser(text)
      let file = try parser.file()
      source = parser.scanner.source
      version = file.version
      var matches: [RuleService: [RuleMatch]] = [:]
      for (name, block) in file.services {
        guard let service = RuleService(rawValue: name) else { continue }
        let block = RuleBlockSyntax(functions: file.functions, blocks: [block])
        var checker = RuleChecker(source: source, service: service, version: version)
        matches[service] = try checker.check(block)
      }
      self.matches = matches
    }

    /// Whether the file has rules for a service. A request for any other one is denied.
    func has(_ service: RuleService) -> Bool { matches[service] != nil }

    /// Decides a request for one document or object, or for one document of a list.
    ///
    /// - Parameters:
    ///   - documents: the source of `get` and `exists`, as of the request's moment.
    ///   - digests: the functions of `hashing`.
    ///   - explain: whether the verdict lists the values from the evaluation. That costs many times
    ///     the evaluation.
    func verdict(
      _ request: RuleRequest, documents: some RuleDocuments, digests: RuleDigests = .none,
      explain: Bool = false
    ) -> RuleVerdict {
      let evaluation = RuleEvaluation(
        request: request, documents: documents, digests: digests,
        recorder: explain ? RuleRecorder(source: source) : nil)
      var walk = RuleWalk(
        path: request.path.map { .known($0) }, leastRest: version == 2 ? 0 : 1,
        evaluation: evaluation)
      walk.visit(matches[request.service] ?? [])
      return RuleVerdict(
        isAllowed: walk.isAllowed,
        considered: walk.considered.map { allow, outcome in
          RuleVerdict.Considered(span: allow.span, source: source, outcome: outcome)
        },
        decision: walk.isAllowed ? walk.considered.count - 1 : nil,
        steps: walk.evaluation.recorder?.steps ?? [])
    }

    /// Decides whether the rules allow every document that a query can return.
    ///
    /// A proof holds for each document, so none needs its own evaluation. The proof has the limits
    /// of one evaluation: a document by itself might reach one of them.
    func proof(
      of query: RuleQuery, documents: some RuleDocuments, digests: RuleDigests = .none
    ) -> RuleProof {
      let evaluation = RuleEvaluation(
        request: query.request, documents: documents, digests: digests,
        conditions: RuleConditions(query.conditions))
      var walk = RuleWalk(
        path: query.documentPath, leastRest: version == 2 ? 0 : 1, evaluation: evaluation)
      walk.visit(matches[query.request.service] ?? [])
      return walk.isAllowed ? .proven : walk.isOpen ? .notProven : .refuted
    }
  }
#endif
