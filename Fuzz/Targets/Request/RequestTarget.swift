// Requests as a connection brings them, to the console of a small database. Every request gets a
// valid response: a documented status, header fields without line breaks, readable JSON. Without
// the token, no response contains anything from the database, and the server keeps no more of a
// request than its limits permit.

import Dispatch
import Foundation
import Ondol
import OndolEngine
import OndolJSON

@testable import OndolConsole

enum RequestTarget: FuzzTarget {
  static let name = "request"
  private static let token = "secret"

  static func run(_ bytes: [UInt8]) {
    var input = FuzzInput(bytes)
    let isWritten = input.flag()
    let cut = 1 + input.below(65_536)
    let sent = isWritten ? input.rest() : requests(&input)
    let isDone = DispatchSemaphore(value: 0)
    Task {
      do {
        try await serve(sent, inPiecesOf: cut)
      } catch {
        demand(false, "\(error)")
      }
      isDone.signal()
    }
    isDone.wait()
  }

  // MARK: - A connection

  private static func serve(_ bytes: [UInt8], inPiecesOf length: Int) async throws {
    let database = try await Database.inMemory()
    try await database.document("items/lamp").setData(["price": 39_000, "tags": ["new"]])
    try await database.document("items/lamp/notes/a").setData(["text": "é"])
    try await database.tree.child("cars/1").setValue(["speed": 40])
    let handler = ConsoleHandler(database, access: .edit, token: token)
    handler.serve(on: 8080)
    let rest = Guarded(bytes[...])
    let incoming = Incoming(Patience()) {
    } read: {
      rest.withLock { rest in
        let piece = Array(rest.prefix(length))
        rest = rest.dropFirst(piece.count)
        return piece
      }
    }
    do {
      // A request over its limits is cut off, and a reader never gets more bytes than arrived.
      while let head = try await incoming.head() {
        check(head, sent: bytes.count)
        let response = await handler.respond(
          to: ConsoleRequest(
            method: head.method, target: head.target, headers: head.headers,
            body: ConsoleBody { try await incoming.piece() }))
        await check(response, to: head)
        guard await incoming.skip(atMost: 1 << 20), !head.isLast else { break }
      }
    } catch let failure as ConsoleFailure {
      demand([400, 431].contains(failure.status), "a head is refused with \(failure.status)")
      await check(ConsoleHandler.refusal(failure), to: nil)
    }
    handler.close()
    try await database.close()
  }

  private static func check(_ head: RequestHead, sent count: Int) {
    let length = head.headers.reduce(head.target.utf8.count) {
      $0 + $1.name.utf8.count
    }
    demand(length <= min(count, RequestHead.longest), "a head longer than what came")
    demand(head.headers.count <= 100, "\(head.headers.count) header fields")
    demand(!head.method.isEmpty && !head.target.isEmpty, "a head without a method or target")
    for (name, value) in head.headers {
      demand(
        !name.isEmpty && !(name + value).utf8.contains { $0 == 10 || $0 == 13 || $0 == 0 },
        "a field with a line break: \(name)")
    }
  }

  // MARK: - Answers

  private static let statuses: Set = [
    200, 204, 206, 400, 401, 403, 404, 405, 409, 413, 421, 429, 431, 503,
  ]

  private static func check(_ response: ConsoleResponse, to head: RequestHead?) async {
    let what = "\(head?.method ?? "") \(head?.target ?? "")"
    demand(statuses.contains(response.status), "\(what): status \(response.status)")
    for (name, value) in response.headers {
      demand(
        (name + value).utf8.allSatisfy { (0x20..<0x7f).contains($0) }, "\(what): \(name): \(value)")
    }
    func value(_ name: String) -> String? { response.headers.first { $0.name == name }?.value }
    demand(value("X-Content-Type-Options") == "nosniff", "\(what): bytes may have a type")
    demand(value("Content-Security-Policy") != nil, "\(what): no policy")
    if let head { checkToken(head, response, what) }
    let isStream = value("Content-Type") == "text/event-stream"
    var bytes: [UInt8] = []
    do {
      for try await piece in response.body {
        bytes += piece
        if isStream { break }
        demand(bytes.count <= 64 << 20, "\(what): an answer without end")
      }
    } catch {
      return demand(response.status == 200, "\(what): breaks off: \(error)")
    }
    if let length = value("Content-Length").flatMap({ Int($0) }) {
      demand(length == bytes.count, "\(what): \(bytes.count) bytes, not \(length)")
    }
    if isStream { checkEvents(bytes, what) }
    guard value("Content-Type") == "application/json" else { return }
    let json = try? JSONReader.read(bytes, .plain)
    demand(json?.map != nil, "\(what): \(String(decoding: bytes.prefix(200), as: UTF8.self))")
    guard response.status >= 400 else { return }
    demand(
      json?.map?["code"]?.string?.isEmpty == false
        && json?.map?["message"]?.string?.isEmpty == false,
      "\(what): a refusal that says nothing")
  }

  /// A response contains nothing from the database without the token, or for a request from
  /// elsewhere than this machine's page.
  private static func checkToken(
    _ head: RequestHead, _ response: ConsoleResponse, _ what: String
  ) {
    func values(_ name: String) -> [String] {
      head.headers.filter { $0.name.lowercased() == name }.map(\.value)
    }
    let isKnown = values("authorization") == ["Bearer \(token)"]
    let isHere = ["127.0.0.1:8080", "localhost:8080", "[::1]:8080"].contains(values("host").first)
    guard head.target.hasPrefix("/api/v1/"), !isKnown || !isHere || values("host").count != 1 else {
      return
    }
    demand(
      [401, 403, 405, 421].contains(response.status), "\(what): \(response.status) for a stranger")
  }

  private static func checkEvents(_ bytes: [UInt8], _ what: String) {
    let text = String(decoding: bytes, as: UTF8.self)
    demand(text.isEmpty || text.hasSuffix("\n\n"), "\(what): half an event")
    for line in text.split(separator: "\n") {
      demand(
        ["event: ", "id: ", "data: ", ": "].contains { line.hasPrefix($0) }, "\(what): \(line)")
    }
  }

  // MARK: - Requests with a valid head

  private static let routes: [(method: String, route: String)] = [
    ("GET", "database"), ("GET", "collections"), ("GET", "schema"), ("POST", "query"),
    ("POST", "count"), ("GET", "document"), ("POST", "document"), ("PUT", "document"),
    ("PATCH", "document"), ("DELETE", "document"), ("POST", "delete"), ("GET", "indexes"),
    ("POST", "indexes"), ("DELETE", "indexes"), ("GET", "tree"), ("GET", "tree/value"),
    ("PUT", "tree"), ("PATCH", "tree"), ("DELETE", "tree"), ("GET", "storage"),
    ("GET", "object"), ("PUT", "object"), ("PATCH", "object"), ("DELETE", "object"),
    ("GET", "content/00"), ("GET", "holders"), ("GET", "storage/accounting"), ("GET", "changes"),
    ("GET", "statistics"), ("POST", "tasks"), ("GET", "tasks"), ("DELETE", "tasks/t0"),
    ("GET", "backup.tar"), ("GET", "live"), ("HEAD", "database"), ("OPTIONS", "query"),
  ]
  private static let names = [
    "path", "collection", "group", "below", "limit", "after", "prefix", "page", "sha256", "since",
    "name", "type", "recursive", "watch", "x",
  ]
  private static let values = [
    "items%2Flamp", "items", "notes", "cars%2F1", "", "1", "500", "-1", "99999999999999999999",
    "%00", "%FF", "%2e%2e%2f", "a/b/c/d", "%ED%95%9C", "true", "image%2Fpng", "..", "%",
  ]
  private static let members = [
    "\"collection\":\"items\"", "\"group\":\"notes\"", "\"where\":\"price > 1\"", "\"where\":\"(\"",
    "\"order\":\"-price\"", "\"order\":\"price desc\"", "\"limit\":3", "\"limit\":1e99",
    "\"after\":\"x\"", "\"explain\":\"analyze\"", "\"explain\":\"plan\"", "\"select\":\"price\"",
    "\"aggregate\":[{\"op\":\"sum\",\"field\":\"price\"}]", "\"by\":\"price\"",
    "\"lookups\":[{\"field\":\"a\",\"in\":\"items\",\"as\":\"b\"}]", "\"fields\":{\"a\":1}",
    "\"fields\":[\"price\",\"-a\"]", "\"set\":{\"a.b\":{\"$numberLong\":\"1\"}}",
    "\"delete\":[\"price\"]", "\"id\":\"x\"", "\"dryRun\":true", "\"dryRun\":false",
    "\"unique\":true", "\"elements\":true", "\"value\":{\"a\":[1,null]}", "\"value\":null",
    "\"values\":{\"a/b\":1,\"a\":2}", "\"expected\":null", "\"priority\":1",
    "\"kind\":\"verify\"", "\"kind\":\"rebuildIndex\"", "\"kind\":\"tree\"", "\"kind\":\"feed\"",
    "\"kind\":\"query\"", "\"kind\":\"document\"", "\"kind\":\"statistics\"",
    "\"path\":\"items/lamp\"", "\"path\":\"\"", "\"name\":\"price\"", "\"depth\":\"full\"",
    "\"contentType\":\"a\\r\\nb\"", "\"custom\":{\"a\":\"b\"}",
  ]

  private static func requests(_ input: inout FuzzInput) -> [UInt8] {
    var bytes: [UInt8] = []
    repeat {
      let (method, route) = input.pick(routes)
      var target = "/api/v1/\(route)"
      for index in 0..<input.below(4) {
        let name = input.pick(names)
        let value = name == "watch" ? watch(&input) : input.pick(values)
        target += "\(index == 0 ? "?" : "&")\(name)=\(value)"
      }
      let body = Array(object(&input).utf8)
      var head = "\(method) \(target) HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n"
      if !input.oneIn(16) { head += "Authorization: Bearer \(token)\r\n" }
      if input.flag() { head += "If-Match: \"\(input.pick(["0", "1", "2", "-1", "\u{1}"]))\"\r\n" }
      if input.oneIn(8) { head += "Range: bytes=\(input.below(9))-\(input.below(9))\r\n" }
      if input.oneIn(8) { head += "Origin: \(input.pick(["null", "http://127.0.0.1:8080"]))\r\n" }
      if input.flag() {
        head += "Content-Length: \(body.count)\r\n\r\n"
        bytes += head.utf8 + body
      } else {
        head += "Transfer-Encoding: chunked\r\n\r\n\(String(body.count, radix: 16))\r\n"
        bytes += head.utf8 + body + (body.isEmpty ? [] : Array("\r\n0\r\n".utf8)) + "\r\n".utf8
      }
    } while input.oneIn(3)
    bytes.damage(&input)
    return bytes
  }

  private static func object(_ input: inout FuzzInput) -> String {
    "{\((0..<input.below(5)).map { _ in input.pick(members) }.joined(separator: ","))}"
  }

  private static func watch(_ input: inout FuzzInput) -> String {
    let list = (0..<input.below(3)).map { number in
      "{\"id\":\"w\(number)\",\((1...2).map { _ in input.pick(members) }.joined(separator: ","))}"
    }
    return Data("[\(list.joined(separator: ","))]".utf8).base64EncodedString()
      .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  // MARK: - Seeds

  static func seeds() -> [[UInt8]] {
    let written = [
      "GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n",
      "GET /api/v1/database HTTP/1.1\r\nHost: localhost:8080\r\n"
        + "Authorization: Bearer secret\r\n\r\n",
      "PUT /api/v1/document?path=a%2Fb HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nIf-Match: \"0\"\r\n"
        + "Authorization: Bearer secret\r\nTransfer-Encoding: chunked\r\n\r\n"
        + "14\r\n{\"fields\":{\"x\":\"yz\"}\r\n1\r\n}\r\n0\r\n\r\n",
      "POST /api/v1/count HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nExpect: 100-continue\r\n"
        + "Authorization: Bearer secret\r\nContent-Length: 22\r\n\r\n{\"collection\":\"items\"}\n"
        + "GET /assets/app.js HTTP/1.0\r\nHost: [::1]:8080\r\n\r\n",
    ]
    var chance = Chance(16)
    return written.map { [1, 255, 255] + $0.utf8 }
      + (0..<24).map { [0, UInt8($0), 3] + chance.bytes(40) }
  }
}
