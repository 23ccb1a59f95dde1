// Migrations: which are applied and when, the fate of documents that cannot be changed, and the
// report of a dry run.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct MigrationTests {
  private struct NoPrice: Error, CustomStringConvertible {
    var description: String { "there is no price" }
  }

  private static func migrator(
    _ names: String..., failing: Bool = false
  ) -> Migrator {
    var migrator = Migrator()
    for name in names {
      migrator.register(name) { migration in
        migration.transform("items") { document in
          if failing, document["price"] == nil { throw NoPrice() }
          document["log"] = .array((document["log"]?.array ?? []) + [.string(name)])
        }
      }
    }
    return migrator
  }

  private static func log(_ path: String, _ database: Database) async throws -> [String] {
    let document = try await database.document(path).getDocument()
    return document.data()["log"]?.array?.compactMap(\.string) ?? []
  }

  // MARK: - Order of migrations

  @Test func `Each is applied once, in the order in which they are registered`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    try await items.document("a").setData(["price": 1])
    var migrator = Self.migrator("one", "two")
    #expect(try await migrator.pendingMigrations(in: database) == ["one", "two"])
    let report = try await migrator.migrate(database)
    #expect(report.migrations.map(\.name) == ["one", "two"])
    #expect(report.migrations.map(\.rewritten) == [1, 1])
    #expect(try await Self.log("items/a", database) == ["one", "two"])
    #expect(try await migrator.migrate(database) == MigrationReport())
    try await items.document("b").setData(["price": 2])
    migrator.register("three") { migration in
      migration.run { transaction in
        let count = try transaction.getAggregation(items.count).count
        try transaction.setData(["items": count], forDocument: database.document("numbers/n"))
      }
      migration.transform("items") { $0["three"] = true }
    }
    try await migrator.migrate(database)
    #expect(try await Self.log("items/a", database) == ["one", "two"])
    #expect(try await Self.log("items/b", database) == [])
    #expect(try await items.whereField("three", isEqualTo: true).getDocuments().count == 2)
    #expect(try await database.document("numbers/n").getDocument()["items"] as Int? == 2)
    let applied = try await database.listMigrations()
    #expect(applied.map(\.name) == ["one", "two", "three"])
    #expect(applied.allSatisfy { ($0.finished ?? .minimum) >= $0.begun })
    #expect(try await migrator.pendingMigrations(in: database) == [])
    // The records are visible only here.
    #expect(try await database.listCollections().map(\.path).sorted() == ["items", "numbers"])
    #expect(try await database.verify(depth: .full).isEmpty)
  }

  @Test func `New ones come last, and a database from a newer app is left alone`() async throws {
    let database = try await Database.underTest()
    try await database.document("items/a").setData(["price": 1])
    try await Self.migrator("b", "c").migrate(database)
    for (names, word) in [
      (["b", "x", "c"], "in front"), (["c", "b"], "after it"), (["b"], "newer"),
    ] {
      var migrator = Migrator()
      for name in names { migrator.register(name) { $0.transform("items") { _ in } } }
      let error = await #expect(throws: DatabaseError.self) { try await migrator.migrate(database) }
      #expect(error?.code == .failedPrecondition, "\(names)")
      #expect(error?.message.contains(word) == true, "\(error?.message ?? "")")
      await #expect(throws: DatabaseError.self) { try await migrator.dryRun(database) }
    }
    // The oldest may go.
    let report = try await Self.migrator("c", "d").migrate(database)
    #expect(report.migrations.map(\.name) == ["d"])
    #expect(try await Self.log("items/a", database) == ["b", "c", "d"])
  }

  @Test func `Mistakes in the registration are reported before any work`()
    async throws
  {
    let database = try await Database.underTest()
    try await database.document("items/a").setData(["price": 1])
    let descriptions: [(inout Migration) -> Void] = [
      { $0.transform("items/a") { _ in } },
      { $0.renameField("a", to: "a.b", in: "items") },
      { $0.renameField("a", to: "b", in: "") },
      { $0.renameCollection("items", to: "items") },
      { $0.renameCollection("items", to: "users/any/items") },
      { $0.renameCollection("items", to: "__items__") },
    ]
    for (number, describe) in descriptions.enumerated() {
      var migrator = Self.migrator("one")
      migrator.register("two", describe)
      let error = await #expect(throws: DatabaseError.self, "\(number)") {
        try await migrator.migrate(database)
      }
      #expect(error?.code == .invalidArgument)
    }
    for name in ["", "a/b", "one", String(repeating: "x", count: 201)] {
      var migrator = Self.migrator("one")
      migrator.register(name) { _ in }
      await #expect(throws: DatabaseError.self) { try await migrator.migrate(database) }
    }
    #expect(try await database.listMigrations().isEmpty)
    try await database.runTransaction { _ in
      await #expect(throws: DatabaseError.self) { try await Self.migrator("a").migrate(database) }
    }
  }

  @Test func `One that was interrupted must have the same steps to go on`() async throws {
    let database = try await Database.underTest()
    try await database.document("items/a").setData(["price": 1])
    var migrator = Migrator()
    migrator.register("one") { migration in
      migration.transform("items") { $0["one"] = 1 }
      migration.run { _ in throw NoPrice() }
    }
    await #expect(throws: NoPrice.self) { try await migrator.migrate(database) }
    #expect(try await database.listMigrations().map(\.finished) == [nil])
    #expect(try await migrator.pendingMigrations(in: database) == ["one"])
    let error = await #expect(throws: DatabaseError.self) {
      try await Self.migrator("one").migrate(database)
    }
    #expect(error?.message.contains("other steps") == true)
    var repaired = Migrator()
    repaired.register("one") { migration in
      migration.transform("items") { $0["one"] = 2 }
      migration.run { _ in }
    }
    try await repaired.migrate(database)
    #expect(try await database.document("items/a").getDocument()["one"] as Int? == 1)
  }

  @Test func `One of two concurrent callers does it, and the other waits`() async throws {
    for seed in Seeds.first(20) {
      try SimulationExecutor.run(seed: seed) { executor in
        let world = SimulatedWorld(seed: seed, threads: executor)
        let database = try await Database.open(at: "/db", environment: world.environment)
        for number in 0..<250 {
          try await database.document("items/i\(number)")
            .setData(["price": number], durability: .memory)
        }
        let migrator = Self.migrator("one", "two")
        let reports = try await withThrowingTaskGroup(of: MigrationReport.self) { group in
          for _ in 0..<3 { group.addTask { try await migrator.migrate(database) } }
          return try await group.reduce(into: []) { $0.append($1) }
        }
        let doers = reports.filter { !$0.migrations.isEmpty }
        #expect(doers.count == 1, "SEED=\(seed)")
        #expect(doers.first?.migrations.map(\.rewritten) == [250, 250], "SEED=\(seed)")
        for number in 0..<250 {
          #expect(try await Self.log("items/i\(number)", database) == ["one", "two"])
        }
        try await database.close()
      }
    }
  }

  // MARK: - Documents that cannot be changed

  @Test func `They stay unchanged, are reported, and are changed when possible`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    for number in 0..<450 {
      try await items.document("i\(1_000 + number)").setData(
        number.isMultiple(of: 3) ? ["n": number] : ["n": number, "price": number])
    }
    let before = try await items.document("i1003").getDocument()
    let report = try await Self.migrator("one", failing: true).migrate(database)
    #expect(report.failureCount == 150)
    #expect(report.migrations[0].rewritten == 300)
    #expect(report.migrations[0].failures.count == MigrationReport.failureLimit)
    #expect(report.migrations[0].failures[1].path == "items/i1003")
    #expect(report.migrations[0].failures[1].reason == "there is no price")
    #expect(try await items.document("i1003").getDocument() == before)
    let listed = try await database.listMigrations()
    #expect(listed.map(\.failureCount) == [150] && listed[0].finished != nil)
    // The app writes the current form, and the next migration begins with the rest.
    try await items.document("i1003").setData(["price": 1])
    try await Self.migrator("one", "two", failing: true).migrate(database)
    #expect(try await Self.log("items/i1003", database) == ["two"])
    #expect(try await Self.log("items/i1004", database) == ["one", "two"])
    #expect(try await database.listMigrations().map(\.failureCount) == [149, 0])
    // Nothing is tried again before a request.
    let repaired = Self.migrator("one", "two")
    #expect(try await repaired.migrate(database) == MigrationReport())
    let retried = try await repaired.migrate(database, retryingFailures: true)
    #expect(retried.failureCount == 0)
    #expect(retried.migrations.map(\.rewritten) == [149])
    #expect(try await Self.log("items/i1006", database) == ["one", "two"])
    #expect(try await database.listMigrations().map(\.failureCount) == [0, 0])
    #expect(try await repaired.migrate(database, retryingFailures: true) == MigrationReport())
  }

  @Test func `An unstorable result is a failure of its document alone`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    try await items.createIndex(on: ["code"], unique: true)
    for number in 0..<120 { try await items.document("i\(1_000 + number)").setData(["n": number]) }
    var migrator = Migrator()
    migrator.register("codes") { migration in
      migration.transform("items") { document in
        let number = document["n"]?.integer ?? 0
        document["code"] = .integer(number == 7 ? 3 : number)
        if number == 9 { document["__reserved__"] = 1 }
        if number == 11 { document["code"] = .string(String(repeating: "x", count: 3_000)) }
      }
    }
    let dry = try await migrator.dryRun(database)
    let report = try await migrator.migrate(database)
    #expect(dry == report)
    #expect(
      report.migrations[0].failures.map(\.path) == ["items/i1007", "items/i1009", "items/i1011"])
    #expect(report.migrations[0].rewritten == 117)
    #expect(report.migrations[0].failures[0].reason.contains("items/i1003"))
    #expect(try await items.whereField("code", isEqualTo: 5).getDocuments().count == 1)
    #expect(try await database.verify(depth: .full).isEmpty)
  }

  // MARK: - Dry runs, progress, cancelling

  @Test func `A dry run predicts the result, and changes nothing`() async throws {
    let world = SimulatedWorld(seed: 1)
    let database = try await Database.open(at: "/db", environment: world.environment)
    let people = database.collection("people")
    try await people.createIndex(on: ["name"], unique: true)
    for number in 0..<230 {
      try await people.document("p\(number)").setData(["name": "n\(number % 225)x\(number)"])
    }
    var migrator = Migrator()
    migrator.register("names") { migration in
      // Some agree afterwards.
      migration.transform("people") { document in
        document["name"] = document["name"]?.string.map { .string(String($0.prefix { $0 != "x" })) }
      }
      migration.renameCollection("people", to: "users")
      migration.renameField("name", to: "called.first", in: "users")
      migration.run { transaction in
        let found = try transaction.getDocuments(
          database.collection("users").whereField("called.first", isEqualTo: "n3"))
        guard found.count == 1 else { throw NoPrice() }
        try transaction.setData(["n": 1], forDocument: database.document("users/new"))
      }
    }
    migrator.register("numbers") { migration in
      migration.transform("users") { document in
        guard document["called"] != nil || document["n"] != nil else { throw NoPrice() }
        document["n"] = 2
      }
    }
    let newest = database.newestToken
    let dry = try await migrator.dryRun(database)
    #expect(database.newestToken == newest)
    #expect(try await database.listMigrations().isEmpty)
    #expect(try await database.listCollections().map(\.path) == ["people"])
    #expect(try await people.listIndexes().map(\.name) == ["name unique"])
    let report = try await migrator.migrate(database)
    #expect(dry == report)
    // A document that failed at first is tried with each later step, and fails there.
    #expect(report.migrations.map(\.failureCount) == [0, 5])
    #expect(report.migrations.map(\.rewritten) == [225 + 225, 226])
    let users = database.collection("users")
    #expect(try await users.listIndexes().map(\.name) == ["called.first unique"])
    #expect(try await users.count.getAggregation().count == 231)
    #expect(try await database.verify(depth: .full).isEmpty)
    try await database.close()
  }

  @Test func `A reader can try a migration, and cannot carry it out`() async throws {
    let world = SimulatedWorld(seed: 2)
    let database = try await Database.open(at: "/db", environment: world.environment)
    try await database.document("items/a").setData(["price": 1])
    try await database.synchronize()
    let reader = try await Database.open(
      at: "/db", options: Database.Options(access: .readOnly), environment: world.environment)
    let migrator = Self.migrator("one")
    #expect(try await migrator.dryRun(reader).migrations.map(\.rewritten) == [1])
    await #expect(throws: DatabaseError.self) { try await migrator.migrate(reader) }
    try await migrator.migrate(database)
    try await reader.refresh()
    #expect(try await migrator.migrate(reader) == MigrationReport())
    try await reader.close()
    try await database.close()
  }

  @Test func `A cancelled one continues where it was`() async throws {
    let database = try await Database.underTest()
    for number in 0..<1_000 {
      try await database.document("items/i\(number)").setData(["n": number], durability: .memory)
    }
    let migrator = Self.migrator("one")
    let first = Guarded<[MigrationProgress]>([])
    let task = Task {
      try await migrator.migrate(database) { progress in
        first.withLock { $0.append(progress) }
        if progress.documents >= 300 { unsafe withUnsafeCurrentTask { unsafe $0?.cancel() } }
      }
    }
    let error = await #expect(throws: DatabaseError.self) { try await task.value }
    #expect(error?.code == .cancelled)
    let seen = first.withLock { $0 }
    #expect(seen.map(\.documents) == [100, 200, 300])
    #expect(seen.map(\.rewritten) == [100, 200, 300])
    #expect(seen.allSatisfy { $0.migration == "one" && $0.total >= 300 && $0.steps == 1 })
    let report = try await migrator.migrate(database)
    #expect(report.migrations.map(\.rewritten) == [700])
    for number in 0..<1_000 {
      #expect(try await Self.log("items/i\(number)", database) == ["one"])
    }
  }

  // MARK: - Fields

  @Test func `A field's declarations move to its new name`() async throws {
    let world = SimulatedWorld(seed: 3)
    let database = try await Database.open(at: "/db", environment: world.environment)
    let diary = database.collection("diary")
    try await diary.createIndex(on: ["date", "-place.name"])
    try await diary.createIndex(on: ["place.name"], unique: true, nullsDistinct: false)
    try await diary.createIndex(on: ["n"], where: .whereField("place", isNotEqualTo: nil))
    try await diary.createIndex(onArray: "tags")
    try await diary.linkBlobs(field: "place.photo", under: "images")
    try await diary.setTimeToLive(field: "place.until")
    let photo = database.storage.reference(withPath: "images/a.png")
    try await photo.putData([1, 2, 3])
    let until = Value.timestamp(Timestamp(unchecked: world.environment.now() + 1_000_000_000_000))
    for number in 0..<5 {
      try await diary.document("d\(number)").setData([
        "n": number, "date": number, "tags": ["t"],
        "place": [
          "name": Value.string("p\(number)"), "photo": "images/a.png", "until": until,
        ],
      ])
    }
    try await diary.document("over").setData([
      "place": ["until": Value.timestamp(Timestamp(unchecked: 1))]
    ])
    try await diary.document("both").setData(["place": ["name": "q"], "where": 1])
    var migrator = Migrator()
    migrator.register("where") { $0.renameField("place", to: "where", in: "diary") }
    let dry = try await migrator.dryRun(database)
    let report = try await migrator.migrate(database)
    #expect(dry == report)
    #expect(report.migrations[0].rewritten == 5)
    #expect(report.migrations[0].failures.map(\.path) == ["diary/both"])
    #expect(
      try await diary.listIndexes().map(\.name).sorted() == [
        "date,-where.name", "n where where != null", "tags[]",
        "where.name unique nulls not distinct",
      ])
    let declared = try await database.declarations()
    #expect(declared.timeToLive.map(\.field) == ["where.until"])
    #expect(declared.links.map(\.field) == ["where.photo"])
    #expect(try await photo.data(maxSize: 100).count == 3)
    let found = diary.whereField("where.name", isEqualTo: "p3")
    #expect(try await found.getDocuments().documents.map(\.documentID) == ["d3"])
    #expect(try await found.explain().access != .scan)
    #expect(try await !diary.document("over").getDocument().exists)
    #expect(try await database.verify(depth: .full).isEmpty)
    // The last link takes the object along.
    for number in 0..<5 { try await diary.document("d\(number)").delete() }
    await #expect(throws: DatabaseError.self) { try await photo.getMetadata() }
    try await database.close()
  }
}
