// Listeners in a database that is open only for reading: they receive the writer's commits without
// a request to look, and nothing looks while nobody listens. On the disk the system wakes the
// reader. In memory and in simulated worlds it looks from time to time.

import Foundation
import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@MainActor private func waitUntilShown(_ condition: @MainActor () -> Bool) async {
  while !condition() { await Task.yield() }
}

@Suite struct `A listener beside the writer` {
  private func open(
    _ access: Database.Access, _ environment: Environment, at path: String = "db",
    keeps retention: Database.ChangeRetention? = nil
  ) async throws -> Database {
    try await Database.open(
      at: path, options: Database.Options(access: access, changeRetention: retention),
      environment: environment)
  }

  /// A writer and a reader of one database, in memory or on the disk.
  private func withBoth(
    onDisk: Bool, _ body: (_ writer: Database, _ reader: Database) async throws -> Void
  ) async throws {
    let place = FileManager.default.temporaryDirectory.appending(path: "ondol-\(UUID())")
    defer { try? FileManager.default.removeItem(at: place) }
    let environment = onDisk ? Environment.live() : Environment.memory()
    let path = onDisk ? place.path(percentEncoded: false) : "db"
    let writer = try await open(.readWrite, environment, at: path)
    let reader = try await open(.readOnly, environment, at: path)
    try await body(writer, reader)
    try await writer.close()
    try await reader.close()
    #expect(reader.observers.count == 0)
    #expect(!reader.audience.isServed)
  }

  // MARK: - Received changes

  @Test(arguments: [false, true])
  func `It receives commits from the first on, without a refresh`(onDisk: Bool) async throws {
    try await withBoth(onDisk: onDisk) { writer, reader in
      var documents = reader.collection("items").order(by: "n").snapshots.makeAsyncIterator()
      var one = reader.document("items/a").snapshots.makeAsyncIterator()
      var total = reader.collection("items").aggregate([.sum("n"), .count()]).snapshots
        .makeAsyncIterator()
      #expect(try await documents.next()?.count == 0)
      #expect(try await one.next()?.exists == false)
      #expect(try await total.next()?.count == 0)

      let batch = writer.batch()
      try batch.setData(["n": 2], forDocument: writer.document("items/a"))
      try batch.setData(["n": 1], forDocument: writer.document("items/b"))
      try await batch.commit()
      let first = try #require(try await documents.next())
      #expect(first.documents.map(\.documentID) == ["b", "a"])
      #expect(first.documentChanges.map(\.type) == [.added, .added])
      #expect(Set(first.documents.map(\.version)).count == 1)
      #expect(try await one.next()?.data() == ["n": 2])
      #expect(try await total.next()?.count == 2)

      try await writer.document("items/b").updateData(["n": 3])
      let second = try #require(try await documents.next())
      #expect(second.documentChanges.map(\.type) == [.modified])
      #expect(second.documents.map(\.documentID) == ["a", "b"])
      try await writer.document("items/a").delete()
      #expect(try await documents.next()?.documentChanges.map(\.type) == [.removed])
      #expect(try await one.next()?.exists == false)
    }
  }

  @Test func `It follows a writer that closes, reopens, flushes and merges`() async throws {
    try await withBoth(onDisk: true) { first, reader in
      let items = reader.collection("items")
      var snapshots = items.snapshots.makeAsyncIterator()
      _ = try await snapshots.next()
      try await first.close()
      let writer = try await open(.readWrite, .live(), at: first.engine.directory.path)
      var seen = 0
      for round in 1...20 {
        try await writer.document("items/d\(round)").setData(["n": round])
        if round % 4 == 0 { try await writer.engine.flush() }
        if round % 8 == 0 { try await writer.compact() }
        while seen < round { seen = try #require(try await snapshots.next()).count }
        #expect(seen == round)
      }
      try await writer.close()
    }
  }

  @Test func `A dropped collection is empty, and a recreated one is the new one`() async throws {
    try await withBoth(onDisk: false) { writer, reader in
      try await writer.document("items/a").setData(["n": 1])
      var snapshots = reader.collection("items").snapshots.makeAsyncIterator()
      while try #require(try await snapshots.next()).count == 0 {}
      try await writer.collection("items").drop()
      let dropped = try #require(try await snapshots.next())
      #expect(dropped.documentChanges.map(\.type) == [.removed])
      try await writer.document("items/b").setData(["m": 2])
      #expect(try await snapshots.next()?.documents.map { $0.data() } == [["m": 2]])
    }
  }

  @Test func `Joins, groups and repeated queries also follow`() async throws {
    try await withBoth(onDisk: false) { writer, reader in
      try await writer.document("items/a").setData(["owner": "ann", "n": 1])
      let items = reader.collection("items")
      var joined = items.lookup("owner", in: "users", as: "user").snapshots.makeAsyncIterator()
      var groups = items.count.group(by: "owner").snapshots.makeAsyncIterator()
      while try #require(try await joined.next()).count == 0 {}
      while try #require(try await groups.next()).isEmpty {}
      try await writer.document("users/ann").setData(["name": "Ann"])
      #expect(try await joined.next()?.documents.first?.get("user.name") == "Ann")
      try await writer.document("items/b").setData(["owner": "bob", "n": 2])
      #expect(try await groups.next()?.map(\.aggregation.count) == [1, 1])
      #expect(try await joined.next()?.count == 2)
    }
  }

  @MainActor @Test func `An object for user interfaces follows`() async throws {
    struct Item: Codable, Equatable { var n: Int }
    try await withBoth(onDisk: true) { writer, reader in
      let live = LiveQuery(reader.collection("items").order(by: "n"), as: Item.self)
      for number in [3, 1, 2] {
        try await writer.document("items/\(number)").setData(["n": number])
      }
      await waitUntilShown { live.items == [Item(n: 1), Item(n: 2), Item(n: 3)] }
    }
  }

  @Test func `A step on the app's request is delivered like any other`() async throws {
    try await withBoth(onDisk: false) { writer, reader in
      var snapshots = reader.collection("items").order(by: "n").snapshots.makeAsyncIterator()
      _ = try await snapshots.next()
      var last = 0
      for number in 1...30 {
        try await writer.document("items/d\(number)").setData(["n": number])
        try await reader.refresh()
        #expect(try await reader.collection("items").getDocuments().count == number)
        if number % 5 == 0 { last = try #require(try await snapshots.next()).count }
        #expect(last == number / 5 * 5)
      }
    }
  }

  // MARK: - Ends

  @Test func `Without listeners nothing reads the files`() async throws {
    try SimulationExecutor.run(seed: 7) { executor in
      let world = SimulatedWorld(seed: 7, threads: executor)
      let writer = try await open(.readWrite, world.environment)
      try await writer.document("items/a").setData(["n": 1])
      let reader = try await open(.readOnly, world.environment)
      var snapshots: Updates<QuerySnapshot>.Iterator? =
        reader.collection("items").snapshots.makeAsyncIterator()
      #expect(try await snapshots?.next()?.count == 1)
      #expect(reader.audience.count == 1)
      #expect(reader.audience.isServed)
      let looks = world.fileSystem.count(of: .read)
      while world.fileSystem.count(of: .read) < looks + 20 { await executor.doze() }

      snapshots = nil
      #expect(reader.audience.count == 0)
      #expect(!reader.audience.isServed)
      // All work that began ends.
      for _ in 0..<100 { await executor.doze() }
      let last = world.fileSystem.operations
      for _ in 0..<100 { await executor.doze() }
      #expect(world.fileSystem.operations == last)
      try await reader.close()
      try await writer.close()
    }
  }

  @Test func `Many come and go, and closing ends the rest`() async throws {
    try await withBoth(onDisk: true) { writer, reader in
      for round in 0..<20 {
        try await writer.document("items/a").setData(["n": round])
        for try await snapshot in reader.document("items/a").snapshots {
          if snapshot.get("n") == round { break }
        }
        #expect(reader.audience.count == 0)
      }
      let tasks = (0..<10).map { number in
        Task {
          var count = 0
          for try await _ in reader.collection("items").limit(to: number % 3 + 1).snapshots {
            count += 1
          }
          return count
        }
      }
      while reader.observers.count < 10 { await Task.yield() }
      try await reader.close()
      for task in tasks { #expect(try await task.value <= 1) }
      #expect(reader.audience.count == 0)
    }
  }

  @Test func `A removed database is an error for listeners`() async throws {
    try SimulationExecutor.run(seed: 3) { executor in
      let world = SimulatedWorld(seed: 3, threads: executor)
      let writer = try await open(.readWrite, world.environment)
      try await writer.document("items/a").setData(["n": 1])
      try await writer.close()
      let reader = try await open(.readOnly, world.environment)
      var snapshots = reader.collection("items").snapshots.makeAsyncIterator()
      #expect(try await snapshots.next()?.count == 1)
      let directory = try world.environment.fileSystem.openDirectory(at: "db", create: false)
      try directory.remove("SUPER")
      let error = await #expect(throws: DatabaseError.self) { _ = try await snapshots.next() }
      #expect(error?.code == .dataLoss)
      #expect(try await snapshots.next() == nil)
      #expect(reader.audience.count == 0)
      try await reader.close()
    }
  }

  // MARK: - The change feed

  @Test(arguments: [false, true])
  func `The change feed tells every commit, whatever becomes of the files`(
    onDisk: Bool
  ) async throws {
    let place = FileManager.default.temporaryDirectory.appending(path: "ondol-\(UUID())")
    defer { try? FileManager.default.removeItem(at: place) }
    let environment = onDisk ? Environment.live() : Environment.memory()
    let path = onDisk ? place.path(percentEncoded: false) : "db"
    let retention = Database.ChangeRetention(duration: nil, bytes: nil)
    var writer = try await open(.readWrite, environment, at: path, keeps: retention)
    let reader = try await open(.readOnly, environment, at: path)
    let start = try reader.changeToken()
    #expect(start == (try writer.changeToken()))
    var feed = reader.changes().makeAsyncIterator()
    for number in 1...24 {
      let made = try await writer.document("items/a").setData(["n": number])
      let change = try #require(try await feed.next())
      #expect(change.version == made.version)
      #expect(change.documents.map(\.after).map { $0.get("n") } == [Value.integer(Int64(number))])
      switch number % 8 {
      case 2: try await writer.engine.flush()
      case 4: try await writer.compact()
      case 6:
        try await writer.close()
        writer = try await open(.readWrite, environment, at: path, keeps: retention)
      default: break
      }
    }
    var count = 0
    for try await _ in reader.changes(since: start) {
      count += 1
      if count == 24 { break }
    }
    #expect(reader.audience.count == 1)
    try await reader.close()
    #expect(try await feed.next() == nil)
    #expect(reader.audience.count == 0)
    try await writer.close()
  }

  @Test func `The change feed goes on when a writer was lost and the next one has recovered`()
    async throws
  {
    let environment = Environment.memory()
    try await open(.readWrite, environment, keeps: .init()).close()
    let reader = try await open(.readOnly, environment)
    let start = try reader.changeToken()
    var feed = reader.changes().makeAsyncIterator()
    var snapshots = reader.collection("items").snapshots.makeAsyncIterator()
    #expect(try await snapshots.next()?.count == 0)
    for life in 0..<5 {
      weak var engine: Engine?
      do {
        let writer = try await open(.readWrite, environment, keeps: .init())
        engine = writer.engine
        for number in 0..<4 {
          let made = try await writer.document("items/d\(life)-\(number)").setData(["n": number])
          // Sometimes delivered before the writer is lost, sometimes after.
          guard (life + number).isMultiple(of: 3) else { continue }
          while let change = try await feed.next(), change.version < made.version {}
        }
      }
      // Released and not closed: the next one finds an unclean end.
      for _ in 0..<100_000 where engine != nil { await Task.yield() }
    }
    let writer = try await open(.readWrite, environment, keeps: .init())
    let last = try await writer.document("items/last").setData(["n": 0])
    while let change = try await feed.next(), change.version < last.version {}
    while let snapshot = try await snapshots.next(), snapshot.count < 21 {}
    var ids: [String] = []
    for try await change in reader.changes(since: start) {
      ids += change.documents.map(\.reference.documentID)
      if change.version == last.version { break }
    }
    let expected = (0..<5).flatMap { life in (0..<4).map { "d\(life)-\($0)" } } + ["last"]
    #expect(ids == expected)
    try await reader.close()
    try await writer.close()
  }

  @Test func `A reader receives the differences of a result since a token`() async throws {
    let environment = Environment.memory()
    let writer = try await open(.readWrite, environment, keeps: .init())
    for number in 0..<5 { try await writer.document("items/d\(number)").setData(["n": number]) }
    let token = try writer.changeToken()
    let reader = try await open(.readOnly, environment)
    try await writer.document("items/d1").delete()
    try await writer.document("items/d9").setData(["n": 9])
    var snapshots = reader.collection("items").order(by: "n").snapshots(since: token)
      .makeAsyncIterator()
    // The reader may see the state before the two, in between, or after.
    var list = ["d0", "d1", "d2", "d3", "d4"]
    while list != ["d0", "d2", "d3", "d4", "d9"] {
      let snapshot = try #require(try await snapshots.next())
      for change in snapshot.documentChanges {
        if let index = change.oldIndex { list.remove(at: index) }
        if let index = change.newIndex { list.insert(change.document.documentID, at: index) }
      }
      #expect(list == snapshot.documents.map(\.documentID))
      if list.count == 5, list.last == "d9" {
        #expect(snapshot.changeToken == (try writer.changeToken()))
      }
    }
    try await reader.close()
    try await writer.close()
  }

  @Test func `A reader has no feed if the writer keeps no changes`() async throws {
    try await withBoth(onDisk: false) { _, reader in
      let error = await #expect(throws: DatabaseError.self) {
        for try await _ in reader.changes() {}
      }
      #expect(error?.code == .failedPrecondition)
      #expect(reader.audience.count == 0)
    }
  }
}
