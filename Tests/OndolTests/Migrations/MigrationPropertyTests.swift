// Random histories of an app that grows: versions with more and more migrations, documents written
// in between, crashes in the middle and cancelled calls, and failures that a later version can
// repair. After each step all documents match a model without commits, and a dry run has predicted
// the result.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

/// A step of an app's version.
private enum PlannedStep: Hashable {
  /// Appends its number to each document's log. Throws if `n` has this remainder by five.
  case log(collection: String, number: Int, failing: Int?)
  case renameField(collection: String, from: String, to: String)
  case renameCollection(from: String, to: String)
  /// Counts its runs.
  case run(number: Int)
}

/// The expected contents of the database.
private struct MigrationModel {
  struct Document: Equatable {
    var fields: [String: Value]
    /// The steps that it still lacks, by their place among all.
    var lacking: [Int] = []
  }

  /// By collection and id.
  var collections: [String: [String: Document]] = [:]
  var runs: [Int] = []
  /// All steps begun so far.
  var steps: [PlannedStep] = []

  mutating func apply(_ step: PlannedStep, helped: Bool) {
    let place = steps.count
    steps.append(step)
    switch step {
    case .run(let number): runs.append(number)
    case .renameCollection(let from, let to):
      guard let documents = collections.removeValue(forKey: from) else { return }
      collections[to] = documents
    case .log(let collection, _, _), .renameField(let collection, _, _):
      for id in (collections[collection] ?? [:]).keys {
        collections[collection]?[id]?.lacking.append(place)
      }
      settle(collection, helped: helped)
    }
  }

  /// Applies to each document of a collection the steps that it lacks, all or none of them.
  mutating func settle(_ collection: String, helped: Bool) {
    for (id, document) in collections[collection] ?? [:] {
      var fields = document.fields
      guard document.lacking.allSatisfy({ Self.change(&fields, steps[$0], helped: helped) }) else {
        continue
      }
      collections[collection]?[id] = Document(fields: fields)
    }
  }

  private static func change(
    _ fields: inout [String: Value], _ step: PlannedStep, helped: Bool
  ) -> Bool {
    switch step {
    case .log(_, let number, let failing):
      if !helped, let failing, fields["n"]?.integer == Int64(failing) { return false }
      fields["log"] = .array((fields["log"]?.array ?? []) + [.integer(Int64(number))])
    case .renameField(_, let from, let to):
      guard let value = fields[from] else { return true }
      if fields[to] != nil { return false }
      fields[from] = nil
      fields[to] = value
    case .renameCollection, .run: break
    }
    return true
  }

  /// Documents that lack a step.
  var failing: Set<String> {
    var failing: Set<String> = []
    for (collection, documents) in collections {
      for (id, document) in documents where !document.lacking.isEmpty {
        failing.insert("\(collection)/\(id)")
      }
    }
    return failing
  }
}

/// Copies the files at one of the requested moments.
private final class Saboteur: Sendable {
  private let state: Guarded<(left: Int, copy: SimulatedFileSystem?)>
  private let files: SimulatedFileSystem
  private let seed: UInt64?

  init(_ files: SimulatedFileSystem, after moments: Int, powerCut seed: UInt64?) {
    self.files = files
    self.seed = seed
    state = Guarded((moments, nil))
  }

  func moment() {
    let isTime = state.withLock { state in
      state.left -= 1
      return state.left == 0
    }
    guard isTime else { return }
    let copy = seed.map { files.crash(seed: $0) } ?? files.kill()
    state.withLock { $0.copy = copy }
  }

  var copy: SimulatedFileSystem? { state.withLock { $0.copy } }
}

@Suite struct MigrationPropertyTests {
  private static let roots = ["a", "b", "c"]

  /// One app and its database.
  private struct History {
    var random: SeededRandom
    var world: SimulatedWorld
    var database: Database
    var model = MigrationModel()
    /// The steps of each migration so far.
    var migrations: [[PlannedStep]] = []
    var stepCount = 0
    var counts = (crashes: 0, failures: 0, retries: 0, resumed: 0)

    init(seed: UInt64) async throws {
      random = SeededRandom(seed: seed)
      world = SimulatedWorld(seed: seed)
      database = try await MigrationPropertyTests.open(world)
    }

    // MARK: - The app

    /// The existing collections, including those below documents.
    private var paths: [String] { MigrationPropertyTests.roots + ["a/x/s", "a/x/t"] }

    mutating func write() async throws {
      for _ in 0..<(1 + random.below(30)) {
        let path = random.pick(paths)
        let id = "d\(random.below(25))"
        let reference = database.collection(path).document(id)
        if random.chance(1, in: 6) {
          try await reference.delete(durability: .process)
          model.collections[path]?[id] = nil
          continue
        }
        var fields: [String: Value] = ["n": .integer(Int64(random.below(5)))]
        for name in ["x", "y", "z"] where random.chance(1, in: 3) {
          fields[name] =
            random.chance(1, in: 8)
            ? random.pick([random.decimal(), random.grid()]) : .string(name)
        }
        try await reference.setData(fields, durability: .process)
        // A migration that changes nothing leaves the document's version.
        guard model.collections[path]?[id]?.fields != fields else { continue }
        model.collections[path, default: [:]][id] = .init(fields: fields)
      }
    }

    mutating func addMigration() {
      // Names that collections have by then.
      var taken = Set(model.collections.filter { !$0.value.isEmpty }.keys)
      var steps: [PlannedStep] = []
      for _ in 0..<(1 + random.below(4)) {
        stepCount += 1
        switch random.below(7) {
        case 0, 1, 2, 3:
          steps.append(
            .log(
              collection: random.pick(paths), number: stepCount,
              failing: random.chance(1, in: 3) ? random.below(5) : nil))
        case 4:
          let names = ["x", "y", "z"]
          let from = random.below(3)
          steps.append(
            .renameField(
              collection: random.pick(paths), from: names[from],
              to: names[(from + 1 + random.below(2)) % 3]))
        case 5:
          // `a` stays, because there are others below it.
          let isInner = random.chance(1, in: 2)
          let (from, to) = random.pick(
            isInner ? [("a/x/s", "a/x/t"), ("a/x/t", "a/x/s")] : [("b", "c"), ("c", "b")])
          guard !taken.contains(to) else { continue }
          if taken.remove(from) != nil { taken.insert(to) }
          steps.append(.renameCollection(from: from, to: to))
        default: steps.append(.run(number: stepCount))
        }
      }
      migrations.append(steps)
    }

    private func migrator(helped: Bool, _ saboteur: Saboteur?) -> Migrator {
      var migrator = Migrator()
      let database = database
      for (number, steps) in migrations.enumerated() {
        migrator.register("m\(number)") { migration in
          for step in steps {
            switch step {
            case .log(let collection, let number, let failing):
              migration.transform(collection) { fields in
                saboteur?.moment()
                if !helped, let failing, fields["n"]?.integer == Int64(failing) {
                  throw DatabaseError(.invalidArgument, "not \(failing)")
                }
                fields["log"] = .array((fields["log"]?.array ?? []) + [.integer(Int64(number))])
              }
            case .renameField(let collection, let from, let to):
              migration.renameField(FieldPath(from), to: FieldPath(to), in: collection)
            case .renameCollection(let from, let to):
              migration.renameCollection(from, to: to)
            case .run(let number):
              migration.run { transaction in
                saboteur?.moment()
                let notes = database.document("notes/runs")
                let runs = try transaction.getDocument(notes).data()["runs"]?.array ?? []
                try transaction.setData(
                  ["runs": Value.array(runs + [.integer(Int64(number))])], forDocument: notes)
              }
            }
          }
        }
      }
      return migrator
    }

    // MARK: - Migrating

    /// Migrates, perhaps with crashes in the middle, until nothing is left to do.
    mutating func migrate(seed: UInt64) async throws {
      let helped = random.chance(1, in: 3)
      let isRetrying = random.chance(1, in: 3)
      let isDone = try await database.listMigrations().count
      try await database.synchronize()
      if isRetrying {
        counts.retries += 1
        for collection in model.collections.keys { model.settle(collection, helped: helped) }
      }
      for steps in migrations[isDone...] {
        for step in steps { model.apply(step, helped: helped) }
      }
      while random.chance(2, in: 3) {
        counts.crashes += 1
        let saboteur = Saboteur(
          world.fileSystem, after: 1 + random.below(60),
          powerCut: random.chance(1, in: 2) ? random.next() : nil)
        let tap = database.tapCommits { _ in saboteur.moment() }
        _ = try? await migrator(helped: helped, saboteur)
          .migrate(database, retryingFailures: isRetrying) { _ in saboteur.moment() }
        withExtendedLifetime(tap) {}
        try await crash(saboteur.copy)
      }
      if try await database.listMigrations().contains(where: { $0.finished == nil }) {
        counts.resumed += 1
      }
      let migrator = migrator(helped: helped, nil)
      let dry = try await migrator.dryRun(database, retryingFailures: isRetrying)
      let report = try await migrator.migrate(database, retryingFailures: isRetrying)
      #expect(dry == report, "SEED=\(seed)")
      #expect(try await migrator.pendingMigrations(in: database).isEmpty)
      let listed = try await database.listMigrations()
      // The report includes an app's later writes until they are tried again.
      let told = Set(listed.flatMap(\.failures).map(\.path))
      #expect(told.isSuperset(of: model.failing), "SEED=\(seed)")
      if isRetrying { #expect(told == model.failing, "SEED=\(seed)") }
      counts.failures += model.failing.count
    }

    private mutating func crash(_ files: SimulatedFileSystem?) async throws {
      try await database.close()
      guard let files else {
        database = try await MigrationPropertyTests.open(world)
        return
      }
      world = SimulatedWorld(
        fileSystem: files, seed: random.next(), startTime: 2_000_000_000_000_000)
      database = try await MigrationPropertyTests.open(world)
    }

    func compare(seed: UInt64) async throws {
      for path in paths {
        var found: [String: [String: Value]] = [:]
        for document in try await database.collection(path).getDocuments().documents {
          found[document.documentID] = document.data()
        }
        let expected = (model.collections[path] ?? [:]).mapValues(\.fields)
        #expect(found == expected, "SEED=\(seed), \(path)")
        let threes = try await database.collection(path).whereField("n", isEqualTo: 3)
          .getDocuments()
        #expect(threes.count == expected.count { $0.value["n"] == 3 }, "SEED=\(seed)")
      }
      let notes = try await database.document("notes/runs").getDocument().data()["runs"]
      #expect(
        (notes?.array ?? []).compactMap { $0.integer.map(Int.init) } == model.runs, "SEED=\(seed)")
    }
  }

  private static func open(_ world: SimulatedWorld) async throws -> Database {
    let database = try await Database.open(
      at: "/db", options: Database.Options(durability: .power, shardCount: 2),
      environment: world.environment)
    return database
  }

  @Test func `Whatever comes between, all documents are the model's`() async throws {
    var counts = (crashes: 0, failures: 0, retries: 0, resumed: 0)
    let seeds = Seeds.first(40)
    for seed in seeds {
      var history = try await History(seed: seed)
      try await history.database.collection("a").createIndex(on: ["n", "-x"])
      for id in ["b", "t"] {
        try await history.database.collectionGroup(id).createIndex(on: ["n"])
      }
      for _ in 0..<5 {
        try await history.write()
        for _ in 0..<(1 + history.random.below(2)) { history.addMigration() }
        try await history.migrate(seed: seed)
        try await history.compare(seed: seed)
      }
      #expect(try await history.database.verify(depth: .full).isEmpty, "SEED=\(seed)")
      try await history.database.close()
      counts.crashes += history.counts.crashes
      counts.failures += history.counts.failures
      counts.retries += history.counts.retries
      counts.resumed += history.counts.resumed
    }
    print("Migrations: \(counts)")
    guard seeds.count > 1 else { return }
    #expect(min(counts.crashes, counts.failures) > seeds.count)
    #expect(min(counts.retries, counts.resumed) > seeds.count / 4)
  }
}
