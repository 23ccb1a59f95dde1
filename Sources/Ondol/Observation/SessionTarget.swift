// One target of a listening session: its result, the part of it that was shown, and how it applies
// commits.

internal import OndolEngine

// A session's task waits for most of its life, and keeps the memory of the calls that evaluated its
// targets. Plans and results are large, so a target holds them indirectly.

/// A target's result.
indirect enum TargetResult: Sendable {
  case query(ResultView)
  case documents([DocumentPath: DocumentSnapshot])
}

/// What is known of the result that a client has seen before.
indirect enum ResumedTarget: Sendable {
  case found(ResultView)
  /// The changes since are unknown.
  case lost
}

/// Determines what a client has seen.
struct Resumption: Sendable {
  let plan: LiveQueryPlan
  /// Nil when it is unknown.
  let token: ChangeToken?

  func find() async -> ResumedTarget {
    guard let token else { return .lost }
    do throws(DatabaseError) {
      return .found(try await plan.result(asOf: token).0)
    } catch {
      return .lost
    }
  }
}

/// A query or some documents that a session listens to.
struct SessionTarget: Sendable {
  private indirect enum Kind: Sendable {
    case query(LiveQueryPlan)
    case documents(Set<DocumentPath>)
  }

  private let kind: Kind
  private let start: ListeningStart
  /// Distinguishes it from others that have had its number.
  let number: Int
  private var result: TargetResult?
  /// What the client has received.
  private var shown: TargetResult?
  /// What was found out of a target that came back, until the client is told.
  private var resumed: ResumedTarget?
  private var isResumed = false
  /// The newest commit in the result; nil as long as there is none.
  private(set) var version: Version?
  /// Whether the result must be evaluated.
  var isStale = true
  /// Whether the client has received a complete result.
  private(set) var isComplete = false

  /// Throws the error of a wrong query.
  init(
    _ target: ListenedTarget, in database: Database, from start: ListeningStart, number: Int
  ) throws(DatabaseError) {
    kind =
      switch target {
      case .query(let query): .query(try LiveQueryPlan(try query.shape.get(), in: database))
      case .documents(let paths): .documents(Set(paths))
      }
    self.start = start
    self.number = number
  }

  var subscriptions: [Subscription] {
    switch kind {
    case .query(let plan): plan.subscriptions
    case .documents(let paths):
      paths.map { Subscription(place: .document($0), predicates: [.every]) }
    }
  }

  /// The number of documents in the result.
  var count: Int {
    switch result {
    case .query(let view): view.result.count
    case .documents(let documents): documents.values.count(where: \.exists)
    case nil: 0
    }
  }

  /// The documents of the result.
  var documents: [DocumentSnapshot] {
    switch result {
    case .query(let view): view.result.documents
    case .documents(let documents): documents.values.filter(\.exists)
    case nil: []
    }
  }

  // MARK: - Evaluating

  /// What to find out before the first evaluation of a target that came back; nil when that is
  /// done.
  var resumption: Resumption? {
    guard case .query(let plan) = kind, !isResumed else { return nil }
    return switch start {
    case .nothing: nil
    case .result(let token): Resumption(plan: plan, token: token)
    case .something: Resumption(plan: plan, token: nil)
    }
  }

  /// Records what the client has seen.
  mutating func resume(with seen: ResumedTarget) {
    if case .found(let view) = seen { shown = .query(view) }
    resumed = seen
    isResumed = true
  }

  /// What was found out of what the client has seen, for the step that completes the target.
  mutating func takeResumed() -> ResumedTarget? {
    defer { resumed = nil }
    return resumed
  }

  func evaluation(at moment: ReadMoment) async -> Result<TargetResult, DatabaseError> {
    do throws(DatabaseError) {
      switch kind {
      case .query(let plan):
        let evaluation = try await plan.evaluateResult(moment.dated) {
          (view, _) throws(DatabaseError) in view
        }
        return .success(.query(evaluation.view))
      case .documents(let paths):
        let paths = paths.sorted()
        let documents = try await moment.documents(at: paths)
        return .success(
          .documents(Dictionary(zip(paths, documents), uniquingKeysWith: { $1 })))
      }
    } catch {
      return .failure(error)
    }
  }

  mutating func set(_ result: TargetResult, at version: Version) {
    self.result = result
    self.version = version
    isStale = false
  }

  // MARK: - Commits

  /// Applies a commit, unless the result has it already.
  mutating func apply(_ entry: SessionInbox.Entry, in database: Database) {
    guard !isStale, let version, entry.version > version else { return }
    self.version = entry.version
    switch (kind, result) {
    case (.query(let plan), .query(var view)?):
      let changes = entry.changes.filter { plan.shape.contains($0.path) }
      guard !changes.isEmpty else { return }
      result = nil
      _ = view.apply(changes)
      isStale = view.isStale
      result = .query(view)
    case (.documents(let paths), .documents(var documents)?):
      result = nil
      for change in entry.changes where paths.contains(change.path) {
        let fields = change.after.flatMap { database.isOver($0, at: change.path) ? nil : $0 }
        documents[change.path] = change.snapshot(in: database, fields)
      }
      result = .documents(documents)
    default: isStale = true
    }
  }

  // MARK: - Showing

  /// Adds what the client has not received yet, and records it as received.
  mutating func show(to collector: inout ChangeCollector, as id: Int32) {
    switch (kind, result) {
    case (.query(let plan), .query(let view)?):
      var before = RankedTree(plan.query.orders, sorted: [])
      if case .query(let view)? = shown { before = view.result }
      let changes = DocumentChanges(from: before, to: view.result, plan)
      for document in changes.shown { collector.show(document, to: id) }
      for document in changes.left { collector.leave(document, from: id) }
    case (.documents, .documents(let documents)?):
      var before: [DocumentPath: DocumentSnapshot] = [:]
      if case .documents(let documents)? = shown { before = documents }
      for (path, document) in documents.sorted(by: { $0.key < $1.key }) {
        if let seen = before[path], seen.showsSame(as: document) { continue }
        if document.exists {
          collector.show(document, to: id)
        } else {
          collector.leave(document, from: id)
        }
      }
    default: return
    }
    shown = result
    isComplete = true
  }
}

/// The changes of all targets, grouped by document.
struct ChangeCollector {
  private var changes: [ListenStep.Change] = []
  private var places: [DocumentReference: Int] = [:]

  /// Records that a target shows a document.
  mutating func show(_ document: DocumentSnapshot, to id: Int32) {
    if let place = places[document.reference] {
      let other = changes[place]
      if other.targets.isEmpty || other.document.showsSame(as: document, comparesFields: true) {
        changes[place].document = document
        changes[place].targets.append(id)
        return
      }
    }
    // Targets may show different fields of one document.
    places[document.reference] = changes.count
    changes.append(ListenStep.Change(document: document, exists: true, targets: [id]))
  }

  /// Records that a target no longer shows a document.
  mutating func leave(_ document: DocumentSnapshot, from id: Int32) {
    if let place = places[document.reference] {
      changes[place].left.append(id)
      return
    }
    places[document.reference] = changes.count
    changes.append(ListenStep.Change(document: document, exists: false, left: [id]))
  }

  /// Documents that no target shows any more.
  var leftPaths: [DocumentPath] {
    changes.filter(\.targets.isEmpty).compactMap { try? $0.document.reference.place.get() }
  }

  /// The changes.
  ///
  /// - Parameter exists: whether a document that no target shows any more still exists.
  func changes(where exists: (DocumentPath) -> Bool) -> [ListenStep.Change] {
    changes.map { change in
      var change = change
      if change.targets.isEmpty, let path = try? change.document.reference.place.get() {
        change.exists = exists(path)
      }
      return change
    }
  }
}
