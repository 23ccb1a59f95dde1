// One history of commits with live pipelines beside it: what a listener receives is what the
// pipeline gives when it is executed. In half of the histories listeners are asked after some of
// the commits, and must have the answer of that moment. In the others they follow in tasks of their
// own, in an order of steps that the seed decides. Each of their answers must be that of a commit,
// never of an older one than before, and finally that of the last one.
//
// Between the commits, the history puts blobs, drops and renames collections, lets documents
// expire, and writes in transactions. The listeners may be in another open of the same store.

package import Ondol
internal import OndolEngine

/// The counts of a trial.
package struct LivePipelineCounts: Sendable {
  package var histories = 0
  package var commits = 0
  /// Answers that listeners received.
  package var answers = 0
  /// Pipelines that follow changes, and others.
  package var following = 0
  package var repeating = 0

  package init() {}

  package static func += (left: inout LivePipelineCounts, right: LivePipelineCounts) {
    left.histories += right.histories
    left.commits += right.commits
    left.answers += right.answers
    left.following += right.following
    left.repeating += right.repeating
  }
}

/// Why a trial failed.
package struct LivePipelineFault: Error, CustomStringConvertible {
  package let description: String
}

package enum LivePipelineTrial {
  /// Where the listeners are.
  package enum Place: Sendable, CaseIterable {
    case inWriter
    case inEncryptedWriter
    /// In another open of a store, as in another process.
    case besideWriter
  }

  fileprivate static let listenerCount = 6
  private static let commitCount = 30

  /// Runs the history of `seed`. Throws `LivePipelineFault` when a listener received anything
  /// wrong.
  package static func run(seed: UInt64, _ place: Place) throws -> LivePipelineCounts {
    try SimulationExecutor.run(seed: seed) { executor in
      let world = SimulatedWorld(seed: seed, threads: executor)
      defer { withExtendedLifetime(world) {} }
      let clock = StandingClock()
      var options = Database.Options()
      guard place == .besideWriter else {
        // Some groups do not fit. On a store, an execution would have no place for them.
        if seed.isMultiple(of: 5) { options.pipelineMemory = 2_000 }
        if place == .inEncryptedWriter { options.encryption = .key(TestedEncryption.key) }
        let database = try await Database.open(
          at: "/db", options: options, environment: world.environment.going(by: clock))
        return try await run(seed: seed, writer: database, observed: database, clock)
      }
      let store = SimulatedStore(seed: seed, environment: world.environment)
      var opens: [Database] = []
      for _ in 0..<2 {
        opens.append(
          try await Database.open(
            at: store.name, options: options, environment: world.environment, on: store))
      }
      return try await run(seed: seed, writer: opens[0], observed: opens[1], nil)
    }
  }

  /// Runs the history of `seed` on databases without data, which it closes.
  ///
  /// - Parameters:
  ///   - writer: the database that is written.
  ///   - observed: the database that is listened to, which may be the same.
  ///   - clock: the writer's clock, if it can be turned.
  package static func run(
    seed: UInt64, writer: Database, observed: Database, _ clock: StandingClock?
  ) async throws -> LivePipelineCounts {
    var history = PipelineHistory(seed: seed, writer, seed.isMultiple(of: 4) ? clock : nil)
    try await history.begin()
    var draw = LivePipelineDraw(seed: seed, observed)
    if writer !== observed { try await observed.refresh() }
    var counts = LivePipelineCounts()
    var pipelines: [DrawnPipeline] = []
    for _ in 0..<listenerCount {
      let drawn = draw.pipeline()
      pipelines.append(drawn)
      if drawn.pipeline.followsChanges { counts.following += 1 } else { counts.repeating += 1 }
    }
    counts.histories = 1
    counts.commits = commitCount
    if seed.isMultiple(of: 2) {
      try await ask(pipelines, &history, observed, &counts)
    } else {
      try await follow(pipelines, &history, observed, &counts)
    }
    if writer !== observed { try await observed.close() }
    try await writer.close()
    return counts
  }

  /// Asks listeners after some of the commits.
  private static func ask(
    _ pipelines: [DrawnPipeline], _ history: inout PipelineHistory, _ observed: Database,
    _ counts: inout LivePipelineCounts
  ) async throws {
    var listeners = pipelines.map { $0.pipeline.snapshots.makeAsyncIterator() }
    var answers: [LiveAnswer?] = pipelines.map { _ in nil }
    for number in 0...commitCount {
      if number > 0 { try await history.goOn() }
      if history.database !== observed { try await observed.refresh() }
      for place in pipelines.indices where number == 0 || history.random.chance(2, in: 3) {
        let drawn = pipelines[place]
        let fresh = await drawn.answer()
        if case .failure? = answers[place] { continue }
        do {
          if let snapshot = try await listeners[place].poll() {
            answers[place] = drawn.answer(snapshot)
            counts.answers += 1
          }
        } catch {
          answers[place] = .failure(error.code)
        }
        guard answers[place] == fresh else {
          throw LivePipelineFault(
            description: "\(drawn): after commit \(number) the listener has"
              + " \(String(describing: answers[place])) instead of \(fresh)")
        }
      }
    }
  }

  /// Lets listeners follow in tasks of their own.
  private static func follow(
    _ pipelines: [DrawnPipeline], _ history: inout PipelineHistory, _ observed: Database,
    _ counts: inout LivePipelineCounts
  ) async throws {
    let records = pipelines.map { AnswerRecord($0) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for record in records { group.addTask { await record.listen() } }
      var fresh: [[LiveAnswer]] = []
      for drawn in pipelines { fresh.append([await drawn.answer()]) }
      for _ in 0..<commitCount {
        for _ in 0..<history.random.below(8) { await Task.yield() }
        try await history.goOn()
        if history.database !== observed { try await observed.refresh() }
        for (place, drawn) in pipelines.enumerated() { fresh[place].append(await drawn.answer()) }
      }
      for _ in 0..<20_000
      where !zip(records, fresh).allSatisfy({ $0.isOver || $0.last == $1.last }) {
        await Task.yield()
      }
      if history.database !== observed { try await observed.close() }
      try await history.database.close()
      try await group.waitForAll()
      for (record, fresh) in zip(records, fresh) { counts.answers += try record.check(fresh) }
    }
  }
}

/// The rows of an answer in a form that can be compared, or why there are none.
enum LiveAnswer: Sendable, Equatable {
  case rows([Row])
  case failure(DatabaseError.Code)
  /// A snapshot that counts other rows than it has.
  case miscounted(Int, rows: Int)

  struct Row: Sendable, Equatable {
    var path: String?
    var fields: [String: Value]
    var times: [Timestamp?]
  }
}

/// A pipeline, and whether its stages determine the order of its rows.
struct DrawnPipeline: Sendable, CustomStringConvertible {
  let pipeline: Pipeline
  let isOrdered: Bool
  let description: String

  func answer() async -> LiveAnswer {
    do throws(DatabaseError) {
      return answer(try await pipeline.execute())
    } catch {
      return .failure(error.code)
    }
  }

  func answer(_ snapshot: PipelineSnapshot) -> LiveAnswer {
    let results = snapshot.results
    guard snapshot.count == results.count else {
      return .miscounted(snapshot.count, rows: results.count)
    }
    return answer(results)
  }

  private func answer(_ results: [PipelineResult]) -> LiveAnswer {
    let rows = results.map { result in
      LiveAnswer.Row(
        path: result.reference?.path, fields: result.data(),
        times: [result.createTime, result.updateTime])
    }
    guard !isOrdered else { return .rows(rows) }
    // Equal rows must come to lie at equal places, however their numbers are written.
    return .rows(
      rows.sorted { left, right in
        let (left, right) = (Value.map(left.fields), Value.map(right.fields))
        return ValueComparison.isLess(left, right)
      })
  }
}

/// The order of values, as the naive evaluator has it.
private enum ValueComparison {
  private static let evaluator = NaiveEvaluator(documents: [])

  static func isLess(_ left: Value, _ right: Value) -> Bool { evaluator.order(left, right) < 0 }
}

/// The answers of one listener.
private final class AnswerRecord: Sendable {
  private let drawn: DrawnPipeline
  private let state = Guarded<(answers: [LiveAnswer], isOver: Bool)>(([], false))

  init(_ drawn: DrawnPipeline) {
    self.drawn = drawn
  }

  var last: LiveAnswer? { state.withLock { $0.answers.last } }
  var isOver: Bool { state.withLock { $0.isOver } }

  func listen() async {
    do throws(DatabaseError) {
      for try await snapshot in drawn.pipeline.snapshots {
        let answer = drawn.answer(snapshot)
        state.withLock { $0.answers.append(answer) }
      }
    } catch {
      state.withLock { $0.answers.append(.failure(error.code)) }
    }
    state.withLock { $0.isOver = true }
  }

  /// Throws unless the answers are some of `fresh`, in order, and end with the last one, or with
  /// the failure that ended them. Returns their number.
  func check(_ fresh: [LiveAnswer]) throws -> Int {
    let answers = state.withLock { $0.answers }
    var place = 0
    for (number, answer) in answers.enumerated() {
      guard let found = fresh[place...].firstIndex(of: answer) else {
        throw LivePipelineFault(
          description: "\(drawn): answer \(number) is none from commit \(place) on: \(answer);"
            + " these are \(fresh[place...])")
      }
      place = found
    }
    if case .failure? = answers.last { return answers.count }
    guard answers.last == fresh.last else {
      throw LivePipelineFault(
        description: "\(drawn): the last answer is \(String(describing: answers.last)) instead of"
          + " \(String(describing: fresh.last))")
    }
    return answers.count
  }
}

// MARK: - Commits

/// Makes the commits of a history.
private struct PipelineHistory {
  let database: Database
  var random: SeededRandom
  private let clock: StandingClock?
  /// The renamings so far, and where the collection `d` is now.
  private var renamings: [(from: String, to: String)] = []
  private var place = "d"
  private var blobs = 0

  init(seed: UInt64, _ database: Database, _ clock: StandingClock?) {
    random = SeededRandom(seed: seed)
    self.database = database
    self.clock = clock
  }

  /// The state before listeners come.
  mutating func begin() async throws {
    if clock != nil { try await database.collection("c").setTimeToLive(field: "end") }
    if random.chance(1, in: 3) {
      try await database.collection("c").createIndex(on: [random.pick(["a", "-a", "g", "b"])])
    }
    // Only a collection that exists can be renamed.
    try await database.document("d/x").setData(["a": 1])
    for _ in 0..<random.below(30) { try await write() }
  }

  mutating func goOn() async throws {
    switch random.below(24) {
    case 0:
      try await database.collection("c").drop(includingDeclarations: false)
    case 1:
      renamings.append((place, place == "d" ? "e" : "d"))
      place = renamings[renamings.count - 1].to
      var migrator = Migrator()
      for (number, renaming) in renamings.enumerated() {
        migrator.register("step \(number)") {
          $0.renameCollection(renaming.from, to: renaming.to)
        }
      }
      _ = try await migrator.migrate(database)
    case 2:
      blobs += 1
      try await database.storage.reference(withPath: "photos/\(blobs)").putData([
        1, 2, UInt8(blobs),
      ])
    case 3:
      try await database.tree.child("n").setValue(random.below(9))
    case 4:
      guard let clock else { return try await write() }
      clock.turn(bySeconds: random.below(3))
      try await database.removeEnded()
    default: try await write()
    }
  }

  private mutating func path() -> String {
    let collection = random.pick(["c", "c", "c", "c", place, "c/x/c"])
    return "\(collection)/d\(random.below(16))"
  }

  private mutating func value() -> any FieldContent {
    switch random.below(12) {
    case 0: Value.null
    case 1: 0.5
    case 2: 1.0
    case 3: Double.nan
    case 4: random.pick(["", "p", "q"])
    default: random.below(5) - 1
    }
  }

  private mutating func fields() -> [String: any FieldContent] {
    var fields: [String: any FieldContent] = [:]
    if random.chance(7, in: 8) {
      fields["g"] = random.pick(["x", "y", "z", 1, 1.0, Value.null] as [any FieldContent])
    }
    if random.chance(7, in: 8) { fields["a"] = value() }
    if random.chance(7, in: 8) { fields["b"] = random.below(4) }
    if random.chance(1, in: 2) { fields["t"] = (0..<random.below(3)).map { _ in random.below(3) } }
    if random.chance(1, in: 3) { fields["r"] = database.document("c/d\(random.below(4))") }
    if let clock, random.chance(1, in: 4) { fields["end"] = clock.moment(in: random.below(8) - 1) }
    return fields
  }

  private mutating func write() async throws {
    switch random.below(9) {
    case 0: try await database.document(path()).delete()
    case 1...4: try await database.document(path()).setData(fields())
    case 5: try await database.document(path()).setData(["a": value()], merge: true)
    case 6:
      let (path, other, fields, number) = (path(), path(), fields(), random.below(5))
      try await database.runTransaction { [database] transaction in
        let found = try transaction.getDocument(database.document(path))
        try transaction.setData(fields, forDocument: database.document(other))
        if found.exists {
          try transaction.updateData(["b": number], forDocument: database.document(path))
        }
      }
    default:
      let batch = database.batch()
      for _ in 0...random.below(6) {
        let document = database.document(path())
        if random.chance(1, in: 4) {
          batch.deleteDocument(document)
        } else {
          try batch.setData(fields(), forDocument: document)
        }
      }
      try await batch.commit()
    }
  }
}
