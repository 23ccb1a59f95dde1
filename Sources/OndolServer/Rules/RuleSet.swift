// Rules for Firestore and for Storage, in Firebase's language. A server reads a file once, and asks
// for a verdict with each request of a client, before it does anything. Nothing here waits, reads a
// clock or knows the database: documents come from `RuleDocuments`, and the time with the request.
//
//   let rules = try RuleSet(parsing: text)
//   let verdict = rules.verdict(request, documents: snapshot)
//
// Whatever is not understood denies: a path without a match, a condition that fails, a limit that
// is reached.

#if Server
  /// A parsed and checked rules file.
  struct RuleSet: Sendable {
    /// Steps of matching a path against the blocks of a file. Beyond them a request is denied.
    static let mostMatchingSteps = 10_000

    let source: RuleSource
    /// The `rules_version`, 1 or 2.
    let version: Int
    private let matches: [RuleService: [RuleMatch]]

    /// Reads a file.
    ///
    /// Throws the first thing that is wrong with it.
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

    /// Whether the file says anything of a service. A request for another one is denied.
    func has(_ service: RuleService) -> Bool { matches[service] != nil }

    /// Decides about a request of one document or object, or about one document of a list.
    ///
    /// - Parameters:
    ///   - documents: what `get` and `exists` read, as of the request's moment.
    ///   - digests: what `hashing` computes with.
    ///   - explain: whether the verdict lists the values that were seen. It costs many times the
    ///     evaluation.
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

    /// Whether the rules allow every document that a query can answer with.
    ///
    /// What is proven holds for each document, so none needs to be asked about by itself. The
    /// limits of an evaluation are the proof's own: a document by itself might reach one of them.
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
