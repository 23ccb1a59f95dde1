// Rules for the targets of a listen stream. A new target is asked about as a list or as documents
// that are named. After that, a document is asked about again when it changes, and a whole target
// when the rules change, or a document that the rules had asked for. To be told of the latter, the
// stream's session listens to these documents with a target of its own, which its client never
// sees. Documents and rules are always of the same moment: the step's.

#if Server
  import Ondol
  import OndolMapping
  import OndolWire

  /// The rules' decisions about the targets of one stream.
  actor ListenRules {
    /// The session's target for the documents that rules ask for. Clients' numbers are not
    /// negative.
    static let ownTarget = Int32.min
    /// The most documents that the rules of one stream may ask for.
    private static let mostReads = 1_000

    /// What a client listens to.
    enum Listened: Sendable {
      case query(WireStructuredQuery, below: DocumentPath?)
      case documents([DocumentPath])
    }

    private struct Target: Sendable {
      let listened: Listened
      /// Distinguishes targets that have had the same number of the client's.
      let addition: Int
      /// For a query that is allowed.
      var list: RuledList?
      var reads: Set<DocumentPath> = []
      var isNew = true
    }

    private var targets: [Int32: Target] = [:]
    private var additions = 0
    private var rulesNumber: Int64?
    /// What the session listens to for the rules.
    private var followed: Set<DocumentPath> = []

    func add(_ id: Int32, _ listened: Listened) {
      additions += 1
      targets[id] = Target(listened: listened, addition: additions)
    }

    func remove(_ id: Int32) {
      targets[id] = nil
    }

    /// Makes targets that may no longer be seen fail, and the session listen to what the rules ask
    /// for.
    ///
    /// - Parameter number: the deployment's number of the rules.
    /// - Throws: the errors of reading the documents that the rules ask for.
    func examined(
      _ step: ListenStep, _ call: FirestoreService.Call, _ access: RuledAccess,
      number: Int64?, _ session: ListeningSession
    ) async throws(DatabaseError) -> ListenStep {
      guard let moment = await session.takeMoment() else { return step }
      var step = step
      let changed = try takeChanges(from: &step)
      let hasOtherRules = number != rulesNumber
      rulesNumber = number
      for (id, target) in targets.sorted(by: { $0.key < $1.key }) {
        let isShown = step.shows(id)
        let asksForAll =
          target.isNew
          ? isShown : hasOtherRules || !target.reads.isDisjoint(with: changed)
        guard isShown || asksForAll else { continue }
        let asked: Target?
        do throws(DatabaseError) {
          asked =
            asksForAll
            ? try await ask(about: target, with: id, call, access, at: moment, session)
            : try await ask(about: step.changes(of: id), of: target, access, at: moment)
        } catch {
          step.fail(id, with: error)
          asked = nil
        }
        // The client may have removed or replaced it meanwhile.
        guard targets[id]?.addition == target.addition else { continue }
        targets[id] = asked
        if asked == nil { await session.end(id) }
      }
      if let paths = try follow() { try await session.add(Self.ownTarget, .documents(paths)) }
      return step
    }

    /// The documents that rules had asked for and that have changed.
    private func takeChanges(
      from step: inout ListenStep
    ) throws(DatabaseError) -> Set<DocumentPath> {
      // A document may have changed before the session listened to it.
      var changed = step.completed.contains(Self.ownTarget) ? followed : []
      for change in step.changes(of: Self.ownTarget) {
        changed.insert(try DocumentPath(change.document.reference.path))
      }
      step.hide(Self.ownTarget)
      return changed
    }

    /// Asks about everything that a target shows.
    private func ask(
      about target: Target, with id: Int32, _ call: FirestoreService.Call, _ access: RuledAccess,
      at moment: ReadMoment, _ session: ListeningSession
    ) async throws(DatabaseError) -> Target {
      var target = target
      target.isNew = false
      switch target.listened {
      case .query(let wire, let parent):
        let list = try await RuledList(wire, below: parent, call.values, access, at: moment)
        target.list = list
        target.reads = list.reads
        target.reads.formUnion(try await list.check(session.documents(of: id), at: moment))
      case .documents(let paths):
        let documents = try await moment.documents(at: paths)
        target.reads = try await access.check(get: documents, at: moment)
      }
      return target
    }

    /// Asks about some documents of a target.
    private func ask(
      about changes: [ListenStep.Change], of target: Target, _ access: RuledAccess,
      at moment: ReadMoment
    ) async throws(DatabaseError) -> Target {
      var target = target
      let reads =
        if let list = target.list {
          try await list.check(
            changes.filter { !$0.targets.isEmpty }.map(\.document), at: moment)
        } else {
          try await access.check(get: changes.map(\.document), at: moment)
        }
      target.reads.formUnion(reads)
      return target
    }

    /// What the session must listen to from now on; nil when that is what it listens to.
    private func follow() throws(DatabaseError) -> [DocumentPath]? {
      let reads = targets.values.reduce(into: Set()) { $0.formUnion($1.reads) }
      guard reads.count <= Self.mostReads else {
        throw DatabaseError(
          .resourceExhausted,
          "the rules for a stream's targets ask for more than \(Self.mostReads) documents")
      }
      guard !reads.isSubset(of: followed) else { return nil }
      followed = reads
      return reads.sorted()
    }
  }

  extension ListenStep {
    /// Whether it has news of a target.
    fileprivate func shows(_ id: Int32) -> Bool {
      completed.contains(id) || changes.contains { $0.concerns(id) }
    }

    /// The changes of a target alone.
    fileprivate func changes(of id: Int32) -> [Change] {
      changes.filter { $0.concerns(id) }.map { change in
        var change = change
        change.targets.removeAll { $0 != id }
        change.left.removeAll { $0 != id }
        return change
      }
    }
  }

  extension ListenStep.Change {
    fileprivate func concerns(_ id: Int32) -> Bool { targets.contains(id) || left.contains(id) }
  }
#endif
