// What closing, reopening and interruptions leave of documents and indexes.

import Foundation
import OndolEngine
import Testing

@testable import Ondol

/// A directory that is removed with the test.
private func withDirectory<R>(_ body: (String) async throws -> R) async throws -> R {
  let url = FileManager.default.temporaryDirectory.appending(path: "ondol-\(UUID().uuidString)")
  do {
    let result = try await body(url.path)
    try FileManager.default.removeItem(at: url)
    return result
  } catch {
    try? FileManager.default.removeItem(at: url)
    throw error
  }
}

@Suite struct PersistenceTests {
  @Test func `Everything exists after a reopen`() async throws {
    try await withDirectory { path in
      var expected: [String: [String: Value]] = [:]
      var version = Version.missing
      for life in 0..<4 {
        let database = try await Database.open(at: path)
        let diary = database.document("workInfo/u1").collection("workHistory")
        let before = try await diary.getDocuments()
        #expect(
          Dictionary(uniqueKeysWithValues: before.documents.map { ($0.documentID, $0.data()) })
            == expected)
        for number in 0..<30 {
          let id = "d\((number * 7 + life) % 40)"
          let fields: [String: Value] = ["n": .integer(Int64(number)), "life\(life)": ["x": "é"]]
          let result = try await diary.document(id).setData(fields, durability: .process)
          #expect(result.version > version)
          version = result.version
          expected[id] = fields
        }
        if life == 1 { try await diary.createIndex(on: ["n"]) }
        if life > 0 {
          #expect(try await diary.whereField("n", isEqualTo: 5).explain().indexName == "n")
          try await auditIndexes(of: diary)
        }
        // Closed in good order, and not.
        if life % 2 == 0 { try await database.close() } else { try await database.engine.close() }
      }
    }
  }

  @Test func `An open directory cannot be opened again`() async throws {
    try await withDirectory { path in
      let database = try await Database.open(at: path)
      let error = await #expect(throws: DatabaseError.self) { try await Database.open(at: path) }
      #expect(error?.code == .failedPrecondition)
      #expect(error?.message.contains("\(ProcessInfo.processInfo.processIdentifier)") == true)
      try await database.close()
      try await Database.open(at: path).close()
    }
  }

  @Test func `An index that was being built is finished after the next opening`() async throws {
    let environment = Environment.memory()
    let database = try await Database.open(at: "/d", environment: environment)
    let collection = database.collection("c")
    for number in 0..<1_000 {
      try await collection.document("d\(number)").setData(["n": number % 7], durability: .memory)
    }
    // As far as one batch, and no further.
    let building = Guarded<Task<Void, any Error>?>(nil)
    let task = Task {
      while building.withLock({ $0 == nil }) { await Task.yield() }
      try await collection.createIndex(on: ["n"]) { _ in building.withLock { $0?.cancel() } }
    }
    building.withLock { $0 = task }
    await #expect(throws: DatabaseError.self) { try await task.value }
    let state = try await collection.listIndexes()
    #expect(state.map(\.state) == [.building])
    #expect(state.map(\.entries) == [IndexBuilder.batchCount])
    let query = collection.whereField("n", isEqualTo: 3)
    let plan = try await query.explain()
    #expect(plan.indexName == nil, "an index that is not ready serves nothing")
    #expect(plan.buildingIndexes == ["n"])
    #expect(plan.suggestedIndex == nil, "the one it needs is on its way")
    #expect(plan.description.contains("index 'n' is being built for it"))
    try await collection.document("d5").setData(["n": 3])
    let expected = try await query.getDocuments().documents.map(\.documentID)
    try await database.close()

    let again = try await Database.open(at: "/d", environment: environment)
    let same = again.collection("c")
    while try await same.listIndexes().map(\.state) != [.ready] { await Task.yield() }
    try await auditIndexes(of: same)
    let served = same.whereField("n", isEqualTo: 3)
    #expect(try await served.explain().indexName == "n")
    #expect(try await served.getDocuments().documents.map(\.documentID) == expected)
    try await again.close()
  }

  @Test func `Automatic ids are twenty letters and digits, or come from the options`() async throws
  {
    let database = try await Database.underTest()
    let ids = (0..<1_000).map { _ in database.collection("c").document().documentID }
    #expect(Set(ids).count == 1_000)
    for id in ids {
      #expect(id.utf8.count == 20)
      #expect(id.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) })
    }
    let counter = Guarded(0)
    let options = Database.Options(automaticID: {
      counter.withLock { counter in
        counter += 1
        return "id\(counter)"
      }
    })
    let fixed = try await Database.underTest(options: options)
    #expect(try await fixed.collection("c").addDocument(data: ["a": 1]).documentID == "id1")
    #expect(try await fixed.collection("c").addDocument(from: ["a": 1]).documentID == "id2")
  }

  @Test func `An automatic id that is taken is refused, and the document stays`() async throws {
    let database = try await Database.underTest(options: .init(automaticID: { "same" }))
    let collection = database.collection("c")
    try await collection.addDocument(data: ["a": 1])
    let error = await #expect(throws: DatabaseError.self) {
      try await collection.addDocument(data: ["a": 2])
    }
    #expect(error?.code == .alreadyExists)
    #expect(try await collection.document("same").getDocument()["a"] as Int? == 1)
    try await database.close()
  }
}
