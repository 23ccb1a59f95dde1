// The files of `ondol new`, as Scripts/template-files embeds what is in Docs/Templates/service: not to be
// edited here.
// swift-format-ignore-file

/// The files of the template by their paths.
enum TemplateFiles {
  static let service: [String: String] = [
    "Package.swift": ##"""
// swift-tools-version: 6.3
import PackageDescription

let package = Package(
  name: "service",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "ondol", path: "../.."),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
  ],
  targets: [
    .executableTarget(
      name: "App",
      dependencies: [
        .product(name: "Ondol", package: "ondol"),
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ]),
    .testTarget(
      name: "AppTests",
      dependencies: [
        "App",
        .product(name: "OndolTestKit", package: "ondol"),
        .product(name: "HummingbirdTesting", package: "hummingbird"),
        .product(name: "ServiceLifecycleTestKit", package: "swift-service-lifecycle"),
      ]),
  ],
  swiftLanguageModes: [.v6])

"""##,
    "README.md": ##"""
# A service on Ondol

    swift test
    swift run App            # http://127.0.0.1:8080, its data in shop.ondol; Ctrl-C ends it
    HOST=0.0.0.0 PORT=8081 DATABASE=/var/lib/shop.ondol swift run -c release App

The first build takes some minutes. While the service runs, in another shell:

    curl -s localhost:8080/items -H 'Content-Type: application/json' \
      -d '{"name": "Lamp", "category": "light", "price": 30}'

It answers with the item and its id. Put that in the place of `ID`, and any picture in that of `lamp.png`:

    curl -s 'localhost:8080/items?limit=10'  # a page; "next" is the "after" of the next one
    curl -s localhost:8080/items/ID
    curl -s -X PATCH localhost:8080/items/ID -H 'Content-Type: application/json' -d '{"price": 35}'
    curl -s -T lamp.png localhost:8080/items/ID/photo
    curl -s -o photo.png localhost:8080/items/ID/photo
    curl -s 'localhost:8080/categories/top?count=3'
    curl -N localhost:8080/items/live        # the list now, and again whenever it changes
    curl -s -X DELETE localhost:8080/items/ID

| file | what to change there |
|---|---|
| `Sources/App/Item.swift` | the model: what is stored, what comes in, what goes out |
| `Sources/App/Shop.swift` | what the app does with its data: indexes, queries, pages, top of each group |
| `Sources/App/ItemRoutes.swift` | paths, parameters and bodies |
| `Sources/App/LiveEvents.swift` | a live query as server-sent events |
| `Sources/App/DatabaseErrors.swift` | errors of the database as HTTP status |
| `Sources/App/App.swift` | start and clean shutdown |
| `Tests/AppTests` | tests on a device in memory that can lose power |

Only one process has the database open for writing. `ondol shop.ondol`, the tool of the clone that made this folder,
looks inside while the service runs.

"""##,
    "Sources/App/App.swift": ##"""
// Starts the service and ends it. On SIGTERM or Ctrl-C no new connections are taken, live streams
// end, requests under way finish, and then the database is closed.

import Foundation
import Hummingbird
import Logging
import Ondol
import ServiceLifecycle

@main
struct App {
  static func main() async throws {
    let environment = ProcessInfo.processInfo.environment
    let database = try await Database.open(at: environment["DATABASE"] ?? "shop.ondol")
    let app = makeApplication(
      try await Shop(database), host: environment["HOST"] ?? "127.0.0.1",
      port: environment["PORT"].flatMap { Int($0) } ?? 8080)
    try await app.runService()
  }
}

/// The application: tests make one, too.
func makeApplication(
  _ shop: Shop, host: String = "127.0.0.1", port: Int = 0
) -> some ApplicationProtocol {
  let router = Router()
  router.add(middleware: LogRequestsMiddleware(.info))
  router.add(middleware: DatabaseErrors())
  addItemRoutes(to: router, shop)
  var app = Application(
    router: router, configuration: .init(address: .hostname(host, port: port)))
  // Services end in the opposite order, so the server goes before the database.
  app.addServices(DatabaseService(database: shop.database))
  return app
}

/// Closes the database when the service ends.
struct DatabaseService: Service {
  let database: Database

  func run() async throws {
    try? await gracefulShutdown()
    try await database.close()
  }
}

"""##,
    "Sources/App/DatabaseErrors.swift": ##"""
// Errors of the database as HTTP status, in one place. What the client did wrong is said to the
// client; what went wrong here is in the log and nowhere else.

import Hummingbird
import Ondol

/// Answers for what the database throws.
struct DatabaseErrors<Context: RequestContext>: RouterMiddleware {
  func handle(
    _ request: Request, context: Context, next: (Request, Context) async throws -> Response
  ) async throws -> Response {
    do {
      return try await next(request, context)
    } catch let error as DatabaseError {
      if error.httpStatus.kind == .serverError {
        context.logger.error("the database failed", metadata: ["error": "\(error)"])
        throw HTTPError(error.httpStatus)
      }
      throw HTTPError(error.httpStatus, message: error.message)
    }
  }
}

extension DatabaseError {
  /// What a client is answered.
  var httpStatus: HTTPResponse.Status {
    switch code {
    case .invalidArgument, .outOfRange: .badRequest
    case .unauthenticated: .unauthorized
    case .notFound: .notFound
    case .alreadyExists, .aborted: .conflict
    case .cancelled, .deadlineExceeded, .unavailable: .serviceUnavailable
    case .resourceExhausted: HTTPResponse.Status(code: 507, reasonPhrase: "Insufficient Storage")
    // A document that does not fit its type, a closed database, damage: not the client's doing.
    default: .internalServerError
    }
  }
}

"""##,
    "Sources/App/Item.swift": ##"""
// The model. What is stored, what a client sends and what it gets are three types, so that one can
// change without the others.

import Hummingbird
import Ondol

/// An item, as it is stored.
struct Item: Codable, Sendable, Identifiable, Equatable {
  var id: String
  var name: String
  var category: String
  var price: Int
  /// The photo's bytes stay stored for as long as the item has it.
  var photo: BlobReference?
}

/// What a client sends for a new item.
struct NewItem: Decodable, Sendable {
  var name: String
  var category: String
  var price: Int

  /// Throws 400 for what cannot be an item.
  func check() throws {
    guard !name.isEmpty, !category.isEmpty else {
      throw HTTPError(.badRequest, message: "name and category must not be empty")
    }
    guard price >= 0 else { throw HTTPError(.badRequest, message: "price must be 0 or more") }
  }
}

/// What a client sends to change an item. Only what is there is changed.
struct ItemChanges: Decodable, Sendable {
  var name: String?
  var price: Int?
}

/// An item, as a client sees it.
struct ItemAnswer: ResponseCodable, Sendable, Equatable {
  var id: String
  var name: String
  var category: String
  var price: Int
  /// Where the photo is; nil when there is none.
  var photo: String?

  init(_ item: Item) {
    id = item.id
    name = item.name
    category = item.category
    price = item.price
    photo = item.photo.map { _ in "/items/\(item.id)/photo" }
  }
}

/// A page of a list.
struct Page: ResponseCodable, Sendable {
  var items: [ItemAnswer]
  /// What `after` takes for the next page; nil on the last one.
  var next: String?
}

/// The first items of a category.
struct TopOfCategory: ResponseCodable, Sendable {
  var category: String
  var items: [ItemAnswer]
}

"""##,
    "Sources/App/ItemRoutes.swift": ##"""
// The paths of the service, and nothing but what HTTP has to do with them.

import Foundation
import Hummingbird
import Ondol

func addItemRoutes(to router: Router<BasicRequestContext>, _ shop: Shop) {
  let items = router.group("items")

  items.get { request, _ in
    let query = request.uri.queryParameters
    return try await shop.page(
      of: query.get("category"), limit: query.get("limit", as: Int.self) ?? 20,
      after: query.get("after"))
  }

  items.post { request, context in
    let new = try await request.decode(as: NewItem.self, context: context)
    return EditedResponse(status: .created, response: ItemAnswer(try await shop.add(new)))
  }

  items.get("live") { request, _ in
    liveEvents(shop.list(of: request.uri.queryParameters.get("category")), for: request) {
      $0.documents.map(ItemAnswer.init)
    }
  }

  items.get(":id") { _, context in
    ItemAnswer(try await shop.item(try context.parameters.require("id")))
  }

  items.patch(":id") { request, context in
    let changes = try await request.decode(as: ItemChanges.self, context: context)
    return ItemAnswer(try await shop.change(try context.parameters.require("id"), changes))
  }

  items.delete(":id") { _, context in
    try await shop.delete(try context.parameters.require("id"))
    return HTTPResponse.Status.noContent
  }

  items.put(":id/photo") { request, context in
    let body = try await request.body.collect(upTo: Shop.mostPhotoBytes)
    try await shop.setPhoto(
      try context.parameters.require("id"), Array(buffer: body),
      contentType: request.headers[.contentType])
    return HTTPResponse.Status.noContent
  }

  items.get(":id/photo") { request, context in
    guard let photo = try await shop.item(try context.parameters.require("id")).photo else {
      throw HTTPError(.notFound, message: "the item has no photo")
    }
    // The same bytes have the same digest for good.
    let tag = "\"\(photo.digest)\""
    var headers: HTTPFields = [.eTag: tag, .cacheControl: "no-cache"]
    if request.headers[.ifNoneMatch] == tag {
      return Response(status: .notModified, headers: headers)
    }
    headers[.contentType] = photo.contentType ?? "application/octet-stream"
    // Nobody's upload is run as a page of this service.
    headers[.contentSecurityPolicy] = "default-src 'none'; sandbox"
    headers[.xContentTypeOptions] = "nosniff"
    // In pieces: the photo is never whole in memory.
    let pieces = shop.database.storage.bytes(of: photo).map { ByteBuffer(bytes: $0) }
    return Response(status: .ok, headers: headers, body: ResponseBody(asyncSequence: pieces))
  }

  router.get("categories/top") { request, _ in
    try await shop.top(request.uri.queryParameters.get("count", as: Int.self) ?? 3)
  }
}

"""##,
    "Sources/App/LiveEvents.swift": ##"""
// A live query as server-sent events: the browser's `EventSource` takes them, and connects again by
// itself. A stream ends when its client goes, when the service shuts down, and when the database is
// closed. A slow client costs bounded memory: it misses states in between, never the newest.

import Foundation
import Hummingbird
import Ondol
import ServiceLifecycle

/// Answers with a query's result, and with each later one.
///
/// - Parameters:
///   - query: what to follow.
///   - request: who asks.
///   - content: what a client sees of a result.
func liveEvents<Model, Content: Encodable & Sendable>(
  _ query: TypedQuery<Model>, for request: Request,
  content: @escaping @Sendable (TypedQuerySnapshot<Model>) throws -> Content
) -> Response {
  let headers: HTTPFields = [.contentType: "text/event-stream", .cacheControl: "no-store"]
  let events = LiveEvents(query: query, content: { try JSONEncoder().encode(try content($0)) })
  let body = ResponseBody { writer in
    // A client that goes away cancels what is inside, also while nothing changes.
    try? await request.body.consumeWithCancellationOnInboundClose { _ in
      for try await event in events { try await writer.write(ByteBuffer(string: event)) }
    }
    try await writer.finish(nil)
  }
  return Response(status: .ok, headers: headers, body: body)
}

/// The texts of the events. They end with the service.
struct LiveEvents<Model: Codable & Sendable>: AsyncSequence, Sendable {
  let query: TypedQuery<Model>
  let content: @Sendable (TypedQuerySnapshot<Model>) throws -> Data

  func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(
      content: content, base: query.snapshots.cancelOnGracefulShutdown().makeAsyncIterator())
  }

  struct AsyncIterator: AsyncIteratorProtocol {
    let content: @Sendable (TypedQuerySnapshot<Model>) throws -> Data
    var base:
      AsyncCancelOnGracefulShutdownSequence<Updates<TypedQuerySnapshot<Model>>>.AsyncIterator

    mutating func next() async throws -> String? {
      guard let snapshot = try await base.next() else { return nil }
      // JSON has no line breaks here, so a line has all of it.
      return "event: result\ndata: \(String(decoding: try content(snapshot), as: UTF8.self))\n\n"
    }
  }
}

"""##,
    "Sources/App/Shop.swift": ##"""
// What the app does with its data, without HTTP: indexes, queries, pages and pictures.

import Foundation
import Hummingbird
import Ondol

/// The shop's data.
struct Shop: Sendable {
  static let mostPhotoBytes = 10 << 20

  let database: Database
  let items: TypedCollection<Item>

  init(_ database: Database) async throws {
    self.database = database
    items = try database.collection("items", of: Item.self)
    // Nothing happens where they are there already.
    try await items.createIndex(on: .ascending(\.name))
    try await items.createIndex(on: .ascending(\.category), .ascending(\.name))
    try await items.createIndex(on: .ascending(\.category), .descending(\.price))
  }

  // MARK: - One item

  func item(_ id: String) async throws -> Item {
    guard let item = try await items.document(id).getDocument() else {
      throw HTTPError(.notFound, message: "there is no item \(id)")
    }
    return item
  }

  func add(_ new: NewItem) async throws -> Item {
    try new.check()
    let document = items.document()
    let item = Item(
      id: document.documentID, name: new.name, category: new.category, price: new.price)
    try await document.create(item)
    return item
  }

  func change(_ id: String, _ changes: ItemChanges) async throws -> Item {
    let document = items.document(id)
    // Read and write are one: somebody else's change in between is not lost.
    return try await database.runTransaction { transaction in
      guard var item = try transaction.getDocument(document) else {
        throw HTTPError(.notFound, message: "there is no item \(id)")
      }
      item.name = changes.name ?? item.name
      item.price = changes.price ?? item.price
      try NewItem(name: item.name, category: item.category, price: item.price).check()
      try transaction.setData(item, forDocument: document)
      return item
    }
  }

  func delete(_ id: String) async throws {
    // The photo goes with it.
    try await items.document(id).delete()
  }

  func setPhoto(_ id: String, _ bytes: [UInt8], contentType: String?) async throws {
    let photo = try await database.storage.put(bytes, contentType: contentType)
    try await items.document(id).update(.set(\.photo, to: photo))
  }

  // MARK: - Lists

  /// All items, or those of a category, by name.
  func list(of category: String?) -> TypedQuery<Item> {
    guard let category else { return items.order(by: \.name) }
    return items.where(\.category == category).order(by: \.name)
  }

  /// A page of a list. The cursor is a text that survives restarts, and changes of the documents
  /// that it was made from.
  func page(of category: String?, limit: Int, after text: String?) async throws -> Page {
    let cursor = try text.map { text in
      guard let cursor = QueryCursor(text) else {
        throw HTTPError(.badRequest, message: "after must be the next of a page")
      }
      return cursor
    }
    let limit = min(max(limit, 1), 100)
    let found = try await list(of: category).start(after: cursor).limit(to: limit).getSnapshot()
    let items = try found.results.map { ItemAnswer(try $0.get()) }
    return Page(items: items, next: found.isLastPage ? nil : found.cursor?.description)
  }

  /// The most expensive items of each category, all as of one moment.
  func top(_ count: Int) async throws -> [TopOfCategory] {
    let categories = try await items.group(by: \.category).count().keys.sorted()
    // The index on category and price has each group in order: a few rows are read of each.
    return try await database.runTransaction { transaction in
      try categories.compactMap { category in
        let top = items.where(\.category == category).order(by: \.price, descending: true)
          .limit(to: min(max(count, 1), 100))
        let found = try transaction.getDocuments(top)
        return found.isEmpty
          ? nil : TopOfCategory(category: category, items: found.map(ItemAnswer.init))
      }
    }
  }
}

"""##,
    "Tests/AppTests/ItemTests.swift": ##"""
// Tests the service through its routes, on a device in memory: items, pages, photos, errors, and
// what is left after a power cut.

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

"""##,
    "Tests/AppTests/LiveTests.swift": ##"""
// Tests the live stream: what it says first, what it says of a change, and that it ends with the
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

"""##,
    ".gitignore": ##"""
.build*/
*.ondol/

"""##,
  ]
}
