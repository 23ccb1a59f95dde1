// One history of commits through several lives of a database: closed, killed, and cut off from
// power, at their ends or before any of their operations on the files. A feed that is stopped and
// resumed again and again must report every surviving commit, each once, in order, with its
// documents before and after. A reader that has seen a query's result as of some commit must
// receive the differences when it comes back.
//
// On a store two opens write in turns, and instead of power cuts the store loses its newest
// commits.

internal import Logging
import Ondol
import OndolEngine

/// The counts of a trial.
package struct ChangeCounts: Sendable {
  package var commits = 0
  package var lives = 0
  /// Changes that feeds reported.
  package var told = 0
  /// Places in the history at which a feed was stopped and resumed.
  package var resumptions = 0
  /// Tokens of commits that a power cut lost.
  package var lost = 0
  /// Results that were compared with those of an earlier commit, and their changes.
  package var results = 0
  package var differences = 0
  /// Logs that existed only for the history.
  package var keptLogs = 0
  /// Places that were no longer kept.
  package var forgotten = 0

  package init() {}

  package static func += (left: inout ChangeCounts, right: ChangeCounts) {
    left.commits += right.commits
    left.lives += right.lives
    left.told += right.told
    left.resumptions += right.resumptions
    left.lost += right.lost
    left.results += right.results
    left.differences += right.differences
    left.keptLogs += right.keptLogs
    left.forgotten += right.forgotten
  }
}

/// The documents, by path, as text.
private typealias DocumentsTold = [String: String]

/// The expected changes of one commit.
private struct Expected {
  var version: Version
  var changed: [String: [String?]]
  var after: DocumentsTold
}

/// A result that a reader has seen.
private struct SeenResult {
  var querySeed: UInt64
  var token: ChangeToken
  var documents: [DocumentSnapshot]
}

package struct ChangeTrial {
  private let seed: UInt64
  private var random: SeededRandom
  private var fileSystem = SimulatedFileSystem()
  /// The database's store, if it is not in files.
  private var store: SimulatedStore?
  private var expected: [Expected] = []
  private var tokens: [ChangeToken] = []
  private var told = 0
  private var seen: [SeenResult] = []
  private var counts = ChangeCounts()

  private static let lives = 5
  private static let resultCount = 4

  /// Runs the history of `seed`, of a database in files or on a store. Throws `ObservationFault` if
  /// something was reported wrongly.
  package static func run(seed: UInt64, onStore: Bool = false) throws -> ChangeCounts {
    try SimulationExecutor.run(seed: seed) { executor in
      var trial = ChangeTrial(seed: seed)
      if !onStore { return try await trial.run(executor) }
      let world = SimulatedWorld(seed: seed, threads: executor)
      defer { withExtendedLifetime(world) {} }
      trial.store = SimulatedStore(seed: seed, environment: world.environment)
      return try await trial.run(executor)
    }
  }

  private init(seed: UInt64) {
    self.seed = seed
    random = SeededRandom(seed: SeededRandom.derive(seed, -1))
  }

  private mutating func run(_ executor: SimulationExecutor) async throws -> ChangeCounts {
    for life in 0..<Self.lives {
      counts.lives += 1
      let world = SimulatedWorld(
        fileSystem: fileSystem, seed: SeededRandom.derive(seed, life),
        startTime: 1_000_000_000_000_000 + Int64(life) * 1_000_000_000, threads: executor)
      let database = try await open(world)
      let other = store == nil ? nil : try await open(world)
      try await live(database, other, life)
      if let store {
        try await end([database, other].compactMap(\.self), on: store)
      } else {
        try await end(database)
      }
      withExtendedLifetime(world) {}
    }
    return counts
  }

  private func open(_ world: SimulatedWorld) async throws -> Database {
    try await Database.open(
      at: store?.name ?? "/db",
      options: .init(
        shardCount: 2, logger: Logger(label: "trial") { _ in SwiftLogNoOpLogHandler() },
        changeRetention: .init(duration: nil, bytes: isTrimmed ? trimmedBytes : nil)),
      environment: world.environment, engineOptions: engineOptions, on: store)
  }

  /// Files contain much in addition to annotations.
  private var trimmedBytes: Int { store == nil ? 16 << 10 : 3 << 10 }

  /// Whether only little is kept.
  private var isTrimmed: Bool { seed.isMultiple(of: 4) }

  private var engineOptions: EngineOptions {
    var options = EngineOptions()
    options.memtableSize = 2 << 10
    options.logSize = 6 << 10
    options.firstPrewrittenSize = 4 << 10
    options.manifestSize = 2 << 10
    return options
  }

  private mutating func live(
    _ database: Database, _ other: Database?, _ life: Int
  ) async throws {
    if tokens.isEmpty { tokens = [try database.changeToken()] }
    fileSystem.keepPictures()
    try await forgetLost(database)
    try await compareResults(database)
    var draw = ObservationDraw(seed: SeededRandom.derive(seed, 100 + life), database)
    for _ in 0..<(10 + random.below(20)) {
      if let other, random.chance(1, in: 2) {
        var others = ObservationDraw(draw.random, other)
        try await commit(&others, database)
        draw.random = others.random
      } else {
        try await commit(&draw, database)
      }
      // As apps do from time to time.
      if store != nil, random.chance(1, in: 4) { await database.engine.forgetVersions() }
      if random.chance(1, in: 6) { try await follow(database) }
      if random.chance(1, in: 10) { try await compareResults(database) }
    }
    if random.chance(1, in: 2) { try await follow(database) }
    try await followAll(database)
    try await see(database)
  }

  /// Ends a life, now or before some operation that it has done.
  private mutating func end(_ database: Database) async throws {
    let names = try fileSystem.openDirectory(at: "/db", create: false).list()
    counts.keptLogs += max(0, names.count { $0.hasPrefix("LOG-") } - 2)
    let next: SimulatedFileSystem
    switch random.below(5) {
    case 0:
      try await database.close()
      next = SimulatedFileSystem(storage: fileSystem.storage.afterKill())
    case 1: next = fileSystem.kill()
    case 2: next = fileSystem.crash(seed: random.next())
    default:
      if random.chance(1, in: 2) { try await database.close() }
      let pictures = fileSystem.takePictures()
      let storage = pictures.isEmpty ? fileSystem.storage : random.pick(pictures).storage
      next = SimulatedFileSystem(
        storage: random.chance(1, in: 3)
          ? storage.afterKill() : storage.afterPowerCut(seed: random.next()))
    }
    fileSystem.cutPower(before: 0)
    try? await database.close()
    fileSystem = next
  }

  /// Ends a life on a store, which loses some of the newest commits or none.
  private mutating func end(_ databases: [Database], on store: SimulatedStore) async throws {
    let isLost = random.chance(1, in: 2)
    if isLost { store.loseNewest(1 + random.below(6)) }
    for database in databases {
      do {
        try await database.close()
      } catch {
        // The commits that it knows are gone.
        guard isLost else { throw error }
      }
    }
  }

  // MARK: - Commits

  private func picture(_ database: Database) throws -> (DocumentsTold, Version) {
    let snapshot = database.snapshot()
    var picture: DocumentsTold = [:]
    for collection in ["c", "c/x/c", "d"] {
      for number in 0..<14 {
        let document = try snapshot.getDocument(
          database.collection(collection).document("d\(number)"))
        if document.exists { picture[document.reference.path] = document.told }
      }
    }
    return (picture, snapshot.version)
  }

  private mutating func commit(_ draw: inout ObservationDraw, _ database: Database) async throws {
    let before = expected.last?.after ?? [:]
    try await draw.write(
      durability: random.pick([.memory, .process, .process, .power] as [Ondol.Durability]))
    if store != nil { try await database.refresh() }
    let (after, version) = try picture(database)
    counts.commits += 1
    var changed: [String: [String?]] = [:]
    for path in Set(before.keys).union(after.keys) where before[path] != after[path] {
      changed[path] = [before[path], after[path]]
    }
    guard !changed.isEmpty else { return }
    expected.append(Expected(version: version, changed: changed, after: after))
  }

  /// After a crash, lost commits are no longer expected, and their tokens are refused.
  private mutating func forgetLost(_ database: Database) async throws {
    let (found, version) = try picture(database)
    let lost = tokens.filter { $0.version > version }
    expected.removeAll { $0.version > version }
    guard found == expected.last?.after ?? [:] else {
      throw ObservationFault(description: "the documents are not those of commit \(version)")
    }
    tokens.removeAll { $0.version > version }
    seen.removeAll { $0.token.version > version }
    if tokens.isEmpty { tokens = [try database.changeToken()] }
    told = expected.count { $0.version <= tokens[tokens.count - 1].version }
    guard let token = lost.last else { return }
    counts.lost += lost.count
    // Other commits get the numbers of the lost ones.
    var draw = ObservationDraw(seed: seed, database)
    while try picture(database).1 <= token.version { try await commit(&draw, database) }
    do throws(DatabaseError) {
      for try await change in database.changes(since: token) {
        throw DatabaseError(.internal, "told \(change) after a commit that is gone")
      }
    } catch {
      guard error.code == .outOfRange else { throw error }
    }
  }

  // MARK: - Following

  private mutating func goBack(to token: ChangeToken) {
    tokens = [token]
    told = expected.count { $0.version <= token.version }
  }

  /// Resumes the feed, for some of the unreported commits.
  private mutating func follow(_ database: Database) async throws {
    guard told < expected.count else { return }
    try await follow(database, count: 1 + random.below(expected.count - told))
  }

  /// Resumes the feed up to the newest commit.
  private mutating func followAll(_ database: Database) async throws {
    if random.chance(1, in: 3) {
      // From the very beginning.
      goBack(to: tokens[0])
    }
    try await follow(database, count: expected.count - told)
  }

  private mutating func follow(_ database: Database, count: Int) async throws {
    guard count > 0 else { return }
    counts.resumptions += 1
    // In the form that an app stores.
    let token = ChangeToken(tokens[tokens.count - 1].description)
    var rest = count
    do throws(DatabaseError) {
      for try await change in database.changes(since: token) {
        try take(change)
        rest -= 1
        if rest == 0 { return }
      }
    } catch {
      guard isTrimmed, error.code == .outOfRange else { throw error }
      counts.forgotten += 1
      return goBack(to: try database.changeToken())
    }
    throw ObservationFault(description: "the feed ended with \(rest) commits to be told")
  }

  private mutating func take(_ change: DatabaseChange) throws(DatabaseError) {
    let expected = expected[told]
    var changed: [String: [String?]] = [:]
    for document in change.documents {
      let states = [document.before, document.after].map { $0.exists ? $0.told : nil }
      guard changed.updateValue(states, forKey: document.reference.path) == nil else {
        throw DatabaseError(.internal, "\(document.reference) twice in \(change.version)")
      }
    }
    guard change.version == expected.version, changed == expected.changed else {
      throw DatabaseError(
        .internal,
        "told \(change.version) \(changed), and not \(expected.version) \(expected.changed)")
    }
    told += 1
    counts.told += 1
    tokens.append(change.token)
  }

  // MARK: - Results

  private mutating func see(_ database: Database) async throws {
    while seen.count < Self.resultCount {
      let querySeed = random.next()
      var draw = ObservationDraw(seed: querySeed, database)
      let result = try await draw.query().getDocuments()
      seen.append(
        SeenResult(
          querySeed: querySeed, token: try database.changeToken(), documents: result.documents))
    }
  }

  /// Reads the differences of the results, and forgets some of them.
  private mutating func compareResults(_ database: Database) async throws {
    for index in seen.indices.reversed() {
      do {
        try await compareResult(at: index, database)
      } catch let error as DatabaseError {
        guard isTrimmed, error.code == .outOfRange else { throw error }
        counts.forgotten += 1
        seen.remove(at: index)
      }
    }
    if random.chance(1, in: 3) { _ = seen.popLast() }
  }

  private mutating func compareResult(at index: Int, _ database: Database) async throws {
    var draw = ObservationDraw(seed: seen[index].querySeed, database)
    let query = draw.query()
    for try await snapshot in query.snapshots(since: seen[index].token) {
      counts.results += 1
      counts.differences += snapshot.documentChanges.count
      let list = try seen[index].documents.shown(after: snapshot.documentChanges, query)
      let now = try await query.getDocuments().documents
      guard list == snapshot.documents.map(\.shown), list == now.map(\.shown) else {
        throw ObservationFault(
          description: "\(query): \(seen[index].documents.map(\.shown)) and"
            + " \(snapshot.documentChanges) give \(list), and the result is \(now.map(\.shown))")
      }
      guard let token = snapshot.changeToken else {
        throw ObservationFault(description: "a snapshot without a token")
      }
      // Often the same again, from further and further back.
      if random.chance(1, in: 2) {
        seen[index].token = token
        seen[index].documents = snapshot.documents
      }
      return
    }
  }
}

extension ChangeToken {
  /// The commit's number, by its place in the text.
  fileprivate var version: Version {
    let number = description.split(separator: "-").dropFirst(2).first
    return Version(rawValue: number.flatMap { UInt64($0, radix: 36) } ?? 0)
  }
}

extension DocumentSnapshot {
  /// A listener's view of it: a selection may leave out the field that makes its version another
  /// one.
  fileprivate var shown: String { "\(reference.path) \(Value.map(data()))" }

  fileprivate var told: String {
    let times = [createTime, updateTime].map { $0.map { "\($0)" } ?? "never" }
    return "\(reference.path) \(version) \(times) \(Value.map(data()))"
  }
}

extension [DocumentSnapshot] {
  /// The list after the changes.
  fileprivate func shown(
    after changes: [DocumentChange], _ query: Query
  ) throws -> [String] {
    var list = self
    for change in changes {
      if let index = change.oldIndex {
        guard list.indices.contains(index),
          list.remove(at: index).documentID == change.document.documentID
        else { throw ObservationFault(description: "\(query): \(change) is not at \(index)") }
      }
      if let index = change.newIndex {
        guard index <= list.count else {
          throw ObservationFault(description: "\(query): there is no place for \(change)")
        }
        list.insert(change.document, at: index)
      }
    }
    return list.map(\.shown)
  }
}
