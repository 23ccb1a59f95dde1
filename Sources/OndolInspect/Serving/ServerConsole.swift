// The console beside `ondol serve`: the page of the database, and the page of the server, which
// OndolServer's view fills.

#if Server
  import Foundation
  import Ondol
  import OndolConsole
  import OndolServer
  import OndolTerminal

  /// A console and what it shows of the server.
  struct ServerConsole {
    let view: ServerView
    private let console: OndolConsole.Console

    /// Serves the console of a database.
    init(_ database: Database, _ port: Int) async throws {
      view = ServerView()
      console = try await OndolConsole.Console.start(
        database, access: .edit, port: port, holder: nil, server: Shown(view, database))
    }

    /// The console's address, with the token.
    var url: String { console.url }

    func stop() async { await console.stop() }
  }

  /// The server, as the console asks about it.
  private struct Shown: ConsoleServerView {
    private static let pageLength = 100

    private let view: ServerView
    private let database: Database

    init(_ view: ServerView, _ database: Database) {
      self.view = view
      self.database = database
    }

    func state() async throws -> Value { view.state }

    func rules() async throws -> Value {
      guard let (number, texts) = try await ServerRules.newest(in: database) else { return [:] }
      var fields: [String: Value] = ["number": .integer(number)]
      for kind in RulesKind.allCases { fields[kind.rawValue] = texts[kind].map(Value.string) }
      return .map(fields)
    }

    func problem(inRules text: String, of kind: String) throws -> Value {
      try Self.kind(kind).problem(in: text).map(Value.string) ?? .null
    }

    func deploy(rules text: String, of kind: String) async throws -> Value {
      var texts = RulesTexts()
      texts[try Self.kind(kind)] = text
      _ = try await ServerRules.deploy(texts, to: database)
      let number = try await ServerRules.newest(in: database)?.number
      return ["number": .integer(number ?? 0)]
    }

    private static func kind(_ name: String) throws(DatabaseError) -> RulesKind {
      guard let kind = RulesKind(rawValue: name) else {
        throw DatabaseError(.invalidArgument, "there are no rules for \(name)")
      }
      return kind
    }

    func accounts(after uid: String?) async throws -> Value {
      let (users, count) = try await ServerView.accounts(
        of: database, after: uid, limit: Self.pageLength)
      return ["users": .array(users), "count": .integer(Int64(count))]
    }
  }
#endif
