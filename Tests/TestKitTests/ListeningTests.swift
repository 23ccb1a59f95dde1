// The start of listening, the metadata of a document's snapshots, and how a test learns that a
// listener has delivered everything. Public calls only.

import Ondol
import OndolTestKit
import Testing

@Suite("Listening in tests") struct ListeningTests {
  @Test func `A listener begins when its iterator is made`() async throws {
    let database = try await Database.inMemory()
    let items = database.collection("items")
    try await items.document("a").setData(["n": 1])
    var results = items.snapshots.makeAsyncIterator()
    var counts = items.count.snapshots.makeAsyncIterator()
    var document = items.document("b").snapshots.makeAsyncIterator()
    try await items.document("b").setData(["n": 2])
    let first = try #require(await results.next())
    #expect(first.documents.map(\.documentID) == ["a"])
    #expect(try await counts.next()?.count == 1)
    #expect(try await document.next()?.exists == false)
    let second = try #require(await results.next())
    #expect(second.documentChanges.map(\.type) == [.added])
    #expect(second.documentChanges.map(\.document.documentID) == ["b"])
    #expect(try await counts.next()?.count == 2)
    #expect(try await document.next()?.exists == true)
    try await database.close()
  }

  /// A change of a child between the creation of the iterator and its first `next()` was once not
  /// reported.
  @Test func `Events of the tree arrive from the creation of the iterator on`() async throws {
    let database = try await Database.inMemory()
    let rooms = database.tree.child("rooms")
    try await rooms.setValue(["a": 1, "b": 2])
    var changes = rooms.observe(.childChanged).makeAsyncIterator()
    try await rooms.child("b").setValue(3)
    let event = try #require(await changes.next())
    #expect(event.kind == .childChanged && event.snapshot.key == "b")
    #expect(try await changes.nextIfAny() == nil)
    try await rooms.child("a").removeValue()
    #expect(try await changes.nextIfAny() == nil)
    try await database.close()
  }

  @Test func `A document's snapshots say what happened to it`() async throws {
    let database = try await Database.inMemory()
    let lamp = database.document("items/lamp")
    var snapshots = lamp.snapshots.makeAsyncIterator()
    #expect(try await snapshots.next()?.change == nil)
    try await lamp.setData(["price": 30])
    #expect(try await snapshots.next()?.change == .added)
    try await lamp.updateData(["price": 20])
    #expect(try await snapshots.next()?.change == .modified)
    try await lamp.delete()
    #expect(try await snapshots.next()?.change == .removed)
    try await lamp.setData(["price": 1])
    var late = lamp.snapshots.makeAsyncIterator()
    #expect(try await late.next()?.change == .added)
    #expect(try await lamp.getDocument().change == nil)
    try await database.close()
  }

  @Test func `A listener with nothing more to deliver says so and continues`() async throws {
    let database = try await Database.inMemory(options: .init(changeRetention: .init()))
    let items = database.collection("items")
    var results = items.whereField("n", isGreaterThan: 1).snapshots.makeAsyncIterator()
    var feed = database.changes().makeAsyncIterator()
    #expect(try await results.nextIfAny()?.isEmpty == true)
    #expect(try await results.nextIfAny() == nil)
    #expect(try await feed.nextIfAny() == nil)
    try await database.document("other/a").setData(["n": 5])
    try await items.document("few").setData(["n": 1])
    #expect(try await results.nextIfAny() == nil)
    for _ in 0..<2 { #expect(try await feed.nextIfAny() != nil) }
    #expect(try await feed.nextIfAny() == nil)
    try await items.document("many").setData(["n": 2])
    #expect(try await results.nextIfAny()?.documents.map(\.documentID) == ["many"])
    #expect(try await results.nextIfAny() == nil)
    try await database.close()
    #expect(try await results.nextIfAny() == nil)
  }

  /// Iterators are created at random moments among random writes. The first element is the state at
  /// that time, and an iterator that reports no more has delivered the current state.
  @Test(arguments: Seeds.first(20))
  func `Whenever it was made, a listener tells the state then and the state now`(
    seed: UInt64
  ) async throws {
    var random = SeededRandom(seed: seed)
    func below(_ bound: UInt64) -> Int { Int(random.next() % bound) }
    let database = try await Database.inMemory()
    let items = database.collection("items")
    let query = items.whereField("n", isLessThan: 5).order(by: "n").limit(to: 4)
    var listeners: [(iterator: Updates<QuerySnapshot>.Iterator, told: [String]?)] = []
    for step in 0..<120 {
      switch below(6) {
      case 0:
        listeners.append((query.snapshots.makeAsyncIterator(), nil))
        let expected = try await ids(query)
        // Read at once, later, or never.
        if below(2) == 0 {
          let place = listeners.count - 1
          for _ in 0..<below(3) { try await write(items, below) }
          let first = try await listeners[place].iterator.next()
          #expect(first?.documents.map(\.documentID) == expected, "seed \(seed), step \(step)")
          listeners[place].told = expected
        }
      case 1 where !listeners.isEmpty:
        let place = below(UInt64(listeners.count))
        while let next = try await listeners[place].iterator.nextIfAny() {
          listeners[place].told = next.documents.map(\.documentID)
        }
        #expect(listeners[place].told == (try await ids(query)), "seed \(seed), step \(step)")
      default: try await write(items, below)
      }
    }
    try await database.close()
  }

  private func ids(_ query: Query) async throws -> [String] {
    try await query.getDocuments().documents.map(\.documentID)
  }

  private func write(_ items: CollectionReference, _ below: (UInt64) -> Int) async throws {
    let document = items.document("d\(below(9))")
    if below(4) == 0 {
      try await document.delete()
    } else {
      try await document.setData(["n": below(8), "x": below(1_000)])
    }
  }
}
