// Are transactions serializable? Many of them run at once over few documents, on real threads and
// under the simulation's orders, and a checker looks for a cycle in what depended on what.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct HistoryTests {
  @Test(arguments: Seeds.first(4))
  func `Transactions on real threads are serializable`(seed: UInt64) async throws {
    let database = try await Database.underTest()
    let history = try await HistoryWorkload(databases: [database], seed: seed).run()
    #expect(history.violation() == nil, "seed \(seed)")
    try await database.close()
  }

  @Test(arguments: Seeds.first(12))
  func `Transactions in any order of steps are serializable`(seed: UInt64) throws {
    let history = try SimulationExecutor.run(seed: seed) { executor in
      let world = SimulatedWorld(seed: seed, threads: executor)
      let database = try await Database.open(at: "/db", environment: world.environment)
      let history = try await HistoryWorkload(databases: [database], seed: seed, rounds: 6).run()
      try await database.close()
      return history
    }
    #expect(history.violation() == nil, "seed \(seed)")
  }
}

/// Tasks that run random transactions over a few keys.
struct HistoryWorkload: Sendable {
  /// Openings of one database, among which the tasks are dealt out.
  var databases: [Database]
  var seed: UInt64
  var tasks = 6
  var rounds = 12

  static let keys = ["a", "b", "c", "d", "e"]

  func run() async throws -> TransactionHistory {
    let recorder = TransactionRecorder()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<tasks {
        group.addTask {
          var random = SeededRandom(seed: seed &* 1_000 &+ UInt64(task))
          for round in 0..<rounds {
            let plan = TransactionPlan(keys: Self.keys, using: &random)
            try await perform(
              plan, number: task * 1_000 + round, on: databases[task % databases.count], recorder)
          }
        }
      }
      try await group.waitForAll()
    }
    return recorder.history(finalLists: try await lists())
  }

  private func lists() async throws -> [String: [Int]] {
    var lists: [String: [Int]] = [:]
    try await databases[0].refresh()
    for document in try await databases[0].collection("keys").getDocuments().documents {
      lists[document.documentID] = document["list"] ?? []
    }
    return lists
  }

  private func perform(
    _ plan: TransactionPlan, number: Int, on database: Database, _ recorder: TransactionRecorder
  ) async throws {
    let began = recorder.tick()
    var record = try await database.runTransaction(durability: .memory) { transaction in
      var record = TransactionRecord(number: number)
      for step in plan.steps {
        try perform(step, transaction, database.collection("keys"), &record)
        await Task.yield()
      }
      return record
    }
    record.began = began
    record.ended = recorder.tick()
    recorder.add(record)
  }

  private func perform(
    _ step: TransactionStep, _ transaction: Transaction, _ collection: CollectionReference,
    _ record: inout TransactionRecord
  ) throws {
    switch step {
    case .read(let key):
      note(try transaction.getDocument(collection.document(key))["list"] ?? [], key, &record)
    case .scan:
      let found = try transaction.getDocuments(collection.order(by: "list")).documents
      let lists = Dictionary(
        uniqueKeysWithValues: found.map { ($0.documentID, $0["list"] as [Int]? ?? []) })
      for key in Self.keys { note(lists[key] ?? [], key, &record) }
    case .append(let key):
      try transaction.setData(
        ["list": FieldValue.arrayUnion([record.number])], forDocument: collection.document(key),
        merge: true)
      record.appends.insert(key)
    }
  }

  /// Writes down what was read, and that it fits what this transaction has read and written before.
  private func note(_ list: [Int], _ key: String, _ record: inout TransactionRecord) {
    var list = list
    if record.appends.contains(key) {
      #expect(list.popLast() == record.number, "own writes are read back")
    }
    #expect(record.reads[key] ?? list == list, "reads can be repeated")
    record.reads[key] = list
  }
}

@Suite struct TransactionHistoryTests {
  @Test func `A history in a row is serializable`() {
    let history = TransactionHistory(
      transactions: [
        TransactionRecord(number: 1, reads: ["a": []], appends: ["a", "b"], began: 1, ended: 2),
        TransactionRecord(number: 2, reads: ["a": [1]], appends: ["a"], began: 3, ended: 4),
        TransactionRecord(number: 3, reads: ["a": [1, 2], "b": [1]], began: 5, ended: 6),
      ], finalLists: ["a": [1, 2], "b": [1]])
    #expect(history.violation() == nil)
  }

  @Test func `A lost update is found`() {
    let history = TransactionHistory(
      transactions: [
        TransactionRecord(number: 1, reads: ["a": []], appends: ["a"]),
        TransactionRecord(number: 2, reads: ["a": []], appends: ["a"]),
      ], finalLists: ["a": [1, 2]])
    #expect(history.violation() != nil)
    let lost = TransactionHistory(
      transactions: history.transactions, finalLists: ["a": [2]])
    #expect(lost.violation() != nil)
  }

  @Test func `Write skew is found`() {
    let history = TransactionHistory(
      transactions: [
        TransactionRecord(number: 1, reads: ["a": [], "b": []], appends: ["a"]),
        TransactionRecord(number: 2, reads: ["a": [], "b": []], appends: ["b"]),
      ], finalLists: ["a": [1], "b": [2]])
    #expect(history.violation()?.contains("cycle") == true)
  }

  @Test func `A dirty read is found`() {
    let history = TransactionHistory(
      transactions: [TransactionRecord(number: 1, reads: ["a": [7]])], finalLists: ["a": []])
    #expect(history.violation() != nil)
  }

  @Test func `A stale read is found`() {
    let history = TransactionHistory(
      transactions: [
        TransactionRecord(number: 1, appends: ["a"], began: 1, ended: 2),
        TransactionRecord(number: 2, reads: ["a": []], began: 3, ended: 4),
      ], finalLists: ["a": [1]])
    #expect(history.violation()?.contains("cycle") == true)
  }
}
