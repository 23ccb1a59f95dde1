// The cost of an idle listener: at most a number of documents, and a number of bytes of them, wait
// for it. When it reads again it still receives the truth.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct InboxTests {
  // Documents were once counted, and not their bytes: 1,900 of 200 kB kept 300 MB.
  @Test func `A listener that does not ask keeps a bounded number of bytes waiting`() async throws {
    let database = try await Database.underTest()
    let papers = database.collection("papers")
    let length = 100_000
    let text = String(repeating: "x", count: length)
    for number in 0..<100 {
      try await papers.document("p\(number)").setData(
        ["isRead": false, "text": text], durability: .memory)
    }
    var listener = papers.whereField("isRead", isEqualTo: true).snapshots.makeAsyncIterator()
    #expect(try await listener.next()?.isEmpty == true)
    var most = 0
    for number in 0..<100 {
      try await papers.document("p\(number)").updateData(["isRead": true], durability: .memory)
      most = max(most, database.metrics.pendingChanges)
    }
    // Each waits with its earlier and its later state.
    #expect(most * 2 * length <= 4 << 20)
    #expect(most > 0)
    #expect(try await listener.next()?.count == 100)
  }

  @Test func `A document that changes often is counted as it is now`() async throws {
    let database = try await Database.underTest()
    let papers = database.collection("papers")
    let paper = papers.document("p")
    try await paper.setData(["n": 0, "text": ""])
    var listener = papers.snapshots.makeAsyncIterator()
    _ = try await listener.next()
    for number in 1...200 {
      let text = String(repeating: "x", count: 100_000)
      try await paper.setData(["n": number, "text": text], durability: .memory)
    }
    #expect(database.metrics.pendingChanges == 1)
    #expect(try await listener.next()?.documents.first?["n"] as Int? == 200)
  }

  @Test func `The memory of values is at least that of their bytes`() {
    let text = String(repeating: "x", count: 1_000)
    let values: [(Value, Int)] = [
      (.string(text), 1_000), (.bytes([UInt8](repeating: 1, count: 500)), 500),
      (.array([.string(text), .string(text)]), 2_000), (.map(["a": .string(text)]), 1_000),
      (.vector(VectorValue([Double](repeating: 1, count: 100))), 800),
      (.array([Value](repeating: .null, count: 100)), 1_600),
    ]
    for (value, least) in values {
      #expect(value.memoryBytes >= least && value.memoryBytes <= 4 * least + 100)
    }
  }
}
