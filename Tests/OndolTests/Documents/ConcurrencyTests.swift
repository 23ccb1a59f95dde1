// Many concurrent tasks on the same documents, collections and indexes: nothing is lost, nothing is
// done twice.

import Foundation
import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct ConcurrencyTests {
  @Test func `Increments and unions of many tasks are all counted`() async throws {
    let database = try await Database.underTest()
    let document = database.document("c/d")
    try await document.setData(["n": 0])
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<20 {
        group.addTask {
          for round in 0..<50 {
            try await document.updateData([
              "n": FieldValue.increment(1), "all": FieldValue.arrayUnion(["\(task).\(round)"]),
              "by.\(task)": FieldValue.increment(1),
            ])
          }
        }
      }
      try await group.waitForAll()
    }
    let read = try await document.getDocument()
    #expect(read["n"] as Int? == 1_000)
    #expect((read["all"] as [String]?)?.count == 1_000)
    #expect(
      read["by"] as [String: Int]?
        == Dictionary(uniqueKeysWithValues: (0..<20).map { ("\($0)", 50) }))
    try await database.close()
  }

  @Test func `A thousand increments at once of one document are a thousand commits`() async throws {
    let database = try await Database.underTest()
    let document = database.document("c/d")
    try await document.setData(["n": 0])
    let before = database.engine.metrics.sequence.rawValue
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<1_000 {
        group.addTask { try await document.updateData(["n": FieldValue.increment(1)]) }
      }
      try await group.waitForAll()
    }
    #expect(try await document.getDocument()["n"] as Int? == 1_000)
    #expect(database.engine.metrics.sequence.rawValue == before + 1_000)
    try await database.close()
  }

  @Test func `Writes of any durability can be made safe`() async throws {
    let database = try await Database.underTest(
      options: .init(durability: .periodic(.milliseconds(100))))
    try await database.document("c/a").setData(["n": 1])
    try await database.document("c/b").setData(["n": 2], durability: .memory)
    try await database.synchronize()
    #expect(try await database.document("c/b").getDocument()["n"] as Int? == 2)
    try await database.close()
  }

  @Test func `One of many concurrent creators of a document wins`() async throws {
    let database = try await Database.underTest()
    let winners = try await withThrowingTaskGroup(of: Bool.self) { group in
      for task in 0..<50 {
        group.addTask {
          do {
            try await database.document("users/a").create(["by": task])
            return true
          } catch let error as DatabaseError where error.code == .alreadyExists {
            return false
          }
        }
      }
      return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
    }
    #expect(winners == 1)
    try await database.close()
  }

  @Test func `One of many concurrent changes of a version wins`() async throws {
    let database = try await Database.underTest()
    let document = database.document("users/a")
    let version = try await document.setData(["n": 0]).version
    let winners = try await withThrowingTaskGroup(of: Bool.self) { group in
      for task in 1...50 {
        group.addTask {
          do {
            try await document.setData(["n": task], ifVersion: version)
            return true
          } catch let error as DatabaseError where error.code == .aborted {
            return false
          }
        }
      }
      return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
    }
    #expect(winners == 1)
    try await database.close()
  }

  @Test func `Collections, names and indexes made at once all come to be`() async throws {
    let database = try await Database.underTest()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<12 {
        group.addTask {
          for round in 0..<20 {
            let root = database.collection("root\(round % 7)")
            try await root.document("d\(task).\(round)").setData([
              "common": round, "field\(task)": task, "name\(round)": ["deep\(task)": true],
            ])
            try await root.document("p").collection("sub\(task % 3)").document("d\(task).\(round)")
              .setData(["n": task])
          }
        }
      }
      for root in 0..<7 {
        group.addTask { try await database.collection("root\(root)").createIndex(on: ["common"]) }
        group.addTask { try await database.collection("root\(root)").createIndex(on: ["common"]) }
        group.addTask {
          try await database.collection("root\(root)").createIndex(on: ["-common", "field1"])
        }
      }
      try await group.waitForAll()
    }
    var documents = 0
    for root in 0..<7 {
      let collection = database.collection("root\(root)")
      let found = try await collection.getDocuments()
      documents += found.count
      for document in found.documents {
        let task = try #require(document.documentID.dropFirst().split(separator: ".").first)
        #expect(document.get(FieldPath(["field\(task)"])) as Int? == Int(task))
      }
      #expect(try await collection.listIndexes().count == 2)
      try await auditIndexes(of: collection)
      for sub in 0..<3 {
        documents += try await collection.document("p").collection("sub\(sub)").getDocuments().count
      }
    }
    #expect(documents == 480)
    try await database.close()
  }

  @Test func `An index built while documents are written has them all`() async throws {
    let database = try await Database.underTest()
    let collection = database.collection("c")
    for number in 0..<600 {
      try await collection.document("d\(number)").setData(["n": number % 10], durability: .memory)
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<4 {
        group.addTask {
          for round in 0..<300 {
            let document = collection.document("d\((round * 7 + task * 131) % 700)")
            switch round % 4 {
            case 0: try await document.delete(durability: .memory)
            case 1: try await document.setData(["m": round], durability: .memory)
            default: try await document.setData(["n": round % 10, "m": task], durability: .memory)
            }
          }
        }
      }
      group.addTask { try await collection.createIndex(on: ["n"]) }
      group.addTask { try await collection.createIndex(on: ["-m", "n"]) }
      try await group.waitForAll()
    }
    try await auditIndexes(of: collection)
    let query = collection.whereField("n", isEqualTo: 3)
    #expect(try await query.explain().indexName == "n")
    let scanned = try await collection.getDocuments().documents.filter { $0["n"] as Int? == 3 }
    #expect(try await query.getDocuments().documents == scanned)
    try await database.close()
  }

  @Test func `Reads do not wait for a commit that is on its way to the device`() async throws {
    var environment = Environment.memory()
    let workers = HeldWorkers()
    environment.threads = workers
    var engineOptions = EngineOptions()
    // The log's own thread makes syncs, and it is held.
    engineOptions.callersSync = false
    let database = try await Database.open(
      at: "/db", environment: environment, engineOptions: engineOptions)
    let items = database.collection("items")
    let item = items.document("a")
    try await items.createIndex(on: ["n"])
    try await item.setData(["n": 1])
    workers.hold()
    let write = Task { try await item.setData(["n": 2], durability: .power) }
    while !workers.hasWaiting { await Task.yield() }
    #expect(try await item.getDocument()["n"] as Int? == 1)
    #expect(try database.snapshot().getDocument(item)["n"] as Int? == 1)
    #expect(try await items.whereField("n", isEqualTo: 1).getDocuments().count == 1)
    #expect(try await items.count.getAggregation().count == 1)
    for try await snapshot in items.snapshots {
      #expect(snapshot.documents.map { $0["n"] as Int? } == [1])
      break
    }
    workers.release()
    _ = try await write.value
    #expect(try await item.getDocument()["n"] as Int? == 2)
    try await database.close()
  }

  @Test func `Many readers see whole commits while writers go on`() async throws {
    let database = try await Database.underTest()
    let pair = database.document("c/pair")
    try await pair.setData(["a": 0, "b": 0])
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<2 {
        group.addTask {
          for _ in 0..<100 {
            try await pair.updateData([
              "a": FieldValue.increment(1), "b": FieldValue.increment(1),
            ])
          }
        }
      }
      for _ in 0..<2 {
        group.addTask {
          var last = Version.missing
          for _ in 0..<200 {
            let read = try await pair.getDocument()
            #expect(read["a"] as Int? == read["b"] as Int?)
            #expect(read.version >= last)
            last = read.version
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try await pair.getDocument()["a"] as Int? == 200)
  }
}
