// Calls that walk through rows outside memory: each block comes from disk on a thread for that,
// never on one of the pool, where waiting for the disk would block everyone.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct ColdCatalogTests {
  private static let documents = 1_100

  private struct Call: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var run: @Sendable (Database) async throws -> Void

    init(_ name: String, _ run: @escaping @Sendable (Database) async throws -> Void) {
      testDescription = name
      self.run = run
    }
  }

  private static let calls: [Call] = [
    Call("creating an index") { database in
      try await database.collection("items").createIndex(on: ["-n"])
    },
    Call("creating a group's index") { database in
      try await database.collectionGroup("parts").createIndex(on: ["n"])
    },
    Call("going on with an index") { database in
      while try await database.family("unfinished")?.collections.values.contains(where: { entry in
        entry.indexes.contains { $0.state != .ready }
      }) == true { await Task.yield() }
    },
    Call("listing indexes") { database in
      let index = try await database.collection("items").listIndexes().first
      #expect(index?.name == "n")
      let entries = index?.entries ?? 0
      #expect(abs(entries - documents) < documents / 10, "\(entries)")
    },
    Call("listing collections") { database in
      #expect(try await database.listCollections().count == 3)
      let collections = try await database.document("items/7").listCollections()
      #expect(collections.map(\.collectionID) == ["parts"])
    },
    Call("a group's query") { database in
      let parts = try await database.collectionGroup("parts").getDocuments()
      #expect(parts.count == documents)
    },
    Call("deleting what is below a document") { database in
      try await database.document("items/7").delete(recursive: true)
      #expect(try await database.collection("items/7/parts").getDocuments().isEmpty)
    },
    Call("dropping a collection below a document") { database in
      try await database.collection("items/7/parts").drop()
      #expect(try await database.collection("items/7/parts").getDocuments().isEmpty)
    },
    Call("dropping a collection") { database in
      try await database.collection("items").drop()
      #expect(try await database.collection("items").getDocuments().isEmpty)
    },
    Call("dropping an index") { database in
      try await database.collection("items").dropIndex(named: "n")
    },
    Call("declaring when documents end") { database in
      try await database.collection("items").setTimeToLive(field: "end")
      while try await database.collection("items").whereField("end", isEqualTo: 0).getDocuments()
        .count > 0
      { await Task.yield() }
    },
    Call("upgrading documents") { database in
      let items = database.collection("items")
      try await items.setSchema(version: 1) { fields, _ in fields["new"] = true }
      let pattern = CollectionPattern(["items"])
      while try await database.family("items")?.collections[pattern]?.schema.epochs.isEmpty == false
      { await Task.yield() }
    },
    Call("counting all there is") { database in
      let contents = try await database.contents()
      #expect(contents.collections.map(\.documents).max() == documents)
    },
  ]

  /// A database that was just opened, with nothing in its cache and no memtable.
  private func openCold(_ watch: WatchedReads) async throws -> Database {
    let environment = watch.watching(.memory())
    var options = EngineOptions()
    options.blockSize = 512
    let database = try await Database.open(
      at: "/db", environment: environment, engineOptions: options)
    let batch = database.batch()
    for number in 0..<Self.documents {
      let item = database.document("items/\(number)")
      try batch.setData(["n": number, "s": String(repeating: "x", count: 60)], forDocument: item)
      try batch.setData(["n": number], forDocument: database.document("items/7/parts/\(number)"))
      try batch.setData(["n": number], forDocument: database.document("unfinished/\(number)"))
    }
    try batch.setData(["n": 1], forDocument: database.document("others/o"))
    try await batch.commit(durability: .process)
    try await database.collection("items").createIndex(on: ["n"])
    _ = try await database.changeCatalog(of: "unfinished") { (edit) throws(DatabaseError) in
      try edit.declareIndex(IndexKind([IndexField(["n"])]), of: CollectionPattern(["unfinished"]))
    }
    try await database.close()
    watch.forget()
    return try await Database.open(at: "/db", environment: environment, engineOptions: options)
  }

  @Test(arguments: calls)
  private func `No thread of the pool waits for the disk`(call: Call) async throws {
    let watch = WatchedReads()
    let database = try await openCold(watch)
    watch.forget()
    try await call.run(database)
    #expect(watch.elsewhere == 0)
    #expect(watch.onWorkers > 0)
    try await auditIndexes(of: database.collection("items"))
    try await database.close()
  }

  @Test func `A call that may block is noticed`() async throws {
    let watch = WatchedReads()
    let database = try await openCold(watch)
    watch.forget()
    _ = try database.snapshot().getDocuments(database.collection("items"))
    #expect(watch.elsewhere > 0)
    try await database.close()
  }
}
