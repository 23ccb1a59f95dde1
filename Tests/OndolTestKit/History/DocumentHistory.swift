// Many tasks on few documents that do everything possible at once: transactions, batches and single
// writes, reads of snapshots, queries, transfers between accounts, upkeep. Beside them collections
// are dropped and created again, and a schema is declared, version after version, which all of them
// read (CatalogHistory). The reads and writes of each go into a history, and TransactionHistory
// decides whether it is serializable.

internal import Foundation
package import Ondol
internal import OndolEngine

/// Tasks that write a history.
package struct DocumentHistory: Sendable {
  /// Planted mistakes, to see that the check notices.
  package enum Mistake: Sendable, CaseIterable {
    /// Transactions read documents outside of the transaction, so that no guard covers the reads.
    case unguardedReads
    /// Transactions run queries outside of the transaction.
    case unguardedQueries
    /// Snapshots that are read are old.
    case staleSnapshots
    /// Transfers read balances first, and write them in a separate transaction.
    case lostTransfers
  }

  package var database: Database
  package var seed: UInt64
  package var tasks = 6
  package var rounds = 12
  package var mistake: Mistake?

  package init(database: Database, seed: UInt64, rounds: Int = 12, mistake: Mistake? = nil) {
    self.database = database
    self.seed = seed
    self.rounds = rounds
    self.mistake = mistake
  }

  static let keys = ["a", "b", "c", "d", "e"]
  static let accounts = ["x", "y", "z"]

  var collection: CollectionReference { database.collection("keys") }
  var bank: CollectionReference { database.collection("bank") }
  /// Runs all tasks to their end. Throws `BrokenInvariant` if accounts do not add up.
  package func run() async throws -> TransactionHistory {
    let recorder = TransactionRecorder()
    let early = database.snapshot()
    try await beginCatalogHistory(recorder)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<tasks {
        group.addTask {
          var random = SeededRandom(seed: SeededRandom.derive(seed, task))
          for round in 0..<rounds {
            let number = task * 1_000 + round
            try await act(number, &random, recorder, early)
          }
        }
      }
      group.addTask { try await dropPools(recorder) }
      group.addTask { try await declareSchemas(recorder) }
      try await group.waitForAll()
    }
    try checkAccounts(try database.snapshot().getDocuments(bank))
    var lists = lists(of: try database.snapshot().getDocuments(collection))
    lists.merge(Self.finalCatalogLists) { $1 }
    try await checkStyled(recorder)
    return recorder.history(finalLists: lists)
  }

  private func act(
    _ number: Int, _ random: inout SeededRandom, _ recorder: TransactionRecorder,
    _ early: DatabaseSnapshot
  ) async throws {
    let choice = random.below(21)
    switch choice {
    case 0..<11:
      let plan = TransactionPlan(keys: Self.keys, using: &random)
      let looks = (0..<random.below(3)).map { _ in random.below(1_000) }
      try await record(number, recorder) { try await perform(plan, looks, number) }
    case 11, 12:
      let keys = Set([random.pick(Self.keys), random.pick(Self.keys)])
      try await record(number, recorder) { try await append(number, to: keys) }
    case 13, 14:
      let snapshot = mistake == .staleSnapshots ? early : nil
      try await record(number, recorder) {
        let moment = snapshot ?? database.snapshot()
        var reads = lists(of: try moment.getDocuments(collection))
        if snapshot == nil { try readCatalogLists(moment, &reads) }
        return TransactionRecord(number: number, reads: reads)
      }
    case 15:
      let query = collection.order(by: "count")
      try await record(number, recorder) {
        TransactionRecord(number: number, reads: lists(of: try await query.getDocuments()))
      }
    case 16:
      let key = random.pick(Self.keys)
      try await record(number, recorder) {
        let document = try await collection.document(key).getDocument()
        return TransactionRecord(number: number, reads: [key: document["list"] ?? []])
      }
    case 17, 18: try await transfer(&random)
    case 19: try await changeStyled(number, recorder)
    default: try await keepHouse(&random)
    }
  }

  func record(
    _ number: Int, _ recorder: TransactionRecorder, _ act: () async throws -> TransactionRecord
  ) async throws {
    let began = recorder.tick()
    var record = try await act()
    record.began = began
    record.ended = recorder.tick()
    recorder.add(record)
  }

  /// All lists. Those of absent documents are empty.
  func lists(of found: QuerySnapshot) -> [String: [Int]] {
    var lists = Dictionary(uniqueKeysWithValues: Self.keys.map { ($0, [Int]()) })
    for document in found.documents { lists[document.documentID] = document["list"] ?? [] }
    return lists
  }

  // MARK: - Writing

  private func entry(_ number: Int) -> [String: (any FieldContent)?] {
    // The sum of both is exact, in any order.
    let tenth = Decimal(sign: .plus, exponent: -1, significand: 1)
    return [
      "list": FieldValue.arrayUnion([number]), "grid": [[number], []],
      "count": number % 4 == 0 ? FieldValue.increment(tenth) : FieldValue.increment(1),
    ]
  }

  /// By one call for one document, or by a batch for several.
  private func append(_ number: Int, to keys: Set<String>) async throws -> TransactionRecord {
    if let key = keys.first, keys.count == 1 {
      try await collection.document(key).setData(entry(number), merge: true, durability: .memory)
    } else {
      let batch = database.batch()
      for key in keys {
        try batch.setData(entry(number), forDocument: collection.document(key), merge: true)
      }
      try await batch.commit(durability: .process)
    }
    return TransactionRecord(number: number, appends: keys)
  }

  private func perform(
    _ plan: TransactionPlan, _ looks: [Int], _ number: Int
  ) async throws -> TransactionRecord {
    try await database.runTransaction(attempts: 1_000, durability: .memory) { transaction in
      var record = TransactionRecord(number: number)
      let past = database.snapshot()
      for look in looks { try lookAtCatalog(look, transaction, &record) }
      for step in plan.steps {
        try perform(step, transaction, past, &record)
        await Task.yield()
      }
      return record
    }
  }

  private func perform(
    _ step: TransactionStep, _ transaction: Transaction, _ past: DatabaseSnapshot,
    _ record: inout TransactionRecord
  ) throws {
    switch step {
    case .read(let key):
      let document = collection.document(key)
      let isUnguarded = mistake == .unguardedReads && !record.appends.contains(key)
      let found =
        try isUnguarded ? past.getDocument(document) : transaction.getDocument(document)
      try note(found["list"] ?? [], key, &record)
    case .scan:
      let query = collection.order(by: "count")
      let isUnguarded = mistake == .unguardedQueries && record.appends.isEmpty
      let found = try isUnguarded ? past.getDocuments(query) : transaction.getDocuments(query)
      let lists = lists(of: found)
      for key in Self.keys { try note(lists[key] ?? [], key, &record) }
    case .append(let key):
      try transaction.setData(
        entry(record.number), forDocument: collection.document(key), merge: true)
      record.appends.insert(key)
    }
  }

  /// Records a read, and checks that it fits this transaction's earlier reads and writes.
  func note(_ list: [Int], _ key: String, _ record: inout TransactionRecord) throws {
    var list = list
    if record.appends.contains(key), list.popLast() != record.number {
      throw BrokenInvariant("transaction \(record.number) does not read back what it wrote")
    }
    guard mistake != nil || record.reads[key] ?? list == list else {
      throw BrokenInvariant("transaction \(record.number) reads \(key) twice and differently")
    }
    record.reads[key] = list
  }

  // MARK: - Accounts and upkeep

  private func transfer(_ random: inout SeededRandom) async throws {
    let from = bank.document(random.pick(Self.accounts))
    let to = bank.document(random.pick(Self.accounts))
    let amount = 1 + random.below(50)
    guard from != to else {
      return try checkAccounts(try database.snapshot().getDocuments(bank.order(by: "balance")))
    }
    let past = mistake == .lostTransfers ? database.snapshot() : nil
    try await database.runTransaction(attempts: 1_000, durability: .process) { transaction in
      for (account, change) in [(from, -amount), (to, amount)] {
        let found = try past?.getDocument(account) ?? transaction.getDocument(account)
        await Task.yield()
        try transaction.setData(
          ["balance": (found["balance"] ?? 0) + change], forDocument: account)
      }
    }
  }

  private func checkAccounts(_ found: QuerySnapshot) throws {
    let balances = found.documents.map { $0["balance"] as Int? ?? 0 }
    guard balances.reduce(0, +) == 0 else {
      throw BrokenInvariant("the accounts do not add up: \(balances)")
    }
  }

  private func keepHouse(_ random: inout SeededRandom) async throws {
    switch random.below(4) {
    case 0: try await collection.createIndex(on: ["count"])
    case 1: try await collection.dropIndex(named: "count")
    case 2: try await database.engine.flush()
    default: try await database.compact()
    }
  }
}
