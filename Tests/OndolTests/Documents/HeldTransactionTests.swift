// Transactions whose body is another program, and their promises between calls.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct HeldTransactionTests {
  private func set(_ path: String, _ fields: [String: Value]) throws -> ClientWrite {
    ClientWrite(path: try DocumentPath(path), .replace(fields))
  }

  private func number(
    _ path: String, in transaction: HeldTransaction, _ database: Database
  ) async throws -> Int64? {
    let document = database.document(path)
    return try await transaction.read { (transaction) throws(DatabaseError) in
      try transaction.getDocument(document)["n"] as Int64?
    }
  }

  @Test func `Reads see the moment of the beginning`() async throws {
    let database = try await Database.underTest()
    try await database.document("c/a").setData(["n": 1])
    let held = HeldTransactions(database)
    let transaction = try await held.begin(for: "me")
    try await database.document("c/a").setData(["n": 2])
    #expect(try await number("c/a", in: transaction, database) == 1)
    try await held.rollBack(transaction.id, of: "me")
    #expect(held.count == 0)
  }

  @Test func `A commit is refused after a change of its reads`() async throws {
    let database = try await Database.underTest()
    try await database.document("c/a").setData(["n": 1])
    let held = HeldTransactions(database)
    let transaction = try await held.begin(for: "me")
    _ = try await number("c/a", in: transaction, database)
    try await database.document("c/a").setData(["n": 2])
    let error = await #expect(throws: DatabaseError.self) {
      try await held.commit(transaction.id, of: "me", [try set("c/b", ["n": 1])])
    }
    #expect(error?.code == .aborted)
    #expect(try await !database.document("c/b").getDocument().exists)
  }

  @Test func `Unread documents may change`() async throws {
    let database = try await Database.underTest()
    try await database.document("c/a").setData(["n": 1])
    let held = HeldTransactions(database)
    let transaction = try await held.begin(for: "me")
    _ = try await number("c/a", in: transaction, database)
    try await database.document("c/other").setData(["n": 2])
    let commit = try await held.commit(transaction.id, of: "me", [try set("c/b", ["n": 1])])
    #expect(commit.answers.count == 1)
    #expect(try await database.document("c/b").getDocument().exists)
  }

  @Test func `A transaction is one owner's, and over after its end`() async throws {
    let database = try await Database.underTest()
    let held = HeldTransactions(database)
    let transaction = try await held.begin(for: "me")
    for owner in ["you", "me"] {
      if owner == "me" { try await held.rollBack(transaction.id, of: owner) }
      let error = await #expect(throws: DatabaseError.self) {
        try await held.commit(transaction.id, of: owner, [])
      }
      #expect(error?.code == .invalidArgument)
    }
  }

  /// A call had found the transaction, and then it expired. The read failed with an error that no
  /// client takes for a reason to begin again.
  @Test func `A call that found a transaction before its end learns that it is over`() async throws
  {
    let database = try await Database.underTest()
    let held = HeldTransactions(database)
    let transaction = try await held.begin(for: "me")
    try await held.rollBack(transaction.id, of: "me")
    let error = await #expect(throws: DatabaseError.self) {
      try await number("c/a", in: transaction, database)
    }
    #expect(error?.code == .invalidArgument)
  }

  @Test func `Their number is limited, and idle ones end`() async throws {
    let time = Guarded(Int64(1_700_000_000_000_000))
    var options = Database.Options()
    options.clock = { time.withLock { $0 } }
    let database = try await Database.inMemory(options: options)
    var limits = HeldTransactions.Limits()
    limits.most = 2
    let held = HeldTransactions(database, limits)
    let first = try await held.begin(for: "me")
    _ = try await held.begin(for: "me")
    let error = await #expect(throws: DatabaseError.self) { try await held.begin(for: "me") }
    #expect(error?.code == .resourceExhausted)
    time.withLock { $0 += limits.idle + 1 }
    _ = try await held.begin(for: "me")
    #expect(held.count == 1)
    await #expect(throws: DatabaseError.self) {
      try await held.commit(first.id, of: "me", [])
    }
  }

  /// A client that repeats its attempt after each loss finishes although others never stop writing:
  /// they wait for the attempt after the third.
  @Test func `An attempt that lost often enough is not overtaken`() async throws {
    let database = try await Database.underTest()
    try await database.document("c/a").setData(["n": 0])
    let held = HeldTransactions(database)
    let isDone = Guarded(false)
    let attempts = try await withThrowingTaskGroup(of: Int.self) { group in
      group.addTask {
        while !isDone.withLock({ $0 }) {
          try await database.document("c/a").updateData(["n": FieldValue.increment(1)])
        }
        return 0
      }
      group.addTask {
        defer { isDone.withLock { $0 = true } }
        var before: TransactionID?
        for attempt in 1...50 {
          let transaction = try await held.begin(for: "me", after: before)
          before = transaction.id
          do {
            let seen = try await number("c/a", in: transaction, database) ?? 0
            _ = try await held.commit(
              transaction.id, of: "me", [try set("c/mine", ["n": .integer(seen)])])
            return attempt
          } catch let error as DatabaseError where error.code == .aborted {
          }
        }
        return 51
      }
      return try await group.reduce(0, +)
    }
    #expect(attempts <= 50)
  }

  /// Model: accounts with a constant sum, and held transactions of several clients that move money
  /// between them.
  @Test func `Clients that move amounts at the same time lose nothing`() async throws {
    let database = try await Database.underTest()
    for account in 0..<6 { try await database.document("a/\(account)").setData(["n": 100]) }
    let held = HeldTransactions(database)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for client in 0..<4 {
        group.addTask {
          var random = SeededRandom(seed: UInt64(client))
          for _ in 0..<25 {
            let (from, to) = (random.below(6), random.below(6))
            guard from != to else { continue }
            var before: TransactionID?
            while true {
              let transaction = try await held.begin(for: "\(client)", after: before)
              before = transaction.id
              let left = try await number("a/\(from)", in: transaction, database) ?? 0
              let right = try await number("a/\(to)", in: transaction, database) ?? 0
              do {
                _ = try await held.commit(
                  transaction.id, of: "\(client)",
                  [
                    try set("a/\(from)", ["n": .integer(left - 7)]),
                    try set("a/\(to)", ["n": .integer(right + 7)]),
                  ])
                break
              } catch let error as DatabaseError where error.code == .aborted {
              }
            }
          }
        }
      }
      try await group.waitForAll()
    }
    let sum = try await database.collection("a").aggregate([.sum("n")]).getAggregation()
    #expect(sum.get(.sum("n")) == .integer(600))
    #expect(held.count == 0)
  }
}
