// Every way in which listening of every kind can end, in the writing database and beside its
// writer. Nothing is left: no listener, no live result, no waiting change, no task, and finally not
// the database either.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `When listening ends` {
  enum Kind: CaseIterable, Sendable {
    case document, query, limited, aggregate, groups, join, feed, sinceToken
  }

  enum End: CaseIterable, Sendable {
    case leavingTheLoop, cancellingInside, cancellingOutside, closing, neverAsking, throwing
    case droppingTheCollection
  }

  private struct Thrown: Error {}

  /// Listens, and passes each element to `body` until that returns that it is enough.
  private static func listen(
    _ kind: Kind, _ database: Database, since token: ChangeToken, asks: Bool = true,
    _ body: () throws -> Bool
  ) async throws {
    let items = database.collection("items")
    switch kind {
    case .document: try await go(through: items.document("a").snapshots, asks, body)
    case .query:
      try await go(through: items.whereField("n", isGreaterThan: 0).snapshots, asks, body)
    case .limited: try await go(through: items.order(by: "n").limit(to: 1).snapshots, asks, body)
    case .aggregate: try await go(through: items.aggregate([.sum("n")]).snapshots, asks, body)
    case .groups: try await go(through: items.count.group(by: "n").snapshots, asks, body)
    case .join:
      try await go(
        through: items.lookup("owner", in: "users", as: "user").snapshots, asks, body)
    case .feed: try await go(through: database.changes(since: token), asks, body)
    case .sinceToken: try await go(through: items.query.snapshots(since: token), asks, body)
    }
  }

  private static func go<Elements: AsyncSequence>(
    through elements: Elements, _ asks: Bool, _ body: () throws -> Bool
  ) async throws {
    guard asks else {
      _ = elements.makeAsyncIterator()
      return
    }
    for try await _ in elements where try !body() { break }
  }

  /// Begins listening, and ends it.
  private static func listen(
    _ kind: Kind, until end: End, _ database: Database, _ writer: Database, _ token: ChangeToken
  ) async throws {
    switch end {
    case .leavingTheLoop: try await listen(kind, database, since: token) { false }
    case .neverAsking: try await listen(kind, database, since: token, asks: false) { false }
    case .throwing:
      await #expect(throws: Thrown.self) {
        try await listen(kind, database, since: token) { throw Thrown() }
      }
    case .cancellingInside:
      let (known, isKnown) = AsyncStream<Task<Void, any Error>>.makeStream()
      let task = Task {
        var own: Task<Void, any Error>?
        for await task in known {
          own = task
          break
        }
        try await listen(kind, database, since: token) {
          own?.cancel()
          return true
        }
      }
      isKnown.yield(task)
      try await task.value
    case .cancellingOutside, .closing, .droppingTheCollection:
      let (heard, hears) = AsyncStream<Void>.makeStream()
      let task = Task {
        try await listen(kind, database, since: token) {
          hears.yield()
          return true
        }
      }
      for await _ in heard { break }
      switch end {
      case .closing: try await database.close()
      case .droppingTheCollection:
        try await writer.collection("items").drop()
        // The remaining listeners continue.
        try await writer.document("items/a").setData(["n": 2, "owner": "ann"])
        task.cancel()
      default: task.cancel()
      }
      try await task.value
    }
  }

  @Test(arguments: Kind.allCases, End.allCases)
  func `nothing is left`(kind: Kind, end: End) async throws {
    for access in [Database.Access.readWrite, .readOnly] {
      weak var engine: Engine?
      weak var freed: Database?
      let environment = Environment.memory()
      do {
        let writer = try await Database.open(
          at: "db", options: .init(changeRetention: .init()), environment: environment)
        let token = try writer.changeToken()
        try await writer.document("users/ann").setData(["name": "Ann"])
        try await writer.document("items/a").setData(["n": 1, "owner": "ann"])
        let database =
          access == .readWrite
          ? writer
          : try await Database.open(
            at: "db", options: .init(access: .readOnly), environment: environment)
        try await Self.listen(kind, until: end, database, writer, token)
        #expect(database.metrics.listeners == 0, "\(access)")
        #expect(database.metrics.pendingChanges == 0, "\(access)")
        #expect(database.observers.watchCount == 0, "\(access)")
        #expect(database.audience.count == 0, "\(access)")
        #expect(!database.audience.isServed, "\(access)")
        (engine, freed) = (database.engine, database)
      }
      // Nothing has closed it, except in one way. The background work ends.
      for _ in 0..<100_000 where engine != nil || freed != nil { await Task.yield() }
      #expect(freed == nil, "\(access)")
      #expect(engine == nil, "\(access)")
    }
  }
}
