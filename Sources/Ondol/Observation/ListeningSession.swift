// Listens to several queries and documents together, as a client of Firestore's protocol does on
// one stream: every step shows all of them as of the same commit. A `snapshots` sequence keeps one
// result up to date and shares it. A session keeps its own results, because the results of
// different sequences are each as of their own commit.
//
// One listener serves all targets, so a commit leaves its changes in one piece (SessionInbox). A
// step applies whole commits. What cannot be updated in this way is evaluated on a snapshot: a new
// target, a limit whose reserve is used up, or everything when more changes came than the inbox
// keeps.

internal import OndolEngine

/// What a session listens to.
package enum ListenedTarget: Sendable {
  case query(Query)
  case documents([DocumentPath])
}

/// What a client knows of a target's result when it begins to listen.
package enum ListeningStart: Sendable {
  case nothing
  /// The whole result as of a commit.
  case result(asOf: ChangeToken)
  /// An unknown part of it.
  case something
}

/// The changes for the targets of a session, up to one commit.
package struct ListenStep: Sendable {
  /// A document that targets show in a new state, or no longer show.
  package struct Change: Sendable {
    /// Its current state; a snapshot that does not `exist` when it was deleted.
    package var document: DocumentSnapshot
    /// Whether the document exists, for targets that no longer show it.
    package var exists: Bool
    /// Targets that show it.
    package var targets: [Int32] = []
    /// Targets that no longer show it.
    package var left: [Int32] = []
  }

  /// Targets that were added or removed, in their order, before the changes.
  package var acknowledged: [(target: Int32, isAdded: Bool)] = []
  package var changes: [Change] = []
  /// Targets whose result is complete for the first time.
  package var completed: [Int32] = []
  /// Targets that resumed with a token after which the changes are not all known. The client
  /// discards what it has, and the changes contain the whole result.
  package var reset: [Int32] = []
  /// For resumed targets: how many documents they showed as of their token, and how many they show
  /// now.
  package var counts: [Int32: (seen: Int, now: Int)] = [:]
  /// Targets that ended with an error.
  package var failed: [(target: Int32, error: DatabaseError)] = []
  /// The commit that all targets are as of.
  package fileprivate(set) var token: ChangeToken
  package fileprivate(set) var time: Timestamp
  /// Whether the step was asked for with `mark()`. It may be empty.
  package fileprivate(set) var isMark = false

  /// The commit's version.
  var version: Version { Version(rawValue: token.point.sequence.rawValue) }

  fileprivate init(_ newest: (token: ChangeToken, time: Int64)) {
    token = newest.token
    time = Timestamp(unchecked: newest.time)
  }

  package var isEmpty: Bool {
    acknowledged.isEmpty && changes.isEmpty && completed.isEmpty && failed.isEmpty
  }

  /// Turns a target that the step shows into one that ended with an error.
  package mutating func fail(_ id: Int32, with error: DatabaseError) {
    completed.removeAll { $0 == id }
    reset.removeAll { $0 == id }
    counts[id] = nil
    for index in changes.indices {
      changes[index].targets.removeAll { $0 == id }
      changes[index].left.removeAll { $0 == id }
    }
    changes.removeAll { $0.targets.isEmpty && $0.left.isEmpty }
    failed.append((id, error))
  }

  /// Removes a target from the step.
  package mutating func hide(_ id: Int32) {
    fail(id, with: .refused)
    failed.removeAll { $0.target == id }
    acknowledged.removeAll { $0.target == id }
  }
}

/// Listens to targets that can be added and removed.
package actor ListeningSession {
  private let database: Database
  private let inbox = SessionInbox()
  private let key: WatchKey
  private var targets: [Int32: SessionTarget] = [:]
  /// The commit that the last step was as of.
  private var newest: (token: ChangeToken, time: Int64)
  /// Distinguishes targets that have had the same number.
  private var additions = 0
  /// What the next step acknowledges.
  private var unacknowledged: [(target: Int32, isAdded: Bool)] = []
  private let readsMoments: Bool
  /// The last step's moment, until it is taken. It keeps the files that it reads.
  private var lastMoment: ReadMoment?
  private var isMarked = false

  /// - Parameter readsMoments: whether `takeMoment()` has the moment that each step shows, for more
  ///   reads as of the same commit.
  package init(_ database: Database, readsMoments: Bool = false) {
    self.database = database
    self.readsMoments = readsMoments
    key = .session(ObjectIdentifier(inbox))
    newest = (database.newestToken, database.newestPoint.time.microsecondsSince1970)
    database.observers.attach(inbox, as: key)
  }

  deinit {
    database.observers.detach(key, from: inbox)
  }

  /// Adds a target. The next step completes it.
  ///
  /// - Parameters:
  ///   - id: the client's number for it. An existing target with this number is removed.
  ///   - start: what the client knows of its result.
  /// - Throws: `.invalidArgument` when the query is wrong.
  package func add(
    _ id: Int32, _ target: ListenedTarget, from start: ListeningStart = .nothing
  ) throws(DatabaseError) {
    additions += 1
    targets[id] = try SessionTarget(target, in: database, from: start, number: additions)
    unacknowledged.append((id, true))
    subscribe()
    inbox.nudge()
  }

  /// Removes a target. The next step acknowledges this, even when there was none.
  package func remove(_ id: Int32) {
    unacknowledged.append((id, false))
    if targets.removeValue(forKey: id) != nil { subscribe() }
    inbox.nudge()
  }

  /// Removes a target that has ended. No step acknowledges this.
  package func end(_ id: Int32) {
    if targets.removeValue(forKey: id) != nil { subscribe() }
  }

  /// Asks for a step even if nothing changes. It shows the newest commit.
  package func mark() {
    isMarked = true
    inbox.nudge()
  }

  /// The moment of the last step, once.
  package func takeMoment() -> ReadMoment? {
    defer { lastMoment = nil }
    return lastMoment
  }

  /// The documents that a target shows as of the last step.
  package func documents(of id: Int32) -> [DocumentSnapshot] { targets[id]?.documents ?? [] }

  /// What was added and removed since the last step.
  private func takeAcknowledged() -> [(target: Int32, isAdded: Bool)] {
    defer { unacknowledged = [] }
    return unacknowledged
  }

  private func subscribe() {
    var predicates: [ListeningPlace: Set<AccessPredicate>] = [:]
    for target in targets.values {
      for subscription in target.subscriptions {
        predicates[subscription.place, default: []].formUnion(subscription.predicates)
      }
    }
    _ = database.observers.listen(
      by: predicates.map { Subscription(place: $0, predicates: Array($1)) }, for: key)
  }

  // MARK: - Steps

  /// The next step that shows any change; nil when the task is cancelled or the database is closed.
  ///
  /// - Throws: `.unavailable` when commits cannot be followed any more.
  /// - Complexity: for each commit O(log n) in the results it concerns; the cost of the queries
  ///   when they are evaluated.
  package func next() async throws(DatabaseError) -> ListenStep? {
    while try await inbox.wait(isBusy: hasStale) {
      let isMark = isMarked
      isMarked = false
      var step = try await takeStep(atMoment: isMark || readsMoments)
      step.isMark = isMark
      if isMark || !step.isEmpty { return step }
    }
    return nil
  }

  /// Applies the pending commits; the step is empty when they change nothing for any target.
  func takeStep(atMoment: Bool = false) async throws(DatabaseError) -> ListenStep {
    if inbox.takeLoss() { for id in targets.keys { targets[id]?.isStale = true } }
    if !atMoment, !hasStale {
      let entries = inbox.takeEntries()
      apply(entries)
      if !hasStale { return step(after: entries) }
    }
    return try await evaluate()
  }

  private var hasStale: Bool { targets.values.contains(where: \.isStale) }

  private func apply(_ entries: [SessionInbox.Entry]) {
    for entry in entries {
      for id in targets.keys { targets[id]?.apply(entry, in: database) }
    }
  }

  /// The changes of the commits that were applied.
  private func step(after entries: [SessionInbox.Entry]) -> ListenStep {
    var step = ListenStep(newest)
    step.acknowledged = takeAcknowledged()
    guard
      let point = entries.last?.changes.map(\.stamps.point).max(by: { $0.sequence < $1.sequence })
    else { return step }
    newest = (ChangeToken(identity: database.engine.identity, point: point), point.time)
    (step.token, step.time) = (newest.token, Timestamp(unchecked: newest.time))
    var isThere: [DocumentPath: Bool] = [:]
    for entry in entries {
      for change in entry.changes { isThere[change.path] = change.after != nil }
    }
    var collector = ChangeCollector()
    for id in targets.keys { targets[id]?.show(to: &collector, as: id) }
    step.changes = collector.changes { isThere[$0] ?? true }
    return step
  }

  /// Evaluates stale targets, and applies missing commits to the others, up to one commit.
  private func evaluate() async throws(DatabaseError) -> ListenStep {
    for (id, target) in targets where target.isStale {
      guard let resumption = target.resumption else { continue }
      let result = await resumption.find()
      if targets[id]?.number == target.number { targets[id]?.resume(with: result) }
    }
    // A target that is added from here on waits for the next step. What a client has seen of one
    // that came back is not known yet, and commits between this moment and its subscription would
    // reach it neither as changes nor by its evaluation.
    let known = Set(targets.values.filter { $0.resumption == nil }.map(\.number))
    let moment = try database.readMoment()
    await database.engine.finishAnnouncing(through: moment.point.sequence)
    apply(inbox.takeEntries(through: moment.version))
    var failed: [Int32: DatabaseError] = [:]
    for (id, target) in targets where target.isStale && known.contains(target.number) {
      let result = await target.evaluation(at: moment)
      guard targets[id]?.number == target.number else { continue }
      switch result {
      case .success(let result): targets[id]?.set(result, at: moment.version)
      case .failure(let error): failed[id] = error
      }
    }
    return try await step(at: moment, failed)
  }

  private func step(
    at moment: ReadMoment, _ failed: [Int32: DatabaseError]
  ) async throws(DatabaseError) -> ListenStep {
    newest = (moment.token, moment.time.microsecondsSince1970)
    var step = ListenStep(newest)
    if readsMoments { lastMoment = moment }
    step.acknowledged = takeAcknowledged()
    for (id, error) in failed where targets.removeValue(forKey: id) != nil {
      step.failed.append((id, error))
    }
    if !step.failed.isEmpty { subscribe() }
    var collector = ChangeCollector()
    for (id, target) in targets where target.version != nil {
      if !target.isComplete { step.completed.append(id) }
      targets[id]?.show(to: &collector, as: id)
      switch targets[id]?.takeResumed() {
      case .lost?: step.reset.append(id)
      case .found(let seen)?: step.counts[id] = (seen.result.count, targets[id]?.count ?? 0)
      case nil: break
      }
    }
    let left = collector.leftPaths
    let present = left.isEmpty ? [] : try await moment.documents(at: left)
    let there = Set(present.filter(\.exists).map(\.reference))
    step.changes = collector.changes { path in
      there.contains(DocumentReference(database: moment.database, place: .success(path)))
    }
    return step
  }
}
