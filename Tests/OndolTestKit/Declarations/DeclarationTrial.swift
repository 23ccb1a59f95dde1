// One history of a database whose declarations of collections change all the time: schemas whose
// upgrades change the results of queries, and some of which fail; expiry, by a clock that the trial
// moves; unique values; drops, with and without the declarations; opens. After each step the trial
// compares every form of answer with the model: documents by their ids, queries, selections,
// counts, sums, groups, streams, a transaction's reads after its own writes, earlier snapshots, and
// the results of listeners.

internal import Ondol
internal import OndolEngine

/// The counts of a trial.
package struct DeclarationCounts: Sendable {
  package var answers = 0
  package var unreadable = 0
  package var pastAnswers = 0
  package var schemas = 0
  package var drops = 0

  package init() {}

  package static func += (left: inout DeclarationCounts, right: DeclarationCounts) {
    left.answers += right.answers
    left.unreadable += right.unreadable
    left.pastAnswers += right.pastAnswers
    left.schemas += right.schemas
    left.drops += right.drops
  }
}

package enum DeclarationTrial {
  private static let stepCount = 40

  /// Runs the history of `seed`. Throws `BrokenInvariant` if an answer differs from the model's.
  package static func run(seed: UInt64) throws -> DeclarationCounts {
    try SimulationExecutor.run(seed: seed) { executor in
      let world = SimulatedWorld(seed: seed, threads: executor)
      defer { withExtendedLifetime(world) {} }
      let clock = StandingClock()
      var history = try await DeclarationHistory(
        seed: seed, clock, world.environment.going(by: clock), executor)
      for _ in 0..<stepCount {
        do {
          try await history.goOn()
        } catch {
          throw BrokenInvariant("\(error); behind \(history.steps)")
        }
      }
      try await history.end()
      return history.counts
    }
  }
}

/// A database and its model.
private struct DeclarationHistory {
  let clock: StandingClock
  let environment: Environment
  let executor: SimulationExecutor
  var database: Database
  var model: DeclarationModel
  var draw: DeclarationDraw
  var counts = DeclarationCounts()
  /// Earlier snapshots, with the model of their moment.
  var past: [(snapshot: DatabaseSnapshot, model: DeclarationModel)] = []
  var listeners: [DeclarationListener] = []
  /// The steps, for finding the cause of a failure.
  var steps: [String] = []

  init(
    seed: UInt64, _ clock: StandingClock, _ environment: Environment,
    _ executor: SimulationExecutor
  ) async throws {
    self.clock = clock
    self.environment = environment
    self.executor = executor
    draw = DeclarationDraw(random: SeededRandom(seed: seed))
    model = DeclarationModel(now: clock.now)
    database = try await Self.open(environment)
    listen()
  }

  private static func open(_ environment: Environment) async throws -> Database {
    try await Database.open(
      at: "/db", options: .init(shardCount: 2), environment: environment)
  }

  private mutating func listen() {
    listeners = (0..<3).map { _ in DeclarationListener(draw.query(), database, executor) }
  }

  mutating func end() async throws {
    for listener in listeners { listener.stop() }
    past = []
    try await database.close()
    for listener in listeners { await listener.waitUntilOver() }
  }

  // MARK: - Steps

  mutating func goOn() async throws {
    switch draw.random.below(30) {
    case 0, 1, 2: try await declareSchema()
    case 3, 4:
      steps.append("time passes")
      clock.turn(bySeconds: 1 + draw.random.below(3))
      model.now = clock.now
      // Listeners receive an expiry when the document is removed.
      try await database.removeEnded()
    case 5: try await drop(includingDeclarations: false)
    case 6: try await drop(includingDeclarations: true)
    case 7, 8: try await declareEnds()
    case 9: try await declareUnique()
    case 10:
      let collection = database.collection(draw.random.pick(DeclaredCollection.all).path)
      try await collection.createIndex(on: [draw.random.pick(["a", "-b", "end", "step1"])])
    case 11: try await reopen()
    case 12: past.append((database.snapshot(), model))
    case 13: for _ in 0..<200 { await Task.yield() }
    default: try await write()
    }
    if past.count > 3 { past.removeFirst() }
    try await compare()
  }

  private mutating func declareSchema() async throws {
    let collection = draw.random.pick(DeclaredCollection.all)
    let version = (model.versions[collection.pattern] ?? 0) + 1 + draw.random.below(2)
    model.versions[collection.pattern] = version
    counts.schemas += 1
    steps.append("schema \(version) of \(collection.pattern)")
    try await TrialSchema.declare(version, of: database.collection(collection.path))
  }

  private mutating func declareEnds() async throws {
    let collection = draw.random.pick(DeclaredCollection.all)
    let isEnding = draw.random.chance(2, in: 3)
    steps.append("\(collection.pattern) is \(isEnding ? "" : "not ")ending")
    // A document that has expired does not come back when the rule goes.
    try await database.removeEnded()
    model.forgetEnded()
    try await database.collection(collection.path).setTimeToLive(field: isEnding ? "end" : nil)
    if isEnding {
      model.ending.insert(collection.pattern)
      try await database.removeEnded()
    } else {
      model.ending.remove(collection.pattern)
    }
  }

  private mutating func declareUnique() async throws {
    let collection = draw.random.pick(DeclaredCollection.all)
    steps.append("unique in \(collection.pattern)")
    let mustFail = model.hasDuplicates(in: collection.pattern)
    do {
      try await database.collection(collection.path).createIndex(on: ["u"], unique: true)
      model.unique.insert(collection.pattern)
      guard !mustFail else { throw BrokenInvariant("\(collection.path) has duplicates in u") }
    } catch let error as DatabaseError {
      guard error.code == .alreadyExists, mustFail else { throw error }
    }
  }

  private mutating func drop(includingDeclarations: Bool) async throws {
    counts.drops += 1
    steps.append("drop, declarations too: \(includingDeclarations)")
    try await database.collection("c").drop(includingDeclarations: includingDeclarations)
    model.documents = [:]
    if includingDeclarations {
      model.ending = []
      model.unique = []
    }
  }

  private mutating func reopen() async throws {
    steps.append("open again")
    try await end()
    database = try await Self.open(environment)
    for collection in Set(DeclaredCollection.all.map(\.pattern)).sorted() {
      guard let version = model.versions[collection] else { continue }
      let path = collection == "c" ? "c" : "c/x/c"
      try await TrialSchema.declare(version, of: database.collection(path))
    }
    listen()
  }

  private mutating func write() async throws {
    let path = draw.path()
    let document = database.document(path)
    let fields = draw.fields(clock)
    let contents = fields.mapValues { $0 as (any FieldContent)? }
    let sight = model.sight(of: path)
    var isRefused: DatabaseError.Code?
    let after: [String: Value]?
    let kind = draw.random.below(5)
    switch (kind, sight) {
    case (0, _): after = nil
    case (1, .there(let before)): after = before.merging(fields) { $1 }
    case (1, .absent): after = fields
    case (1, .unreadable):
      (after, isRefused) = (nil, .failedPrecondition)
    default: after = fields
    }
    if let after, model.holder(of: after, for: path) != nil { isRefused = .alreadyExists }
    steps.append(
      "write \(kind) of \(path): \(after.map { Value.map($0).description } ?? "nothing")")
    do {
      switch kind {
      case 0: try await document.delete(durability: .memory)
      case 1: try await document.setData(contents, merge: true, durability: .memory)
      default: try await document.setData(contents, durability: .memory)
      }
      guard isRefused == nil else {
        throw BrokenInvariant("a write to \(path) was to be refused with \(isRefused as Any)")
      }
      if let after { model.put(after, at: path) } else { model.documents[path] = nil }
    } catch let error as DatabaseError {
      guard error.code == isRefused else { throw error }
    }
  }
}

// MARK: - Comparing

extension DeclarationHistory {
  private mutating func compare() async throws {
    let snapshot = database.snapshot()
    try compareDocuments(snapshot, model)
    let evaluator = NaiveEvaluator(documents: model.readable)
    for _ in 0..<2 { try await compare(draw.query(), evaluator) }
    for (snapshot, model) in past {
      try compareDocuments(snapshot, model)
      let query = draw.query()
      let found = try snapshot.getDocuments(query.build(in: database))
      let expected = NaiveEvaluator(documents: model.readable).paths(query)
      try expect(found.documents.map(\.reference.path), expected, "an earlier snapshot", query)
      try compareUnreadable(found.unreadable, query, model, isWhole: isWhole(query))
      counts.pastAnswers += 1
    }
    for listener in listeners { try await compare(listener, evaluator) }
  }

  private func compareDocuments(_ snapshot: DatabaseSnapshot, _ model: DeclarationModel) throws {
    for collection in DeclaredCollection.all {
      for id in DeclaredCollection.ids {
        let path = "\(collection.path)/\(id)"
        var found: [String: Value]?
        var isUnreadable = false
        do {
          let document = try snapshot.getDocument(database.document(path))
          found = document.exists ? document.data() : nil
        } catch {
          guard error.code == .failedPrecondition else { throw error }
          isUnreadable = true
        }
        switch model.sight(of: path) {
        case .absent where found == nil && !isUnreadable: break
        case .there(let fields) where found == fields: break
        case .unreadable where isUnreadable: break
        case let sight:
          throw BrokenInvariant(
            "\(path) is \(found as Any), unreadable \(isUnreadable), and not \(sight)")
        }
      }
    }
  }

  private func isWhole(_ query: ModelQuery) -> Bool {
    query.filters.isEmpty && query.limit == nil
  }

  private func expect<Answer: Equatable>(
    _ found: Answer, _ expected: Answer, _ form: String, _ query: ModelQuery
  ) throws {
    guard found != expected else { return }
    throw BrokenInvariant("\(form) of \(query): \(found) and not \(expected)")
  }

  /// The error names a document that cannot be upgraded, if the query may have met it.
  private func compareUnreadable(
    _ found: [DocumentReference], _ query: ModelQuery, _ model: DeclarationModel, isWhole: Bool
  ) throws {
    let collection = query.collection?.joined(separator: "/")
    let expected = model.unreadable.filter { path in
      collection.map { path.split(separator: "/").dropLast().joined(separator: "/") == $0 } ?? true
    }
    let found = found.map(\.path)
    guard isWhole ? found.sorted() == expected : Set(found).isSubset(of: expected) else {
      throw BrokenInvariant("unreadable of \(query): \(found) and not \(expected)")
    }
  }

  /// Runs a query in every way.
  private mutating func compare(_ model: ModelQuery, _ evaluator: NaiveEvaluator) async throws {
    let expected = evaluator.paths(model)
    let documents = expected.compactMap { path in
      evaluator.documents.first { $0.path.joined(separator: "/") == path }
    }
    let query = model.build(in: database)
    let found = try await query.getDocuments()
    try expect(found.documents.map(\.reference.path), expected, "documents", model)
    try expect(found.documents.map { $0.data() }, documents.map(\.fields), "contents", model)
    try compareUnreadable(found.unreadable, model, self.model, isWhole: isWhole(model))
    counts.answers += 1
    counts.unreadable += found.unreadable.count

    let ids = try await query.select([]).getDocuments()
    try expect(ids.documents.map(\.reference.path), expected, "ids", model)
    let selected = try await query.select(["a"]).getDocuments()
    try expect(
      selected.documents.map { $0.data() },
      documents.map { document in document.fields["a"].map { ["a": $0] } ?? [:] }, "fields", model)
    try await compareNumbers(query, model, documents)
    var streamed: [String] = []
    for try await document in query.documents { streamed.append(document.reference.path) }
    try expect(streamed, expected, "stream", model)
    try await compareInTransaction(query, model)
  }

  private func compareNumbers(
    _ query: Query, _ model: ModelQuery, _ documents: [ModelDocument]
  ) async throws {
    try expect(try await query.count.getAggregation().count, documents.count, "count", model)
    let fields: [AggregateField] = [.count(), .sum("a"), .minimum("a"), .maximum("a")]
    let numbers = try await query.aggregate(fields).getAggregation()
    let values = documents.compactMap { $0.fields["a"]?.integer }
    try expect(
      [numbers.count, numbers[.sum("a")] as Int?, numbers[.minimum("a")], numbers[.maximum("a")]],
      [
        documents.count, Int(values.reduce(0, +)), values.min().map { Int($0) },
        values.max().map { Int($0) },
      ], "numbers", model)
    let extremes = try await query.aggregate([.minimum("a")]).getAggregation()
    try expect(extremes[.minimum("a")] as Int?, values.min().map { Int($0) }, "least", model)
    let groups = try await query.count.group(by: "b").getAggregation()
    var expected: [String: Int] = [:]
    for document in documents {
      if let text = document.fields["b"]?.string { expected[text, default: 0] += 1 }
    }
    let found = groups.map { ($0["b"] as String? ?? "", $0.aggregation.count) }
    try expect(Dictionary(uniqueKeysWithValues: found), expected, "groups", model)
  }

  private struct Enough: Error {}

  /// Runs it after a write of its own, which is then discarded.
  private mutating func compareInTransaction(_ query: Query, _ model: ModelQuery) async throws {
    let path = draw.path()
    var fields = draw.fields(clock)
    fields["u"] = nil
    var changed = self.model
    changed.put(fields, at: path)
    let expected = NaiveEvaluator(documents: changed.readable).paths(model)
    let contents = fields.mapValues { $0 as (any FieldContent)? }
    do {
      try await database.runTransaction { [database] transaction in
        try transaction.setData(contents, forDocument: database.document(path))
        let found = try transaction.getDocuments(query)
        try expect(found.documents.map(\.reference.path), expected, "in a transaction", model)
        throw Enough()
      }
    } catch is Enough {}
  }

  private func compare(
    _ listener: DeclarationListener, _ evaluator: NaiveEvaluator
  ) async throws {
    let expected = evaluator.paths(listener.model)
    let documents = expected.compactMap { path in
      evaluator.documents.first { $0.path.joined(separator: "/") == path }
    }
    let sum = documents.compactMap { $0.fields["a"]?.integer }.reduce(0, +)
    for _ in 0..<5_000 {
      let shown = listener.shown
      if shown.paths == expected, shown.contents == documents.map(\.fields),
        shown.count == expected.count, shown.sum == sum
      {
        return
      }
      await Task.yield()
    }
    throw BrokenInvariant(
      "a listener to \(listener.model) is shown \(listener.shown), and not \(expected), \(sum)")
  }
}

/// Listens to a query and to its aggregations.
private final class DeclarationListener: Sendable {
  struct Shown: Sendable {
    var paths: [String]?
    var contents: [[String: Value]] = []
    var count: Int?
    var sum: Int64?
    var failure: String?
  }

  let model: ModelQuery
  private let state = Guarded(Shown())
  private let tasks = Guarded<[Task<Void, Never>]>([])

  init(_ model: ModelQuery, _ database: Database, _ executor: SimulationExecutor) {
    self.model = model
    let query = model.build(in: database)
    let list = Task(executorPreference: executor) { [self] in
      do {
        for try await snapshot in query.snapshots {
          state.withLock { shown in
            shown.paths = snapshot.documents.map(\.reference.path)
            shown.contents = snapshot.documents.map { $0.data() }
          }
        }
      } catch {
        state.withLock { $0.failure = "\(error)" }
      }
    }
    let numbers = Task(executorPreference: executor) { [self] in
      do {
        for try await numbers in query.aggregate([.count(), .sum("a")]).snapshots {
          state.withLock { shown in
            shown.count = numbers.count
            shown.sum = numbers[.sum("a")]
          }
        }
      } catch {
        state.withLock { $0.failure = "\(error)" }
      }
    }
    tasks.withLock { $0 = [list, numbers] }
  }

  var shown: Shown { state.withLock { $0 } }

  func stop() {
    for task in tasks.withLock({ $0 }) { task.cancel() }
  }

  func waitUntilOver() async {
    for task in tasks.withLock({ $0 }) { await task.value }
  }
}
