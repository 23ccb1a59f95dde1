// Updates and deletes by query: the same as one by one, in one commit or in many.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `Writes by query` {
  private func filled(_ count: Int) async throws -> (Database, CollectionReference) {
    let database = try await Database.underTest()
    let items = database.collection("items")
    let batch = database.batch()
    for number in 0..<count {
      try batch.setData(
        ["n": number, "even": number % 2 == 0], forDocument: items.document("d\(number)"))
    }
    try await batch.commit()
    return (database, items)
  }

  @Test func `A small one is one commit`() async throws {
    let (database, items) = try await filled(100)
    var told: [QueryWriteProgress] = []
    let count = try await items.whereField("even", isEqualTo: true).updateDocuments(
      ["even": false, "seen": FieldValue.increment(1)]
    ) { told.append($0) }
    #expect(count == 50)
    #expect(told == [QueryWriteProgress(written: 50, passedOver: 0)])
    let versions = Set(
      try await items.whereField("seen", isEqualTo: 1).getDocuments()
        .documents.map(\.version))
    #expect(versions.count == 1)
    #expect(try await items.whereField("even", isEqualTo: true).count.getAggregation().count == 0)
    #expect(try await items.whereField("n", isEqualTo: -1).updateDocuments(["x": 1]) == 0)
    try await database.close()
  }

  @Test func `A large one is several commits, and each is reported`() async throws {
    let (database, items) = try await filled(2_600)
    var told: [QueryWriteProgress] = []
    let query = items.whereField("even", isEqualTo: true)
    let count = try await query.updateDocuments(["even": false]) { told.append($0) }
    #expect(count == 1_300)
    #expect(told.last == QueryWriteProgress(written: 1_300, passedOver: 0))
    #expect(told.count == 3, "\(told)")
    #expect(try await query.count.getAggregation().count == 0)
    #expect(try await items.deleteDocuments() == 2_600)
    #expect(try await items.count.getAggregation().count == 0)
    try await database.close()
  }

  @Test func `Documents that no longer match are skipped`() async throws {
    let (database, items) = try await filled(1_400)
    let query = items.whereField("even", isEqualTo: true).order(by: "n")
    var last = QueryWriteProgress(written: 0, passedOver: 0)
    var isFirst = true
    let gate = items.document("d1398")
    let count = try await query.updateDocuments(["done": true]) { state in
      last = state
      guard isFirst else { return }
      isFirst = false
      // A second commit follows.
      _ = database.engine.startInBackground { _ = try? await gate.updateData(["even": false]) }
    }
    // Whichever came first, no document was changed that did not match.
    let done = try await items.whereField("done", isEqualTo: true).getDocuments().documents
    #expect(done.count == count)
    #expect(count + last.passedOver == 700)
    #expect(last.written == count)
    try await database.close()
  }

  @Test func `A cancelled one continues when it is called again`() async throws {
    let (database, items) = try await filled(12_000)
    let query = items.whereField("even", isEqualTo: true)
    // From within, so that it is not finished before, however the threads run.
    let task = Task {
      try await query.updateDocuments(["even": false]) { state in
        if state.written == 500 { unsafe withUnsafeCurrentTask { unsafe $0?.cancel() } }
      }
    }
    let error = await #expect(throws: DatabaseError.self) { try await task.value }
    #expect(error?.code == .cancelled)
    let left = try await query.count.getAggregation().count
    #expect(left == 5_500)
    #expect(try await query.updateDocuments(["even": false]) == left)
    #expect(try await query.count.getAggregation().count == 0)
    try await database.close()
  }

  @Test func `Nothing is written when the data makes no sense`() async throws {
    let (database, items) = try await filled(3)
    let error = await #expect(throws: DatabaseError.self) {
      try await items.query.updateDocuments(["a": 1, "a.b": 2])
    }
    #expect(error?.code == .invalidArgument)
    try await database.runTransaction { _ in
      await #expect(throws: DatabaseError.self) { try await items.deleteDocuments() }
    }
    #expect(try await items.count.getAggregation().count == 3)
    try await database.close()
  }

  @Test func `Typed ones change properties`() async throws {
    struct Item: Codable, Sendable { var n: Int; var even: Bool; var note: String? }
    let (database, items) = try await filled(20)
    let typed = try database.collection("items", of: Item.self)
    #expect(try await typed.where(\.n < 5).updateDocuments(.set(\.note, to: "low")) == 5)
    #expect(try await typed.where(\.note == "low").count() == 5)
    #expect(try await typed.where(\.even == true).deleteDocuments() == 10)
    #expect(try await items.count.getAggregation().count == 10)
    try await database.close()
  }
}
