// Batches: all or nothing, in order, within limits.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct WriteBatchTests {
  // Nothing once showed that the writes of a forgotten `commit()` had not happened.
  @Test func `A batch that is let go of without a commit says so in the log, and no other does`()
    async throws
  {
    let log = LogRecorder()
    var options = Database.Options()
    log.record(&options)
    let database = try await Database.underTest(options: options)
    do {
      let committed = database.batch()
      try committed.setData(["n": 1], forDocument: database.document("c/a"))
      try await committed.commit()
      _ = database.batch()
    }
    #expect(!log.messages.contains { $0.contains("batch") })
    do {
      let forgotten = database.batch()
      try forgotten.setData(["n": 1], forDocument: database.document("c/b"))
    }
    #expect(log.messages.filter { $0.hasPrefix("warning") && $0.contains("commit()") }.count == 1)
    #expect(try await !database.document("c/b").getDocument().exists)
  }

  @Test func `The writes of a batch have one version, and come in order`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    try await items.document("gone").setData(["n": 1])
    let batch = database.batch()
    try batch.setData(["n": 1], forDocument: items.document("a"))
    try batch.updateData(["n": FieldValue.increment(2)], forDocument: items.document("a"))
    try batch.setData(from: ["n": 5], forDocument: items.document("b"))
    try batch.create(["t": FieldValue.serverTimestamp()], forDocument: database.document("x/y"))
    try batch.setData(
      ["t": FieldValue.serverTimestamp()], forDocument: items.document("b"), merge: true)
    batch.deleteDocument(items.document("gone"))
    #expect(batch.count == 6)
    try await batch.commit()
    let read = try await items.getDocuments(ids: ["a", "b", "gone"])
    #expect(read[0].data() == ["n": 3])
    #expect(read[1]["n"] as Int? == 5)
    #expect(read[2].exists == false)
    let other = try await database.document("x/y").getDocument()
    #expect(Set([read[0].version, read[1].version, other.version]).count == 1)
    #expect(other["t"] == read[1]["t"])
  }

  @Test
  func `Codable values and field paths go into batches and transactions as they do elsewhere`()
    async throws
  {
    struct Sized: Codable, Equatable { var name: String?; var sizes: [String: Int] }
    let database = try await Database.underTest()
    let items = database.collection("items")
    let (made, merged) = (items.document("made"), items.document("merged"))
    try await merged.setData(["name": "Lamp", "sizes": ["a.b": 1, "c": 2]])
    let batch = database.batch()
    try batch.create(from: Sized(name: "Desk", sizes: [:]), forDocument: made)
    try batch.setData(
      from: Sized(name: "Other", sizes: ["c": 5]), forDocument: merged,
      mergeFields: ["sizes.c"])
    try batch.updateData([FieldPath(["sizes", "a.b"]): 3], forDocument: merged)
    try await batch.commit()
    try await database.runTransaction { transaction in
      try transaction.updateData(
        [FieldPath(["sizes", "a.b"]): FieldValue.increment(1)], forDocument: merged)
    }
    let found = try await merged.getDocument(as: Sized.self)
    #expect(found == Sized(name: "Lamp", sizes: ["a.b": 4, "c": 5]))
    let again = database.batch()
    try again.create(from: Sized(sizes: [:]), forDocument: made)
    let error = await #expect(throws: DatabaseError.self) { try await again.commit() }
    #expect(error?.code == .alreadyExists)
  }

  @Test func `A typed read takes a decoder, wherever it is made`() async throws {
    struct Named: Codable, Equatable { var firstName: String }
    let database = try await Database.underTest()
    let document = database.document("users/u")
    try await document.setData(["first_name": "Minji"])
    let decoder = DocumentDecoder(keyStrategy: .snakeCase)
    let minji = Named(firstName: "Minji")
    #expect(try await document.getDocument(as: Named.self, decoder: decoder) == minji)
    #expect(
      try database.snapshot().getDocument(document, as: Named.self, decoder: decoder) == minji)
    let read = try await database.runTransaction { transaction in
      try transaction.getDocument(document, as: Named.self, decoder: decoder)
    }
    #expect(read == minji)
  }

  @Test func `One write that cannot be done leaves all undone`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    try await items.document("there").setData(["n": 1])
    let before = database.snapshot().version
    let writes: [(WriteBatch) throws -> Void] = [
      { try $0.updateData(["n": 1], forDocument: items.document("none")) },
      { try $0.create(["n": 1], forDocument: items.document("there")) },
      { try $0.setData(["n": 1], forDocument: items.document("there"), ifVersion: .missing) },
    ]
    for write in writes {
      let batch = database.batch()
      try batch.setData(["n": 9], forDocument: items.document("there"))
      try batch.setData(["n": 9], forDocument: database.document("new/d"))
      try write(batch)
      let error = await #expect(throws: DatabaseError.self) { try await batch.commit() }
      #expect(error?.path?.hasPrefix("items/") == true)
    }
    let after = database.snapshot().version
    #expect(after == before)
  }

  @Test func `Collections that take turns in a batch keep their own names, keys and rows`()
    async throws
  {
    let database = try await Database.underTest()
    try await database.collection("users/u0/posts").createIndex(on: ["n"])
    // New and old collections, of which many share a pattern, each document with another name.
    for round in 0..<2 {
      let batch = database.batch()
      for number in 0..<30 {
        let parents = ["users/u\(number % 3)/posts", "users", "other/o/posts", "x\(number % 4)"]
        let document = database.document("\(parents[number % 4])/d\(number)")
        try batch.setData(
          ["n": number, "name\(number % 11)": ["of\(number % 7)": round]], forDocument: document)
      }
      try await batch.commit()
      for number in 0..<30 {
        let parents = ["users/u\(number % 3)/posts", "users", "other/o/posts", "x\(number % 4)"]
        let read = try await database.document("\(parents[number % 4])/d\(number)").getDocument()
        let name: Value = .map(["of\(number % 7)": .integer(Int64(round))])
        let expected: [String: Value] = [
          "n": .integer(Int64(number)), "name\(number % 11)": name,
        ]
        #expect(read.data() == expected)
      }
      let found = try await database.collectionGroup("posts").whereField("n", isLessThan: 9)
        .getDocuments()
      #expect(Set(found.documents.map(\.documentID)) == ["d0", "d2", "d4", "d6", "d8"])
    }
  }

  @Test func `A batch over the limit of a commit is refused`() async throws {
    let database = try await Database.underTest()
    let batch = database.batch()
    for number in 0..<5 {
      try batch.setData(
        ["b": [UInt8](repeating: 1, count: 14 << 20)],
        forDocument: database.document("c/d\(number)"))
    }
    let error = await #expect(throws: DatabaseError.self) { try await batch.commit() }
    #expect(error?.code == .resourceExhausted)
    #expect(try await database.collection("c").getDocuments().isEmpty)
  }

  @Test func `A batch is committed once, and takes documents of its database only`() async throws {
    let database = try await Database.underTest()
    let other = try await Database.underTest()
    let batch = database.batch()
    #expect(throws: DatabaseError.self) {
      try batch.setData(["n": 1], forDocument: other.document("c/d"))
    }
    try batch.setData(["n": 1], forDocument: database.document("c/d"))
    try await batch.commit()
    await #expect(throws: DatabaseError.self) { try await batch.commit() }
    #expect(throws: DatabaseError.self) {
      try batch.setData(["n": 1], forDocument: database.document("c/d"))
    }
    let wrong = database.batch()
    wrong.deleteDocument(database.document("c//d"))
    await #expect(throws: DatabaseError.self) { try await wrong.commit() }
    try await database.batch().commit()
  }

  @Test func `Batches over the same documents and roots never block each other`() async throws {
    let database = try await Database.underTest()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<8 {
        group.addTask {
          for round in 0..<20 {
            let batch = database.batch()
            for step in 0..<6 {
              let number = (task * 5 + round * 3 + step * 7) % 10
              try batch.setData(
                ["n": FieldValue.increment(1), "f\(task)": round],
                forDocument: database.document("r\(number % 3)/d\(number)"), merge: true)
            }
            try await batch.commit()
          }
        }
      }
      try await group.waitForAll()
    }
    var total = 0
    for root in 0..<3 {
      for document in try await database.collection("r\(root)").getDocuments().documents {
        total += document["n"] as Int? ?? 0
      }
    }
    #expect(total == 8 * 20 * 6)
  }
}
