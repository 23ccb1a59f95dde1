// Tests the live stream: its first event, the event for a change, and that it ends with the
// service.

import Foundation
import Ondol
import OndolTestKit
import ServiceLifecycleTestKit
import Testing

@testable import App

@Suite struct LiveTests {
  private func events(_ shop: Shop) -> LiveEvents<Item> {
    LiveEvents(query: shop.list(of: nil)) { snapshot in
      Data(snapshot.documents.map(\.name).joined(separator: ",").utf8)
    }
  }

  @Test func `A stream says what there is, and then what there is after each change`() async throws
  {
    let shop = try await Shop(try await Database.open(at: "shop.ondol", on: SimulatedDevice()))
    _ = try await shop.add(NewItem(name: "Lamp", category: "light", price: 30))
    var stream = events(shop).makeAsyncIterator()
    #expect(try await stream.next() == "event: result\ndata: Lamp\n\n")
    _ = try await shop.add(NewItem(name: "Chair", category: "seat", price: 80))
    #expect(try await stream.next() == "event: result\ndata: Chair,Lamp\n\n")
    try await shop.database.close()
    #expect(try await stream.next() == nil)
  }

  @Test func `A stream ends when the service shuts down`() async throws {
    let shop = try await Shop(try await Database.open(at: "shop.ondol", on: SimulatedDevice()))
    try await testGracefulShutdown { (service) async throws in
      var stream = events(shop).makeAsyncIterator()
      #expect(try await stream.next() != nil)
      service.triggerGracefulShutdown()
      #expect(try await stream.next() == nil)
    }
    try await shop.database.close()
  }
}
