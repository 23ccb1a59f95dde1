// Batches: all of their writes happen, in their order and in one step, or none of them does.

import Ondol
import Testing

@Suite struct WriteBatchTests {
  @Test func `All writes of a batch happen, in their order`() async throws {
    let database = try await Database.inMemory()
    let items = database.collection("items")
    try await items.document("old").setData(["x": 1])
    let batch = database.batch()
    try batch.setData(["x": 1, "kept": true], forDocument: items.document("a"))
    try batch.updateData(["x": FieldValue.increment(2)], forDocument: items.document("a"))
    try batch.setData(["y": 1], forDocument: items.document("a"), merge: true)
    try batch.setData(from: ["name": "온돌"], forDocument: database.document("others/b"))
    try batch.deleteDocument(items.document("old"))
    try batch.deleteDocument(items.document("never there"))
    #expect(batch.count == 6)
    try await batch.commit()

    let first = try await items.document("a").getDocument()
    #expect(first.data() == ["x": 3, "kept": true, "y": 1])
    let other = try await database.document("others/b").getDocument()
    #expect(other.data() == ["name": "온돌"])
    #expect(first.version == other.version)
    #expect(try await items.document("old").getDocument().exists == false)
    try await database.close()
  }

  @Test func `A batch with one impossible write changes nothing`() async throws {
    let database = try await Database.inMemory()
    let items = database.collection("items")
    try await items.createIndex(on: ["x"])
    let batch = database.batch()
    try batch.setData(["x": 1], forDocument: items.document("a"))
    try batch.updateData(["x": 1], forDocument: items.document("missing"))
    try batch.setData(["x": 1], forDocument: items.document("z"))
    let error = await #expect(throws: DatabaseError.self) { try await batch.commit() }
    #expect(error?.code == .notFound)
    #expect(error?.path == "items/missing")
    #expect(try await items.getDocuments().isEmpty)
    #expect(try await items.whereField("x", isEqualTo: 1).getDocuments().isEmpty)
    try await database.close()
  }

  @Test func `A refused write leaves the batch as it was`() async throws {
    let database = try await Database.inMemory()
    let batch = database.batch()
    try batch.setData(["x": 1], forDocument: database.document("items/a"))
    let error = #expect(throws: DatabaseError.self) {
      try batch.setData(["__x__": 1], forDocument: database.document("items/b"))
    }
    #expect(error?.code == .invalidArgument)
    #expect(error?.path == "items/b")
    #expect(throws: DatabaseError.self) {
      try batch.deleteDocument(database.document("items"))
    }
    #expect(batch.count == 1)
    try await batch.commit()
    #expect(try await database.collection("items").getDocuments().count == 1)
    try await database.close()
  }

  @Test func `A batch is committed once, and for its own database`() async throws {
    let database = try await Database.inMemory()
    let other = try await Database.inMemory()
    let batch = database.batch()
    let foreign = #expect(throws: DatabaseError.self) {
      try batch.setData(["x": 1], forDocument: other.document("items/a"))
    }
    #expect(foreign?.code == .invalidArgument)
    try await batch.commit()
    let again = await #expect(throws: DatabaseError.self) { try await batch.commit() }
    #expect(again?.code == .failedPrecondition)
    try await database.close()
    try await other.close()
  }
}
