// The objects for user interfaces, through the Observation framework alone: the notifications of a
// view that reads them.

import Foundation
import Observation
import OndolEngine
import Testing

@testable import Ondol

private struct LiveItem: Codable, Equatable {
  @DocumentID var id: String?
  var count: Int
}

/// Records each decoding, and whether it happens on the main thread.
private struct NotedItem: Decodable, Sendable {
  static let decodings = Guarded<[(name: String, isOnMain: Bool)]>([])

  var name: String
  var count: Int

  private enum CodingKeys: CodingKey {
    case name, count
  }

  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    name = try container.decode(String.self, forKey: .name)
    count = try container.decode(Int.self, forKey: .count)
    let (name, isOnMain) = (name, Thread.isMainThread)
    Self.decodings.withLock { $0.append((name, isOnMain)) }
  }
}

@MainActor @Suite struct LiveQueryTests {
  /// Waits until `condition`, which reads observed properties, holds.
  private func wait(until condition: @MainActor () -> Bool) async {
    while true {
      let (changed, changes) = AsyncStream<Void>.makeStream()
      let holds = withObservationTracking {
        condition()
      } onChange: {
        changes.finish()
      }
      if holds { return }
      for await _ in changed {}
      // This notification comes just before the change.
      await Task.yield()
    }
  }

  @Test func `A live query follows its documents, and one that does not fit hides no other`()
    async throws
  {
    let database = try await Database.underTest()
    let items = database.collection("items")
    try await items.document("a").setData(["count": 1])
    let live = LiveQuery(items.order(by: "count"), as: LiveItem.self)
    #expect(!live.isLoaded)
    await wait(until: { live.isLoaded })
    #expect(live.items.map(\.count) == [1])
    try await items.document("b").setData(["count": "many"])
    await wait(until: { !live.failures.isEmpty })
    #expect(live.failures.map(\.field) == ["count"])
    try await items.document("c").setData(["count": 0])
    await wait(until: { live.items.count == 2 })
    #expect(live.items.map(\.id) == ["c", "a"])
    try await database.close()
  }

  @Test func `Only what changed is decoded, and not on the main actor`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    for name in ["a", "b", "c"] {
      try await items.document(name).setData(["name": name, "count": 1])
    }
    let live = LiveQuery(items.order(by: "name"), as: NotedItem.self)
    await wait(until: { live.items.count == 3 })
    try await items.document("b").updateData(["count": 2])
    await wait(until: { live.items.map(\.count) == [1, 2, 1] })
    try await items.document("c").delete()
    await wait(until: { live.items.count == 2 })
    let decodings = NotedItem.decodings.withLock { $0 }
    #expect(decodings.map(\.name) == ["a", "b", "c", "b"])
    #expect(!decodings.contains { $0.isOnMain })
    try await database.close()
  }

  @Test func `A live document follows its document`() async throws {
    let database = try await Database.underTest()
    let document = database.document("items/a")
    let live = LiveDocument(document, as: LiveItem.self)
    await wait(until: { live.isLoaded })
    #expect(live.item == nil)
    try await document.setData(["count": 4])
    await wait(until: { live.item?.count == 4 })
    try await document.setData(["count": true])
    await wait(until: { live.failure != nil })
    #expect(live.item == nil)
    try await document.delete()
    await wait(until: { live.failure == nil })
    try await database.close()
  }

  @Test func `A live query that is let go stops listening`() async throws {
    let database = try await Database.underTest()
    var live: LiveQuery<LiveItem>? = LiveQuery(database.collection("items"))
    await wait(until: { live?.isLoaded == true })
    #expect(database.observers.count == 1)
    live = nil
    while database.observers.count > 0 { await Task.yield() }
    try await database.close()
  }

  @Test func `An invalid query is an error to show, and runs again on request`()
    async throws
  {
    let database = try await Database.underTest()
    let live = LiveQuery(database.collection("items").order(by: "a..b"), as: LiveItem.self)
    await wait(until: { live.error != nil })
    #expect(live.error?.code == .invalidArgument)
    live.retry()
    await wait(until: { live.error != nil })
    #expect(!live.isLoaded)
    try await database.close()
  }

  @Test func `Nothing is listened to before a property is read`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    try await items.document("a").setData(["count": 1])
    let unread = (0..<10).map { _ in LiveQuery(items.order(by: "count"), as: LiveItem.self) }
    let document = LiveDocument(items.document("a"), as: LiveItem.self)
    // A listener is registered with the observers when its first result comes.
    let live = LiveQuery(items, as: LiveItem.self)
    await wait(until: { live.isLoaded })
    #expect(database.observers.count == 1)
    await wait(until: { document.item?.count == 1 })
    #expect(database.observers.count == 2)
    withExtendedLifetime((unread, document)) {}
    try await database.close()
  }
}
