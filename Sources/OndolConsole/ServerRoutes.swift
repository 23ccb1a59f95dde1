// What a server in the same process adds to the console: its page, and the routes below `server`.
// The console knows nothing of rules and accounts. It checks what a request may be, and asks the
// server.

package import Ondol
import OndolJSON

/// A server whose view the console shows. Values are shown as plain JSON.
package protocol ConsoleServerView: Sendable {
  /// Counts, open calls, and what was refused lately.
  func state() async throws -> Value
  /// The rules in force.
  func rules() async throws -> Value
  /// What is wrong with rules of a kind: null for nothing.
  func problem(inRules text: String, of kind: String) throws -> Value
  /// Puts rules in force.
  func deploy(rules text: String, of kind: String) async throws -> Value
  /// A page of accounts.
  func accounts(after uid: String?) async throws -> Value
}

extension ConsoleHandler {
  /// The files of the server's page, beside those that it shares with the console's.
  static let serverPages: Set = ["server.html", "server.js", "server.css"]

  /// Answers a request below `server`; nil for another route.
  func serverRoute(
    _ request: ConsoleRequest, _ route: Substring, _ items: QueryItems, _ body: [UInt8],
    mayWrite: () throws -> Void
  ) async throws -> JSON? {
    guard route == "server" || route.hasPrefix("server/") else { return nil }
    guard let server else {
      throw ConsoleFailure(404, "notFound", "no server is beside this console")
    }
    try items.check(route == "server/accounts" ? ["after"] : [])
    switch (request.method, route) {
    case ("GET", "server"): return .plain(try await server.state())
    case ("GET", "server/rules"): return .plain(try await server.rules())
    case ("GET", "server/accounts"):
      return .plain(try await server.accounts(after: items["after"]))
    case ("POST", "server/rules/check"):
      let members = try Members(body, known: ["kind", "text"])
      return .plain(
        try server.problem(
          inRules: try members.text("text") ?? "", of: try members.needed("kind")))
    case ("PUT", "server/rules"):
      try mayWrite()
      let members = try Members(body, known: ["kind", "text"])
      return .plain(
        try await server.deploy(
          rules: try members.text("text") ?? "", of: try members.needed("kind")))
    default: throw ConsoleFailure(404, "notFound", "there is no such route")
    }
  }
}

extension JSON {
  /// A value without the types that JSON does not have.
  static func plain(_ value: Ondol.Value) -> JSON {
    .written(Array(JSONWriter.line(value, .plain).utf8))
  }
}
