// Renamed collections: one commit moves everything to the new name, for all reads, queries, writes,
// listeners, followers and backups, and leaves nothing under the old one.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct CollectionRenamingTests {
  private static func rename(
    _ from: String, _ to: String, in database: Database
  ) async throws {
    var migrator = Migrator()
    for name in try await database.listMigrations().map(\.name) {
      migrator.register(name) { _ in }
    }
    let number = try await database.listMigrations().count
    migrator.register("renaming \(number)") { $0.renameCollection(from, to: to) }
    let dry = try await migrator.dryRun(database)
    #expect(try await migrator.migrate(database) == dry)
  }

  private static func open(
    _ world: SimulatedWorld, keepsChanges: Bool = false, readOnly: Bool = false
  ) async throws -> Database {
    try await Database.open(
      at: "/db",
      options: Database.Options(
        shardCount: 2, access: readOnly ? .readOnly : .readWrite,
        changeRetention: keepsChanges ? Database.ChangeRetention() : nil),
      environment: world.environment)
  }

  private static func fill(_ database: Database) async throws {
    let users = database.collection("users")
    try await users.createIndex(on: ["n"])
    try await users.createIndex(on: ["email"], unique: true)
    try await database.collectionGroup("posts").createIndex(on: ["n"])
    try await database.collectionGroup("people").createIndex(on: ["-n"])
    try await users.setTimeToLive(field: "until")
    let blob = try await database.storage.put(Array(repeating: 7, count: 5_000))
    for number in 0..<30 {
      let user = users.document("u\(number)")
      try await user.setData([
        "n": number % 5, "email": "e\(number)", "photo": blob,
        "friend": users.document("u\((number + 1) % 30)"),
      ])
      try await user.collection("posts").document("p").setData(["n": number])
    }
  }

  /// Checks that everything that `fill` made is below `name`, and nothing below `other`.
  private static func check(_ database: Database, _ name: String, not other: String) async throws {
    let users = database.collection(name)
    #expect(try await users.count.getAggregation().count == 30)
    #expect(try await users.whereField("n", isEqualTo: 3).getDocuments().count == 6)
    #expect(try await users.whereField("n", isEqualTo: 3).explain().indexName == "n")
    #expect(try await users.document("u4").getDocument()["email"] as String? == "e4")
    #expect(try await users.document("u4/posts/p").getDocument()["n"] as Int? == 4)
    let photo = try await users.document("u4").getDocument().data()["photo"]?.blob
    #expect(try await database.storage.data(of: try #require(photo)).count == 5_000)
    let posts = database.collectionGroup("posts").whereField("n", isEqualTo: 9)
    #expect(
      try await posts.getDocuments().documents.map(\.reference.path) == ["\(name)/u9/posts/p"])
    await #expect(throws: DatabaseError.self) {
      try await users.document("new").setData(["email": "e4"])
    }
    #expect(try await database.collection(other).getDocuments().isEmpty)
    #expect(try await !database.document("\(other)/u4").getDocument().exists)
    #expect(try await !database.document("\(other)/u4/posts/p").getDocument().exists)
    #expect(try await database.declarations().timeToLive.map(\.collection) == [name])
    let groups = try await database.collectionGroup("people").listIndexes().map(\.name)
    #expect(groups == (name == "people" ? ["-n group"] : []))
    #expect(try await database.listCollections().map(\.path) == [name])
    try await auditIndexes(of: users)
  }

  @Test func `All that was there is there under the new name, and nothing under the old`()
    async throws
  {
    let world = SimulatedWorld(seed: 1)
    var database = try await Self.open(world)
    try await Self.fill(database)
    let version = try await database.document("users/u4").getDocument().version
    try await Self.rename("users", "people", in: database)
    await database.finishWhatWasBegun()
    try await Self.check(database, "people", not: "users")
    #expect(try await database.document("people/u4").getDocument().version == version)
    #expect(try await database.verify(depth: .full).isEmpty)
    try await database.close()
    database = try await Self.open(world)
    try await Self.check(database, "people", not: "users")
    // And back, which earlier cached catalogs must not hinder.
    try await Self.rename("people", "users", in: database)
    await database.finishWhatWasBegun()
    try await Self.check(database, "users", not: "people")
    #expect(try await database.verify(depth: .full).isEmpty)
    try await database.close()
    let saved = try await Database.salvage(
      from: "/db", to: "/saved", environment: world.environment)
    #expect(saved.losses.isEmpty)
    let copy = try await Database.open(at: "/saved", environment: world.environment)
    await copy.finishWhatWasBegun()
    try await Self.check(copy, "users", not: "people")
    #expect(try await copy.listMigrations().count == 2)
    try await copy.close()
  }

  @Test func `Collections below documents are renamed wherever they are`() async throws {
    let database = try await Database.underTest()
    for user in ["a", "b"] {
      for number in 0..<4 {
        let post = database.document("users/\(user)/posts/p\(number)")
        try await post.setData(["n": number])
        try await post.collection("notes").document("x").setData(["n": number])
      }
    }
    try await database.collection("users/a/posts").createIndex(on: ["n"])
    try await Self.rename("users/any/posts", "users/any/articles", in: database)
    let articles = database.collection("users/b/articles")
    #expect(try await articles.whereField("n", isEqualTo: 2).explain().indexName == "n")
    #expect(try await articles.getDocuments().count == 4)
    #expect(try await database.collectionGroup("notes").getDocuments().count == 8)
    #expect(try await database.document("users/a/articles/p3/notes/x").getDocument().exists)
    #expect(try await database.collection("users/a/posts").getDocuments().isEmpty)
    try await database.document("users/a/posts/new").setData(["n": 1])
    #expect(try await database.collection("users/a/posts").getDocuments().count == 1)
    #expect(try await database.verify(depth: .full).isEmpty)
  }

  @Test func `No rename overwrites a collection, and names can be exchanged`() async throws {
    let database = try await Database.underTest()
    try await database.document("a/x").setData(["n": "a"])
    try await database.document("b/x").setData(["n": "b"])
    var migrator = Migrator()
    migrator.register("wrong") { $0.renameCollection("a", to: "b") }
    let error = await #expect(throws: DatabaseError.self) { try await migrator.migrate(database) }
    #expect(error?.code == .alreadyExists && error?.path == "b")
    await #expect(throws: DatabaseError.self) { try await migrator.dryRun(database) }
    try await database.document("b/x").delete()
    try await database.collection("b").createIndex(on: ["n"])
    await #expect(throws: DatabaseError.self) { try await migrator.migrate(database) }
    // A collection that neither exists nor is declared makes way.
    try await database.collection("b").dropIndex(named: "n")
    try await migrator.migrate(database)
    #expect(try await database.document("b/x").getDocument()["n"] as String? == "a")
    try await database.document("a/y").setData(["n": "new a"])
    for (from, to) in [("a", "c"), ("b", "a"), ("c", "b")] {
      try await Self.rename(from, to, in: database)
    }
    #expect(try await database.document("a/x").getDocument()["n"] as String? == "a")
    #expect(try await database.document("b/y").getDocument()["n"] as String? == "new a")
    #expect(try await database.listCollections().map(\.path).sorted() == ["a", "b"])
    // A collection below documents, and the rest of another.
    try await database.document("a/x/one/d").setData(["f1": 1])
    try await database.document("a/x/two/d").setData(["f2": 1])
    try await database.document("a/x/two/d").delete()
    try await Self.rename("a/x/one", "a/x/two", in: database)
    #expect(try await database.document("a/x/two/d").getDocument()["f1"] as Int? == 1)
    try await database.document("a/x/two/e").setData(["f2": 1])
    #expect(try await database.verify(depth: .full).isEmpty)
    // There is none to rename: a new database needs no migration.
    try await Self.rename("nothing", "something", in: database)
  }

  @Test func `Earlier snapshots have the old name, and transactions notice`() async throws {
    let database = try await Database.underTest()
    try await database.document("users/a").setData(["n": 1])
    let earlier = database.snapshot()
    var attempts = 0
    try await database.runTransaction { transaction in
      let old = try transaction.getDocument(database.document("users/a"))
      let new = try transaction.getDocument(database.document("people/a"))
      attempts += 1
      if attempts == 1 {
        #expect(old.exists && !new.exists)
        try await Task.detached { try await Self.rename("users", "people", in: database) }.value
      } else {
        #expect(!old.exists && new.exists)
      }
      try transaction.setData(["seen": attempts], forDocument: database.document("s/s"))
    }
    #expect(attempts == 2)
    for _ in 0..<2 {
      #expect(try earlier.getDocument(database.document("users/a")).exists)
      #expect(try !earlier.getDocument(database.document("people/a")).exists)
      #expect(try earlier.getDocuments(database.collection("users")).count == 1)
      #expect(try await !database.document("users/a").getDocument().exists)
      #expect(try await database.document("people/a").getDocument().exists)
      #expect(try await database.collection("users").getDocuments().isEmpty)
    }
  }

  @Test func `Listeners see documents leave one name and arrive at the other`() async throws {
    let world = SimulatedWorld(seed: 4)
    let database = try await Self.open(world, keepsChanges: true)
    try await database.document("users/a").setData(["n": 1])
    let token = try database.changeToken()
    var old = database.collection("users").snapshots.makeAsyncIterator()
    var new = database.collection("people").whereField("n", isEqualTo: 1).snapshots
      .makeAsyncIterator()
    var document = database.document("people/a").snapshots.makeAsyncIterator()
    #expect(try await old.next()?.documents.count == 1)
    #expect(try await new.next()?.documents.isEmpty == true)
    #expect(try await document.next()?.exists == false)
    try await Self.rename("users", "people", in: database)
    #expect(try await old.next()?.documents.isEmpty == true)
    #expect(try await new.next()?.documents.map(\.documentID) == ["a"])
    #expect(try await document.next()?.exists == true)
    try await database.document("people/b").setData(["n": 1])
    #expect(try await new.next()?.documents.map(\.documentID) == ["a", "b"])
    // The feed reports the renaming, and nothing about records.
    var feed = database.changes(since: token).makeAsyncIterator()
    let renamed = try await feed.next()
    #expect(renamed?.renamedCollection == .init(from: "users", to: "people"))
    #expect(renamed?.documents.isEmpty == true && renamed?.droppedCollection == nil)
    #expect(try await feed.next()?.documents.map(\.reference.path) == ["people/b"])
    for path in ["users", "people"] {
      await #expect {
        for try await _ in database.collection(path).snapshots(since: token) {}
      } throws: { ($0 as? DatabaseError)?.code == .outOfRange }
    }
    try await database.close()
  }

  @Test func `A follower of another process's database sees the same`() async throws {
    let world = SimulatedWorld(seed: 5)
    let database = try await Self.open(world)
    try await Self.fill(database)
    let reader = try await Self.open(world, readOnly: true)
    var old = reader.collection("users").snapshots.makeAsyncIterator()
    var new = reader.collection("people").snapshots.makeAsyncIterator()
    #expect(try await old.next()?.documents.count == 30)
    #expect(try await new.next()?.documents.isEmpty == true)
    try await Self.rename("users", "people", in: database)
    await database.finishWhatWasBegun()
    try await reader.refresh()
    #expect(try await old.next()?.documents.isEmpty == true)
    #expect(try await new.next()?.documents.count == 30)
    #expect(try await reader.document("people/u4/posts/p").getDocument().exists)
    #expect(try await !reader.document("users/u4/posts/p").getDocument().exists)
    try await Self.rename("people", "users", in: database)
    try await reader.refresh()
    #expect(try await old.next()?.documents.count == 30)
    #expect(try await new.next()?.documents.isEmpty == true)
    try await reader.close()
    try await database.close()
  }

  @Test func `Schemas and unfinished upgrades move along`() async throws {
    let world = SimulatedWorld(seed: 6)
    var database = try await Self.open(world)
    for number in 0..<10 { try await database.document("a/d\(number)").setData(["n": number]) }
    func declare(_ path: String) async throws {
      let (ends, end) = AsyncStream.makeStream(of: Void.self)
      try await database.collection(path).setSchema(version: 3) { fields, _ in
        guard fields["n"] != 5 else { throw DatabaseError(.invalidArgument, "five") }
        fields["m"] = fields["n"]
      } progress: { progress in
        if progress.isComplete { end.yield() }
      }
      for await _ in ends { break }
    }
    try await declare("a")
    try await Self.rename("a", "b", in: database)
    for _ in 0..<2 {
      let b = database.collection("b")
      await #expect(throws: DatabaseError.self) { try await b.document("d5").getDocument() }
      let found = try await b.whereField("m", isGreaterThan: 3).getDocuments()
      #expect(found.count == 5)
      #expect(found.unreadable.map(\.documentID) == ["d5"])
      try await database.close()
      database = try await Self.open(world)
      try await declare("b")
    }
    try await database.close()
  }
}
