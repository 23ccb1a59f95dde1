// A database moves from files to a store and back through its dump: everything arrives unchanged,
// and a failure on the way leaves the store as it was before.

import OndolEngine
import OndolPostgres
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `A dump loaded into a store` {
  enum Kind: CaseIterable {
    case simulated, postgres
  }

  /// An empty store; each call leads to the same one.
  private func newStore(_ kind: Kind, seed: UInt64) throws -> DatabaseStore {
    switch kind {
    case .simulated:
      let store = SimulatedStore(seed: seed)
      return DatabaseStore { store }
    case .postgres: return .postgres(try TestedStore.newAddress())
    }
  }

  private func sample(seed: UInt64) async throws -> (database: Database, dump: [UInt8]) {
    let database = try await Database.inMemory()
    try await DumpSample(seed: seed).fill(database)
    return (database, try await DumpTexts.dump(database))
  }

  @Test(arguments: Kind.allCases, Seeds.first(2))
  func `is dumped from there as the same bytes, and continues after it`(
    _ kind: Kind, seed: UInt64
  ) async throws {
    let (old, dump) = try await sample(seed: seed)
    let store = try newStore(kind, seed: seed)
    try await DumpTexts.load(dump, into: try await Restoration.begin(on: store))
    let new = try await Database.open(on: store)
    let again = try await DumpTexts.dump(new)
    #expect(again == dump, "seed \(seed)")
    let documents = try await new.collection("items").getDocuments().documents
    let written = try await new.document("items/new").setData(["n": 1])
    for document in documents {
      #expect(document.version < written.version, "seed \(seed)")
      let time = try #require(document.updateTime)
      #expect(time < written.commitTime, "seed \(seed)")
    }
    #expect(
      try await new.collection("items").whereField("n", isEqualTo: 1).getDocuments().count
        == old.collection("items").whereField("n", isEqualTo: 1).getDocuments().count + 1)
    // And back into files.
    let back = try await DumpTexts.dump(new)
    let environment = Environment.memory()
    try await DumpTexts.load(
      back, into: try await Restoration.begin(at: "back", environment: environment))
    let files = try await Database.open(at: "back", environment: environment)
    #expect(try await DumpTexts.dump(files) == back, "seed \(seed)")
    for database in [old, new, files] { try await database.close() }
  }

  @Test(arguments: Kind.allCases)
  func `with a flaw leaves nothing, and can be loaded once it is mended`(
    _ kind: Kind
  ) async throws {
    let seed = UInt64.random(in: 0...(.max))
    let (old, dump) = try await sample(seed: seed)
    try await old.close()
    let store = try newStore(kind, seed: seed)
    // Its last lines state what must have come before.
    for size in [dump.count - 40, dump.count / 2, dump.count / 8] {
      await #expect(throws: (any Error).self, "seed \(seed)") {
        try await DumpTexts.load(dump.prefix(size), into: try await Restoration.begin(on: store))
      }
    }
    try await DumpTexts.load(dump, into: try await Restoration.begin(on: store))
    let new = try await Database.open(on: store)
    #expect(try await DumpTexts.dump(new) == dump, "seed \(seed)")
    try await new.close()
  }

  @Test(arguments: Kind.allCases)
  func `finds it empty, or is refused and changes nothing`(_ kind: Kind) async throws {
    let store = try newStore(kind, seed: 1)
    let first = try await Database.open(on: store)
    try await first.document("items/a").setData(["n": 1])
    let before = try await DumpTexts.dump(first)
    try await first.close()
    let error = await #expect(throws: DatabaseError.self) {
      _ = try await Restoration.begin(on: store)
    }
    #expect(error?.code == .alreadyExists)
    let again = try await Database.open(on: store)
    #expect(try await DumpTexts.dump(again) == before)
    try await again.close()
  }

  /// Another process has the database open during its load, and writes. The load fails, and
  /// discarding it must not remove the other's acknowledged write.
  @Test(arguments: Kind.allCases)
  func `that another writes into meanwhile is given up without the other's loss`(
    _ kind: Kind
  ) async throws {
    let (old, dump) = try await sample(seed: 2)
    try await old.close()
    let store = try newStore(kind, seed: 2)
    let other = try await Database.open(on: store)
    let restoration = try await Restoration.begin(on: store)
    try await other.document("items/theirs").setData(["n": 1])
    await #expect(throws: DatabaseError.self) {
      try await DumpTexts.load(dump, into: restoration)
    }
    #expect(try await other.document("items/theirs").getDocument().get("n") == 1)
    try await other.document("items/theirs").setData(["n": 2])
    try await other.close()
    let again = try await Database.open(on: store)
    #expect(try await again.document("items/theirs").getDocument().get("n") == 2)
    try await again.close()
  }

  /// It once left a database with some of the rows, which opened as if it were whole, and which no
  /// load accepted because it was not empty.
  @Test func `that is cut off is recognised, and begins again`() async throws {
    let (old, dump) = try await sample(seed: 3)
    try await old.close()
    let store = try newStore(.postgres, seed: 3)
    let fill = try await StoreFill.begin(try store.make(), environment: .memory())
    try await fill.add([SalvagedRow(key: [0, 0, 16, 0, 1], value: [1])])
    func expectRefusal(_ call: () async throws -> Void) async {
      let error = await #expect(throws: DatabaseError.self) { try await call() }
      #expect(error?.code == .failedPrecondition)
    }
    await expectRefusal { _ = try await Database.open(on: store) }
    await expectRefusal { _ = try await Restoration.begin(on: store) }
    // As when its process dies: its connections end, and nothing else happens.
    await fill.close()
    await expectRefusal { _ = try await Database.open(on: store) }
    try await DumpTexts.load(dump, into: try await Restoration.begin(on: store))
    let new = try await Database.open(on: store)
    #expect(try await DumpTexts.dump(new) == dump)
    try await new.close()
  }
}
