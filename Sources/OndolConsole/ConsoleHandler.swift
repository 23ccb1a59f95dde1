// Answers the console's requests: first the guard, then the route. A server only has to carry
// bytes. The limits of size, number and time are here.

import Foundation
internal import Logging
public import Ondol
import OndolEngine

/// Whether the page may change the database.
public enum ConsoleAccess: String, Sendable, Hashable, CaseIterable {
  /// The page may change everything, after the user opens its lock.
  case edit
  /// The page may change nothing.
  case read
}

/// The console without a server: it takes requests and returns responses.
public final class ConsoleHandler: Sendable {
  /// The largest number of concurrent requests.
  static let mostRequests = 64
  /// The largest JSON body, in bytes.
  static let longestBody = 32 << 20
  /// The largest total of such bodies in memory at one time, in bytes.
  static let longestBodies = 2 * longestBody
  /// The largest object, in bytes.
  static let longestObject = 512 << 20
  /// The longest time of a query, in seconds.
  static let patience = 10

  let database: Database
  let access: ConsoleAccess
  /// The token that every request below `/api/v1/` must carry.
  public let token: String
  let monitor: Monitor
  let tasks: TaskList
  let openedAt: Timestamp
  /// The server of this process; nil for none.
  let server: (any ConsoleServerView)?
  /// The synchronisation of the database; nil for none in this process.
  let sync: (any ConsoleSyncView)?
  /// The process that writes, if this one is a follower.
  let holder: Int?
  let streams = StreamCount()
  let nudges = Nudges()
  private let gate: ConsoleGuard
  private let underWay = Guarded(0)
  /// The bytes of bodies that are in memory.
  private let bodies = Guarded(0)

  /// Makes a handler.
  ///
  /// - Parameters:
  ///   - database: the database to show.
  ///   - access: whether the page may change it. A database that is open for reading never changes.
  ///   - token: the token that requests must carry; 256 random bits for nil.
  public convenience init(
    _ database: Database, access: ConsoleAccess, token: String? = nil
  ) {
    self.init(database, access: access, token: token, holder: nil) {
      Int64(Date().timeIntervalSince1970)
    }
  }

  package init(
    _ database: Database, access: ConsoleAccess, token: String?, holder: Int?,
    server: (any ConsoleServerView)? = nil, sync: (any ConsoleSyncView)? = nil,
    clock: @escaping @Sendable () -> Int64
  ) {
    let token = token ?? Self.makeToken()
    self.database = database
    self.access = database.isReadOnly ? .read : access
    self.token = token
    self.holder = holder
    self.server = server
    self.sync = sync
    gate = ConsoleGuard(token: token, now: clock)
    tasks = TaskList(database)
    monitor = Monitor(database)
    openedAt = database.newestPoint.time
    tasks.poke = { [weak monitor] in monitor?.poke() }
  }

  /// Makes the handler accept requests for this port of the machine.
  ///
  /// - Parameter port: the port that the server listens on.
  public func serve(on port: Int) { gate.serve(on: port) }

  /// Ends all work: streams, and the page's tasks.
  public func close() {
    monitor.close()
    tasks.cancelAll()
  }

  private static func makeToken() -> String {
    var random = SystemRandomNumberGenerator()
    let bytes = (0..<32).map { _ in UInt8.random(in: 0...255, using: &random) }
    return Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
      .replacing("=", with: "")
  }

  func log(_ message: String) {
    database.log.info("console: \(message)")
  }

  // MARK: - Requests

  /// Answers a request.
  ///
  /// - Parameter request: the request as received.
  public func respond(to request: ConsoleRequest) async -> ConsoleResponse {
    let count = underWay.withLock { count in
      count += 1
      return count
    }
    defer { underWay.withLock { $0 -= 1 } }
    do {
      guard count <= Self.mostRequests else {
        var failure = ConsoleFailure(429, "resourceExhausted", "too many requests at once")
        failure.retryAfter = 1
        throw failure
      }
      return try await answer(request)
    } catch {
      return Self.refusal(ConsoleFailure(any: error))
    }
  }

  /// The response to a refused request.
  static func refusal(_ failure: ConsoleFailure) -> ConsoleResponse {
    var headers = Self.headers("application/json")
    if let seconds = failure.retryAfter { headers.append(("Retry-After", "\(seconds)")) }
    return ConsoleResponse(failure.status, headers, ConsoleBody(failure.json.bytes))
  }

  private func answer(_ request: ConsoleRequest) async throws -> ConsoleResponse {
    let parts = request.target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    let path = parts.first.map(String.init) ?? ""
    let isPage = ["/", Self.serverPath, Self.reportsPath].contains(path)
    try gate.checkPlace(request, isPage: request.method == "GET" && isPage)
    let prefix = "/api/v1/"
    guard path.hasPrefix(prefix) else { return try asset(request.method, path) }
    guard ["GET", "POST", "PUT", "PATCH", "DELETE"].contains(request.method) else {
      throw ConsoleFailure(405, "unimplemented", "there is no such method here")
    }
    try gate.checkToken(request)
    let route = path.dropFirst(prefix.count)
    let items = try QueryItems(parts.count > 1 ? parts[1] : "")
    if let response = try await bytes(request, route, items) { return response }
    var taken = 0
    defer { bodies.withLock { $0 -= taken } }
    let collected = try await request.body.collected(atMost: Self.longestBody) { count in
      try takeRoom(for: count)
      taken += count
    }
    guard let body = collected else {
      throw ConsoleFailure(413, "resourceExhausted", "the body is longer than 32 MiB")
    }
    let json = try await self.route(request, route, items, body)
    return ConsoleResponse(200, Self.headers("application/json"), ConsoleBody(json.bytes))
  }

  /// Counts the bytes of a body that is being collected, and refuses them when all bodies together
  /// are too long. A few large bodies may arrive at one time, but no number of them fills the
  /// memory.
  private func takeRoom(for count: Int) throws {
    let hasRoom = bodies.withLock { bytes in
      guard bytes + count <= Self.longestBodies else { return false }
      bytes += count
      return true
    }
    guard !hasRoom else { return }
    var failure = ConsoleFailure(429, "resourceExhausted", "too many long bodies at once")
    failure.retryAfter = 1
    throw failure
  }

  private func asset(_ method: String, _ path: String) throws -> ConsoleResponse {
    guard method == "GET" else {
      throw ConsoleFailure(405, "unimplemented", "there is no such method here")
    }
    if path == "/favicon.ico" { return ConsoleResponse(204, Self.headers(nil), ConsoleBody([])) }
    let pages = [
      "/": "index.html", Self.serverPath: "server.html", Self.reportsPath: "reports.html",
      Self.syncPath: "sync.html",
    ]
    let asset = path.hasPrefix("/assets/") ? String(path.dropFirst("/assets/".count)) : nil
    guard let name = pages[path] ?? asset, let text = Assets.files[name], isServed(name) else {
      throw ConsoleFailure(404, "notFound", "there is no such page")
    }
    let types = ["html": "text/html", "css": "text/css", "js": "text/javascript"]
    let type = types[String(name.split(separator: ".").last ?? "")] ?? "text/plain"
    var headers = Self.headers("\(type); charset=utf-8")
    // A browser paints nothing before it has the styles, so the page requests them first. With the
    // modules in that list as well, the rows appeared no sooner, and the first paint came later.
    if path == "/" { headers.append(("Link", Self.styles)) }
    return ConsoleResponse(200, headers, ConsoleBody(Array(text.utf8)))
  }

  /// Whether a file belongs to a page that there is.
  private func isServed(_ name: String) -> Bool {
    let isServers = Self.serverPages.contains(name)
    let isSyncs = Self.syncPages.contains(name)
    return !isServers && !isSyncs || isServers && server != nil || isSyncs && sync != nil
  }

  /// The address of the server's page.
  static let serverPath = "/server"

  /// The files of pages beside the console's own.
  static let otherPages = serverPages.union(reportPages).union(syncPages)

  private static let styles = Assets.files.keys
    .filter { $0.hasSuffix(".css") && !otherPages.contains($0) }.sorted()
    .map { "</assets/\($0)>; rel=preload; as=style" }.joined(separator: ", ")

  private static let policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src blob:; "
    + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    + "require-trusted-types-for 'script'; trusted-types 'none'"

  static func headers(_ type: String?) -> [(name: String, value: String)] {
    let headers = [
      (name: "Cache-Control", value: "no-store"), ("Referrer-Policy", "no-referrer"),
      ("X-Content-Type-Options", "nosniff"), ("Cross-Origin-Opener-Policy", "same-origin"),
      ("Cross-Origin-Resource-Policy", "same-origin"), ("Content-Security-Policy", policy),
    ]
    return headers + (type.map { [("Content-Type", $0)] } ?? [])
  }

  // MARK: - Routes

  /// Refuses writes to a database that may not be changed.
  private func mayWrite() throws {
    guard access == .edit else {
      throw ConsoleFailure(
        403, "permissionDenied", "this console only reads",
        hint: database.isReadOnly
          ? "embed the console in the app that writes: see its guide" : nil)
    }
  }

  /// Returns the precondition that every write of a document or an object must have.
  private func match(_ request: ConsoleRequest) throws -> UInt64 {
    guard let text = request.value(of: "if-match") else {
      throw ConsoleFailure.wrong("If-Match is missing: give the version to change")
    }
    let digits = text.dropFirst().dropLast()
    guard text.hasPrefix("\""), text.hasSuffix("\""),
      digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let version = UInt64(digits)
    else { throw ConsoleFailure.wrong("If-Match must be a version in quotes") }
    return version
  }

  /// The routes whose response or body is bytes.
  private func bytes(
    _ request: ConsoleRequest, _ route: Substring, _ items: QueryItems
  ) async throws -> ConsoleResponse? {
    switch (request.method, route) {
    case ("GET", "live"):
      try items.check(["watch"])
      return try await live(try items.text("watch"))
    case ("GET", "backup.tar"):
      try items.check([])
      return backup()
    case ("PUT", "object"):
      try items.check(["path", "type"])
      try mayWrite()
      let json = try await putObject(items, try match(request), request.body)
      return ConsoleResponse(200, Self.headers("application/json"), ConsoleBody(json.bytes))
    case ("GET", _) where route.hasPrefix("content/"):
      try items.check([])
      return try await content(
        String(route.dropFirst("content/".count)), request.value(of: "range"))
    default: return nil
    }
  }

  private func route(
    _ request: ConsoleRequest, _ route: Substring, _ items: QueryItems, _ body: [UInt8]
  ) async throws -> JSON {
    if let json = try await serverRoute(request, route, items, body, mayWrite: mayWrite) {
      return json
    }
    if let json = try await syncRoute(request, route, items, body, mayWrite: mayWrite) {
      return json
    }
    switch request.method {
    case "GET": return try await limited { try await self.get(route, items) }
    case "POST" where route == "query": return try await limited { try await self.query(body) }
    case "POST" where route == "report": return try await limited { try await self.report(body) }
    case "POST" where route == "count": return try await limited { try await self.count(body) }
    case "POST" where route == "tasks":
      return try await startTask(body) { try self.mayWrite() }
    case "DELETE" where route.hasPrefix("tasks/"):
      return try tasks.cancel(String(route.dropFirst("tasks/".count)))
    default: break
    }
    try mayWrite()
    switch (request.method, route) {
    case ("POST", "document"):
      try items.check(["collection"])
      return try await createDocument(items, body)
    case ("PUT", "document"):
      try items.check(["path"])
      return try await putDocument(items, Version(rawValue: try match(request)), body)
    case ("PATCH", "document"):
      try items.check(["path"])
      return try await patchDocument(items, Version(rawValue: try match(request)), body)
    case ("DELETE", "document"):
      try items.check(["path", "recursive"])
      return try await deleteDocument(items, Version(rawValue: try match(request)))
    case ("POST", "delete"): return try await deleteMany(body)
    case ("POST", "indexes"): return try await createIndex(body)
    case ("DELETE", "indexes"):
      try items.check(["collection", "group", "name"])
      return try await dropIndex(items)
    case ("PUT", "tree"), ("PATCH", "tree"), ("DELETE", "tree"):
      try items.check(["path"])
      return try await changeTree(request.method, items["path"] ?? "", body)
    case ("PATCH", "object"):
      try items.check(["path"])
      return try await patchObject(items, try match(request), body)
    case ("DELETE", "object"):
      try items.check(["path"])
      return try await deleteObject(items, try match(request))
    default: throw ConsoleFailure(404, "notFound", "there is no such route")
    }
  }

  private func get(_ route: Substring, _ items: QueryItems) async throws -> JSON {
    let known: [Substring: [String]] = [
      "database": [], "collections": ["below"], "schema": ["collection", "group"],
      "document": ["path"], "indexes": [], "tree": ["path", "limit", "after"],
      "tree/value": ["path"], "storage": ["prefix", "limit", "page"], "object": ["path"],
      "holders": ["sha256"], "storage/accounting": [], "changes": ["since", "limit", "path"],
      "statistics": [], "tasks": [],
    ]
    guard let names = known[route] else {
      throw ConsoleFailure(404, "notFound", "there is no such route")
    }
    try items.check(names)
    switch route {
    case "database": return try description()
    case "collections": return try await collections(below: items["below"])
    case "schema": return try await schema(items)
    case "document": return try await document(items)
    case "indexes": return .declarations(try await database.declarations())
    case "tree":
      return try await tree(
        items["path"] ?? "", limit: try items.number("limit", or: 100, in: 1...1_000),
        after: items["after"])
    case "tree/value": return try await treeValue(items["path"] ?? "")
    case "storage":
      return try await storage(
        items["prefix"] ?? "", limit: try items.number("limit", or: 200, in: 1...1_000),
        page: items["page"])
    case "object": return try await object(items)
    case "holders": return try await holders(try items.text("sha256"))
    case "storage/accounting": return try await accounting()
    case "changes":
      return try await changes(
        since: items["since"], limit: try items.number("limit", or: 100, in: 1...1_000),
        below: items["path"])
    case "statistics": return ["samples": .list(monitor.samples)]
    default: return tasks.json
    }
  }

  /// Cancels a response that takes too long.
  private func limited(_ body: @escaping @Sendable () async throws -> JSON) async throws -> JSON {
    try await withThrowingTaskGroup(of: JSON.self) { group in
      group.addTask { try await body() }
      group.addTask {
        try await Task.sleep(for: .seconds(Self.patience))
        throw ConsoleFailure(503, "deadlineExceeded", "this takes longer than 10 seconds")
      }
      defer { group.cancelAll() }
      return try await group.next() ?? .null
    }
  }

  /// The pages beside the console's.
  private var pages: [(String, String)] {
    (server == nil ? [] : [("server", "Server")]) + (sync == nil ? [] : [("sync", "Sync")])
  }

  private func description() throws -> JSON {
    let point = database.newestPoint
    let path = database.name
    return [
      "path": .text(path), "name": .text(String(path.split(separator: "/").last ?? "")),
      "identity": .text(database.identity),
      "role": database.isReadOnly ? "follower" : "writer",
      "pid": .number(Int(ProcessInfo.processInfo.processIdentifier)),
      "holder": holder.map { ["pid": .number($0)] }, "access": .text(access.rawValue),
      "version": .digits(point.version.rawValue), "token": .text("\(database.newestToken)"),
      "keepsChanges": .boolean(database.keepsChanges), "opened": .time(openedAt),
      "library": "0.1.0", "pages": .list(pages.map { .texts([$0.0, $0.1]) }),
    ]
  }

  func collections(below path: String?) async throws -> JSON {
    let parent = path.flatMap { $0.isEmpty ? nil : database.document($0) }
    let found = try await database.collectionInformation(below: parent).prefix(1_000)
    return ["collections": .list(found.map { .collection($0) })]
  }
}
