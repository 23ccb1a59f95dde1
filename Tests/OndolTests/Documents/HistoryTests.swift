// Are transactions serializable? Many of them run at once on few documents, on real threads and in
// the simulation's orders, and a checker looks for a cycle in their dependencies.

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
