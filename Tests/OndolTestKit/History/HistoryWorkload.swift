// The composition of a history: tasks that run random transactions on few keys, in this process or
// in one of several that have the database open.

package import Ondol

/// Tasks that run random transactions on few keys.
package struct HistoryWorkload: Sendable {
  /// Opens of one database, among which the tasks are distributed.
  package var databases: [Database]
  package var seed: UInt64
  package var tasks: Int
  package var rounds: Int
  /// The number of the first task. Tasks of other processes have other numbers.
  package var firstTask = 0

  private static let keys = ["a", "b", "c", "d", "e"]
  /// The largest number of transactions of a task. Their numbers follow from the task's own.
  private static let mostRounds = 1_000

  package init(databases: [Database], seed: UInt64, tasks: Int = 6, rounds: Int = 12) {
    self.databases = databases
    self.seed = seed
    self.tasks = tasks
    self.rounds = min(rounds, Self.mostRounds)
  }

  /// Runs all of it in this process.
  package func run() async throws -> TransactionHistory {
    let recorder = TransactionRecorder()
    try await run(clock: recorder.tick) { _ in
    } committed: {
      recorder.add($0)
    }
    return recorder.history(finalLists: try await Self.lists(in: databases[0]))
  }

  /// Runs the tasks.
  ///
  /// - Parameters:
  ///   - clock: moments that all processes share.
  ///   - begun: receives a transaction before it runs, with its future appends.
  ///   - committed: receives a committed transaction.
  package func run(
    clock: @escaping @Sendable () -> Int,
    begun: @escaping @Sendable (TransactionRecord) throws -> Void,
    committed: @escaping @Sendable (TransactionRecord) throws -> Void
  ) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in firstTask..<(firstTask + tasks) {
        let database = databases[task % databases.count]
        group.addTask {
          var random = SeededRandom(seed: seed &* 1_000 &+ UInt64(task))
          for round in 0..<rounds {
            let plan = TransactionPlan(keys: Self.keys, using: &random)
            let number = task * Self.mostRounds + round
            let began = clock()
            try begun(
              TransactionRecord(number: number, appends: Set(plan.appendedKeys), began: began))
            var record = try await Self.perform(plan, number, on: database)
            record.began = began
            record.ended = clock()
            try committed(record)
          }
        }
      }
      try await group.waitForAll()
    }
  }

  /// The lists as they are now.
  package static func lists(in database: Database) async throws -> [String: [Int]] {
    var lists: [String: [Int]] = [:]
    try await database.refresh()
    for document in try await database.collection("keys").getDocuments().documents {
      lists[document.documentID] = document["list"] ?? []
    }
    return lists
  }

  private static func perform(
    _ plan: TransactionPlan, _ number: Int, on database: Database
  ) async throws -> TransactionRecord {
    try await database.runTransaction(durability: .memory) { transaction in
      var record = TransactionRecord(number: number)
      for step in plan.steps {
        try perform(step, transaction, database.collection("keys"), &record)
        await Task.yield()
      }
      return record
    }
  }

  private static func perform(
    _ step: TransactionStep, _ transaction: Transaction, _ collection: CollectionReference,
    _ record: inout TransactionRecord
  ) throws {
    switch step {
    case .read(let key):
      try note(transaction.getDocument(collection.document(key))["list"] ?? [], key, &record)
    case .scan:
      let found = try transaction.getDocuments(collection.order(by: "list")).documents
      let lists = Dictionary(
        uniqueKeysWithValues: found.map { ($0.documentID, $0["list"] as [Int]? ?? []) })
      for key in keys { try note(lists[key] ?? [], key, &record) }
    case .append(let key):
      try transaction.setData(
        ["list": FieldValue.arrayUnion([record.number])], forDocument: collection.document(key),
        merge: true)
      record.appends.insert(key)
    }
  }

  /// Records a read, which must fit this transaction's earlier reads and writes.
  private static func note(
    _ list: [Int], _ key: String, _ record: inout TransactionRecord
  ) throws {
    var list = list
    if record.appends.contains(key), list.popLast() != record.number {
      throw BrokenInvariant("transaction \(record.number) does not read what it wrote to \(key)")
    }
    if let before = record.reads[key], before != list {
      throw BrokenInvariant("transaction \(record.number) reads \(key) twice: \(before), \(list)")
    }
    record.reads[key] = list
  }
}
