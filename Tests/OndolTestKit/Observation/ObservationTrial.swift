// One history of commits with listeners beside it, in an order of steps that a seed decides. After
// each commit the trial runs every query again on a snapshot. Each snapshot of a listener must be
// such a result, never an older one than before, and finally the last one. Applying the reported
// changes to the previous snapshot must give the new one.
//
// The listeners may be in the database that is written. Then schemas are declared in the meantime,
// some of whose upgrades fail, documents expire by a clock that the trial moves, and collections
// are dropped, with and without their declarations. Or the listeners are in another, read-only open
// of its files. Then the writer also flushes, merges, drops, closes and reopens, with files so
// small that this happens all the time.

internal import Ondol
internal import OndolEngine

/// The counts of a trial.
package struct ObservationCounts: Sendable {
  package var histories = 0
  package var commits = 0
  /// Snapshots that listeners received.
  package var snapshots = 0
  /// Changes that they received, without those of first snapshots.
  package var changes = 0
  /// Snapshots after the first with several changes.
  package var withSeveral = 0
  /// Histories with listeners beside the writer.
  package var beside = 0
  /// Schemas declared, and collections dropped.
  package var schemas = 0
  package var drops = 0

  package init() {}

  package static func += (left: inout ObservationCounts, right: ObservationCounts) {
    left.histories += right.histories
    left.commits += right.commits
    left.snapshots += right.snapshots
    left.changes += right.changes
    left.withSeveral += right.withSeveral
    left.beside += right.beside
    left.schemas += right.schemas
    left.drops += right.drops
  }
}

/// Why a trial failed.
package struct ObservationFault: Error, CustomStringConvertible {
  package var description: String
}

/// A document of a result, as far as comparisons need it.
private typealias Shown = [String]

package enum ObservationTrial {
  private static let listenerCount = 5
  private static let commitCount = 32

  /// The listeners' place.
  package enum Place: Sendable, CaseIterable {
    case inWriter
    case besideWriter
  }

  /// Runs the history of `seed`. Throws `ObservationFault` if a listener received anything wrong.
  package static func run(
    seed: UInt64, _ place: Place = .inWriter
  ) throws -> ObservationCounts {
    try SimulationExecutor.run(seed: seed) { executor in
      let world = SimulatedWorld(seed: seed, threads: executor)
      defer { withExtendedLifetime(world) {} }
      var writer = try await ObservedWriter(seed: seed, place, world.environment)
      return try await run(seed: seed, &writer)
    }
  }

  private static func run(
    seed: UInt64, _ writer: inout ObservedWriter
  ) async throws -> ObservationCounts {
    for _ in 0..<writer.draw.random.below(12) { try await writer.draw.write() }
    let querySeeds = (0..<listenerCount).map { _ in writer.draw.random.next() }
    let observed = try await writer.openObserved()
    let records = querySeeds.map { seed in
      var draw = ObservationDraw(seed: seed, observed)
      return ListenerRecord(draw.query())
    }
    return try await withThrowingTaskGroup(of: Void.self) { group in
      for record in records { group.addTask { try await listen(record) } }
      var results = try querySeeds.map { [try writer.shown($0)] }
      var endings: Set<Int> = []
      for number in 1...commitCount {
        for _ in 0..<writer.draw.random.below(6) { await Task.yield() }
        try await writer.goOn()
        if writer.mayHaveEnded { endings.insert(number) }
        for (index, seed) in querySeeds.enumerated() {
          results[index].append(try writer.shown(seed))
        }
      }
      try await writer.database.synchronize()
      for _ in 0..<20_000 where !zip(records, results).allSatisfy({ $0.last == $1.last }) {
        await Task.yield()
      }
      guard observed.observerCount == listenerCount else {
        throw ObservationFault(description: "\(observed.observerCount) listeners")
      }
      try await observed.close()
      try await writer.database.close()
      try await group.waitForAll()
      guard observed.observerCount == 0 else {
        throw ObservationFault(description: "\(observed.observerCount) listeners are left")
      }
      var counts = ObservationCounts()
      counts.histories = 1
      counts.commits = commitCount
      counts.beside = writer.place == .besideWriter ? 1 : 0
      counts.schemas = writer.schemaCount
      counts.drops = writer.dropCount
      for (record, results) in zip(records, results) {
        try record.check(against: results, endings, &counts)
      }
      return counts
    }
  }

  private static func listen(_ record: ListenerRecord) async throws {
    var list: [DocumentSnapshot] = []
    for try await snapshot in record.query.snapshots {
      for change in snapshot.documentChanges {
        if let index = change.oldIndex {
          guard list.indices.contains(index) else {
            throw ObservationFault(description: "there is nothing at \(index): \(record.query)")
          }
          let old = list.remove(at: index)
          guard old.documentID == change.document.documentID else {
            throw ObservationFault(
              description: "\(old) is at \(index), not \(change.document): \(record.query)")
          }
        }
        if let index = change.newIndex {
          guard index <= list.count else {
            throw ObservationFault(description: "there is no place \(index): \(record.query)")
          }
          list.insert(change.document, at: index)
        }
      }
      guard list.map(\.shown) == snapshot.documents.map(\.shown) else {
        throw ObservationFault(
          description: "\(record.query): the changes \(snapshot.documentChanges) lead to"
            + " \(list.map(\.shown)) and not to \(snapshot.documents.map(\.shown))")
      }
      record.add(snapshot)
    }
  }
}

/// The writer, and the fate of its files.
private struct ObservedWriter {
  let place: ObservationTrial.Place
  private(set) var database: Database
  var draw: ObservationDraw
  private let environment: Environment
  /// The clock for documents' expiry, if the trial moves it.
  private let clock: StandingClock?
  /// The last schema of each collection.
  private var versions: [String: Int] = [:]
  /// Whether documents may have expired in the last step.
  private(set) var mayHaveEnded = false
  private(set) var schemaCount = 0
  private(set) var dropCount = 0

  init(seed: UInt64, _ place: ObservationTrial.Place, _ environment: Environment) async throws {
    self.place = place
    clock = place == .inWriter ? StandingClock() : nil
    self.environment = clock.map { environment.going(by: $0) } ?? environment
    database = try await Self.open(place, self.environment, .readWrite)
    draw = ObservationDraw(seed: seed, database, clock)
    if clock != nil { try await database.collection("c").setTimeToLive(field: "end") }
  }

  private static func open(
    _ place: ObservationTrial.Place, _ environment: Environment, _ access: Database.Access
  ) async throws -> Database {
    var options = EngineOptions()
    if place == .besideWriter {
      options.memtableSize = 2 << 10
      options.logSize = 6 << 10
      options.firstPrewrittenSize = 4 << 10
      options.manifestSize = 2 << 10
    }
    return try await Database.open(
      at: "/db", options: .init(shardCount: 2, access: access), environment: environment,
      engineOptions: options)
  }

  /// Opens the database that is listened to.
  func openObserved() async throws -> Database {
    if place == .inWriter { return database }
    return try await Self.open(place, environment, .readOnly)
  }

  /// The result of the query of `seed`.
  func shown(_ seed: UInt64) throws -> Shown {
    var draw = ObservationDraw(seed: seed, database)
    return try database.snapshot().getDocuments(draw.query()).documents.map(\.shown)
  }

  /// Makes a commit, and sometimes something else before it.
  mutating func goOn() async throws {
    guard place == .besideWriter else { return try await goOnAlone() }
    switch draw.random.below(40) {
    case 0, 1: try await database.engine.flush()
    case 2: try await database.compact()
    case 3: try await database.collection("c").createIndex(on: ["a", "b"])
    case 4:
      try await database.close()
      database = try await Self.open(place, environment, .readWrite)
      draw = ObservationDraw(draw.random, database, clock)
    case 5: return try await database.collection(draw.random.pick(["c", "d"])).drop()
    default: break
    }
    try await draw.write(
      durability: draw.random.pick([.memory, .process, .process, .power] as [Ondol.Durability]))
  }
}

extension ObservedWriter {
  /// Makes a commit, or declares or drops something, or lets time pass.
  private mutating func goOnAlone() async throws {
    guard let clock else { return }
    mayHaveEnded = false
    switch draw.random.below(24) {
    case 0, 1:
      // The patterns `c`, `c/c` and `d`.
      let path = draw.random.pick(["c", "c", "c/x/c", "d"])
      versions[path, default: 0] += 1 + draw.random.below(2)
      schemaCount += 1
      try await TrialSchema.declare(versions[path] ?? 0, of: database.collection(path))
    case 2, 3:
      // Expired documents are removed before the next result is read, as listeners see it.
      mayHaveEnded = true
      clock.turn(bySeconds: draw.random.below(3))
      try await database.removeEnded()
    case 4:
      dropCount += 1
      try await database.collection("c").drop(includingDeclarations: draw.random.chance(1, in: 2))
    case 5:
      mayHaveEnded = true
      try await database.collection("c").setTimeToLive(
        field: draw.random.chance(1, in: 4) ? nil : "end")
    case 6: try await database.collection("c").createIndex(on: [draw.random.pick(["a", "-b"])])
    default: try await draw.write()
    }
  }
}

extension DocumentSnapshot {
  /// Distinguishes it from others, and from itself at other times.
  fileprivate var shown: String { "\(reference.path) \(Value.map(data()))" }
}

/// The snapshots of one listener.
private final class ListenerRecord: Sendable {
  let query: Query
  private let snapshots = Guarded<[(shown: Shown, changes: Int, unreadable: Shown)]>([])

  init(_ query: Query) {
    self.query = query
  }

  func add(_ snapshot: QuerySnapshot) {
    let entry = (
      snapshot.documents.map(\.shown), snapshot.documentChanges.count,
      snapshot.unreadable.map(\.path)
    )
    snapshots.withLock { $0.append(entry) }
  }

  var last: Shown? { snapshots.withLock { $0.last?.shown } }

  /// Throws unless the snapshots are some of `results`, in order, including the last one.
  ///
  /// - Parameter endings: results before which documents may have expired. They are removed one
  ///   after another, and listeners may see some of them gone and others not.
  func check(
    against results: [Shown], _ endings: Set<Int>, _ counts: inout ObservationCounts
  ) throws {
    let snapshots = snapshots.withLock { $0 }
    var place = 0
    for (number, snapshot) in snapshots.enumerated() {
      let shown = snapshot.shown
      let between = results.indices.dropFirst(place).first { index in
        endings.contains(index + 1) && shown.isBetween(results[index], results[index + 1])
      }
      guard let found = results[place...].firstIndex(of: shown) ?? between else {
        throw ObservationFault(
          description: "\(query): snapshot \(number) is no result from commit \(place) on:"
            + " \(snapshot.shown)")
      }
      if number > 0 {
        // A document may change in a field that a selection leaves out and that decides the order.
        guard
          found > place || snapshot.changes > 0
            || snapshot.unreadable != snapshots[number - 1].unreadable
        else {
          throw ObservationFault(
            description: "\(query): snapshot \(number) is the one before it again")
        }
        counts.changes += snapshot.changes
        if snapshot.changes > 1 { counts.withSeveral += 1 }
      }
      place = found
      counts.snapshots += 1
    }
    guard snapshots.last?.shown == results.last else {
      throw ObservationFault(
        description: "\(query): the last snapshot, of \(snapshots.count), is"
          + " \(snapshots.last?.shown ?? []) and not \(results.last ?? [])")
    }
  }
}

extension [String] {
  /// Whether this is `before` without some of the documents that `after` lacks. Under a limit,
  /// documents move up that `after` has and `before` does not: after the others, or before them if
  /// the limit keeps the last ones. While the limit is full, it may cut off some that `after` has.
  fileprivate func isBetween(_ before: [String], _ after: [String]) -> Bool {
    let news = after.filter { !before.contains($0) }
    let common = after.filter { contains($0) }
    guard common == after || count == before.count else { return false }
    return isPart(of: before + news) && after.starts(with: common)
      || isPart(of: news + before) && after.reversed().starts(with: common.reversed())
  }

  /// Whether this is `whole` with some elements left out.
  private func isPart(of whole: [String]) -> Bool {
    var rest = whole[...]
    for element in self {
      guard let index = rest.firstIndex(of: element) else { return false }
      rest = rest[(index + 1)...]
    }
    return true
  }
}
