// Tests the service through its routes, on a device in memory: items, pages, photos, errors, and
// the data after a power cut.

import Foundation
import Hummingbird
import HummingbirdTesting
import Ondol
import OndolTestKit
import Testing

@testable import App

@Suite struct ItemTests {
  private let device = SimulatedDevice()

  private func shop() async throws -> Shop {
    try await Shop(try await Database.open(at: "shop.ondol", on: device))
  }

  private func add(
    _ name: String, _ category: String, _ price: Int, _ client: any TestClientProtocol
  ) async throws -> ItemAnswer {
    let body = #"{"name": "\#(name)", "category": "\#(category)", "price": \#(price)}"#
    let response = try await client.execute(
      uri: "/items", method: .post, headers: [.contentType: "application/json"],
      body: ByteBuffer(string: body))
    #expect(response.status == .created)
    return try JSONDecoder().decode(ItemAnswer.self, from: Data(buffer: response.body))
  }

  private func get<Answer: Decodable>(
    _ uri: String, as type: Answer.Type, _ client: any TestClientProtocol
  ) async throws -> Answer {
    let response = try await client.execute(uri: uri, method: .get)
    #expect(response.status == .ok)
    return try JSONDecoder().decode(Answer.self, from: Data(buffer: response.body))
  }

  @Test func `An item comes, changes and goes`() async throws {
    try await makeApplication(try await shop()).test(.router) { (client) async throws in
      let lamp = try await add("Lamp", "light", 30, client)
      #expect(try await get("/items/\(lamp.id)", as: ItemAnswer.self, client) == lamp)
      let changed = try await client.execute(
        uri: "/items/\(lamp.id)", method: .patch, headers: [.contentType: "application/json"],
        body: ByteBuffer(string: #"{"price": 35}"#))
      #expect(changed.status == .ok)
      #expect(try await get("/items/\(lamp.id)", as: ItemAnswer.self, client).price == 35)
      #expect(
        try await client.execute(uri: "/items/\(lamp.id)", method: .delete).status == .noContent)
      #expect(try await client.execute(uri: "/items/\(lamp.id)", method: .get).status == .notFound)
    }
  }

  @Test func `Pages have every item once, in order`() async throws {
    try await makeApplication(try await shop()).test(.router) { (client) async throws in
      for number in 0..<7 { _ = try await add("Item \(number % 3)", "a", number, client) }
      var names: [String] = []
      var ids: Set<String> = []
      var uri: String? = "/items?limit=2"
      while let next = uri {
        let page = try await get(next, as: Page.self, client)
        #expect(page.items.count <= 2)
        names += page.items.map(\.name)
        ids.formUnion(page.items.map(\.id))
        let after = page.next?.addingPercentEncoding(withAllowedCharacters: .alphanumerics)
        uri = after.map { "/items?limit=2&after=\($0)" }
      }
      #expect(names == names.sorted())
      #expect(ids.count == 7)
    }
  }

  @Test(arguments: [
    ("/items?after=nonsense", HTTPResponse.Status.badRequest), ("/items/none", .notFound),
    ("/items/none/photo", .notFound), ("/nowhere", .notFound),
  ])
  func `What is wrong has its status`(_ uri: String, _ status: HTTPResponse.Status) async throws {
    try await makeApplication(try await shop()).test(.router) { (client) async throws in
      #expect(try await client.execute(uri: uri, method: .get).status == status)
    }
  }

  @Test func `An item that cannot be is refused`() async throws {
    try await makeApplication(try await shop()).test(.router) { (client) async throws in
      for body in [
        "", "{}", #"{"name": "", "category": "a", "price": 1}"#,
        #"{"name": "a", "category": "a", "price": -1}"#,
      ] {
        let response = try await client.execute(
          uri: "/items", method: .post, headers: [.contentType: "application/json"],
          body: ByteBuffer(string: body))
        #expect(response.status == .badRequest, "\(body)")
      }
    }
  }

  @Test func `A photo comes back as it was, and goes with its item`() async throws {
    let shop = try await shop()
    try await makeApplication(shop).test(.router) { (client) async throws in
      let lamp = try await add("Lamp", "light", 30, client)
      let bytes: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
      let uri = "/items/\(lamp.id)/photo"
      #expect(try await client.execute(uri: uri, method: .get).status == .notFound)
      let put = try await client.execute(uri: uri, method: .put, body: ByteBuffer(bytes: bytes))
      #expect(put.status == .noContent)
      let photo = try await client.execute(uri: uri, method: .get)
      #expect(Array(buffer: photo.body) == bytes)
      #expect(photo.headers[.contentType] == "image/png")
      let again = try await client.execute(
        uri: uri, method: .get, headers: [.ifNoneMatch: photo.headers[.eTag] ?? ""])
      #expect(again.status == .notModified)
      try await client.execute(uri: "/items/\(lamp.id)", method: .delete)
      #expect(try await shop.database.storage.statistics().heldBytes == 0)
    }
  }

  @Test func `The top of each category is its most expensive items`() async throws {
    try await makeApplication(try await shop()).test(.router) { (client) async throws in
      for (number, category) in ["a", "b", "a", "b", "a", "c"].enumerated() {
        _ = try await add("Item \(number)", category, number * 7 % 5, client)
      }
      let top = try await get("/categories/top?count=2", as: [TopOfCategory].self, client)
      #expect(top.map(\.category) == ["a", "b", "c"])
      #expect(top.map { $0.items.map(\.price) } == [[4, 3], [2, 1], [0]])
    }
  }

  @Test func `What was answered survives a power cut`() async throws {
    let lamp = try await makeApplication(try await shop()).test(.router) { (client) async throws in
      try await add("Lamp", "light", 30, client)
    }
    device.powerCut()
    try await makeApplication(try await shop()).test(.router) { (client) async throws in
      #expect(try await get("/items/\(lamp.id)", as: ItemAnswer.self, client) == lamp)
    }
  }
}
