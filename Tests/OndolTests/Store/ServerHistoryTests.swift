// Several opens of one database on a real server, each with connections of its own, as in several
// processes. All transactions together are serializable, whichever open runs them, and a listener
// in one receives the commits of the others, to the last.

import OndolPostgres
import OndolTestKit
import Testing

@testable import Ondol

@Suite(.enabled(if: TestedStore.current == .postgres)) struct ServerHistoryTests {
  private func open(_ count: Int) async throws -> [Database] {
    let address = try TestedStore.newAddress()
    var databases: [Database] = []
    for _ in 0..<count { databases.append(try await Database.open(on: .postgres(address))) }
    return databases
  }

  @Test(arguments: Seeds.first(4))
  func `Transactions of three openings are serializable`(seed: UInt64) async throws {
    let databases = try await open(3)
    let history = try await HistoryWorkload(databases: databases, seed: seed).run()
    #expect(history.violation() == nil, "seed \(seed)")
    for database in databases { try await database.close() }
  }

  @Test func `A listener receives the others' commits, and finally has all of them`() async throws {
    let databases = try await open(2)
    let (near, far) = (databases[0].collection("items"), databases[1].collection("items"))
    let snapshots = far.snapshots
    let count = 40
    async let writing: Void = {
      for number in 0..<count {
        try await near.document("\(number % 7)").setData(["last": number])
      }
    }()
    var last = -1
    for try await snapshot in snapshots {
      let newest = snapshot.documents.compactMap { $0["last"] as Int? }.max() ?? -1
      // Never back: each snapshot is a later commit.
      #expect(newest >= last)
      last = newest
      if newest == count - 1 { break }
    }
    try await writing
    #expect(last == count - 1)
    for database in databases { try await database.close() }
  }
}
