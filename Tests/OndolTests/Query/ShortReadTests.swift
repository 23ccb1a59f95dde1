// Queries on their caller's actor: a short one stays there, because changing threads takes longer
// than answering it. A long one goes elsewhere, because an app's main actor must not wait for it.
// The answers are the same.

import Synchronization
import Testing

@testable import Ondol

@MainActor @Suite struct ShortReadTests {
  private static func database(documents: Int) async throws -> Database {
    let database = try await Database.underTest()
    let items = database.collection("items")
    for start in stride(from: 0, to: documents, by: 500) {
      let batch = database.batch()
      for number in start..<min(start + 500, documents) {
        try batch.setData(
          ["n": number, "even": number % 2 == 0], forDocument: items.document("d\(number)"))
      }
      try await batch.commit()
    }
    try await items.createIndex(on: ["n"])
    return database
  }

  @Test func `A read of many steps restarts elsewhere, one of few does not`() async throws {
    let database = try await Self.database(documents: 1)
    for (steps, expected) in [(0, 1), (4, 1), (5, 2), (500, 2)] {
      let attempts = Atomic(0)
      let answer = try await database.query(mayBeShort: true) { (rows) throws(DatabaseError) in
        attempts.add(1, ordering: .relaxed)
        for _ in 0..<steps { try rows.step() }
        return steps
      }
      #expect(answer == steps)
      #expect(attempts.load(ordering: .relaxed) == expected, "\(steps) steps")
    }
  }

  @Test(arguments: [0, 1, 31, 33, 128, 255, 256, 257, 1_000])
  func `Answers are the same, wherever they are found`(documents: Int) async throws {
    let database = try await Self.database(documents: documents)
    let items = database.collection("items")
    let queries = [
      items.query, items.whereField("n", isEqualTo: 7), items.whereField("even", isEqualTo: true),
      items.order(by: "n", descending: true), items.whereField("n", in: [3, 1, 200]),
      items.whereField("n", isGreaterThan: 20).order(by: "n").limit(to: 20),
      items.whereField("n", in: Array(0..<500)),
    ]
    for query in queries {
      let found = try await query.getDocuments().documents
      let count = try await query.count.getAggregation().count
      let groups = try await query.aggregate([.count()]).group(by: "even").getAggregation()
      let elsewhere = try await Task.detached {
        let documents = try await query.getDocuments().documents
        let groups = try await query.aggregate([.count()]).group(by: "even").getAggregation()
        return (documents, groups.map(\.aggregation))
      }.value
      #expect(found == elsewhere.0, "\(query)")
      #expect(groups.map(\.aggregation) == elsewhere.1, "\(query)")
      #expect(count == found.count, "\(query)")
    }
  }
}
