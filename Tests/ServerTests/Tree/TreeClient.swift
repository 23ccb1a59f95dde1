// A client of the Realtime Database's WebSocket protocol, as far as tests need one: it sends
// requests as frames to a session, keeps the answers, and keeps its own view of each place that it
// listens to, from nothing but what it is sent. It holds only what the protocol says, and knows
// nothing of the database behind it.

#if Server
  import Foundation
  import Ondol
  import OndolEngine
  import OndolJSON
  import OndolTestKit

  @testable import OndolServer

  /// A client, which is also its own connection.
  final class TreeClient: TreeConnection {
    struct Answer: Sendable, Equatable {
      var status: String
      var data: Value
    }

    struct Listening: Sendable {
      var path: [String]
      var tag: Int64?
      var view = ModelTree()
      /// Messages that changed it, or repeated it.
      var pushes = 0
      var isRevoked = false
    }

    struct State: Sendable {
      var frames = TreeFrames(messageLimit: 256 << 20)
      var answers: [Int64: Answer] = [:]
      var next: Int64 = 1
      var listens: [Listening] = []
      /// Everything that no request asked for: its action and its body.
      var pushes: [(action: String, body: Value)] = []
      var hello: Value?
      var pongs = 0
      var isClosed = false
      var frameCount = 0
    }

    let state = Guarded(State())

    // MARK: - The connection

    func send(_ frame: String) async throws {
      try state.withLock { state in
        if state.isClosed { throw CancellationError() }
        state.frameCount += 1
        guard let bytes = try state.frames.take(frame) else { return }
        let message = try JSONReader.read(bytes, .plain, numbers: .double)
        state.take(message["d"] ?? .null, isData: message["t"]?.string == "d")
      }
    }

    func close() async { state.withLock { $0.isClosed = true } }

    var isClosed: Bool { state.withLock { $0.isClosed } }

    // MARK: - Requests

    /// Sends a request as the text of a client, and waits for the answer.
    func ask(_ session: TreeSession, _ action: String, _ body: String) async -> Answer? {
      let number = state.withLock { state in
        defer { state.next += 1 }
        return state.next
      }
      let message = "{\"t\":\"d\",\"d\":{\"r\":\(number),\"a\":\"\(action)\",\"b\":\(body)}}"
      for frame in TreeFrames.frames(of: message) { await session.receive(frame) }
      return state.withLock { $0.answers[number] }
    }

    /// Begins to listen, with the view that the client has kept.
    func listen(
      _ session: TreeSession, _ path: String, query: String? = nil, tag: Int64? = nil,
      hash: String = "", keeping view: ModelTree = ModelTree()
    ) async -> Answer? {
      let keys = path.split(separator: "/").map(String.init)
      state.withLock { state in
        state.listens.removeAll { $0.path == keys && $0.tag == tag }
        state.listens.append(Listening(path: keys, tag: tag, view: view))
      }
      let rest = query.map { ",\"q\":\($0),\"t\":\(tag ?? 0)" } ?? ""
      return await ask(
        session, "q", "{\"p\":\(TreeText.json(path)),\"h\":\"\(hash)\"\(rest)}")
    }

    func listening(_ path: String, tag: Int64? = nil) -> Listening? {
      let keys = path.split(separator: "/").map(String.init)
      return state.withLock { $0.listens.first { $0.path == keys && $0.tag == tag } }
    }

    func view(_ path: String, tag: Int64? = nil) -> Value {
      listening(path, tag: tag)?.view.exported ?? .null
    }
  }

  extension TreeClient.State {
    fileprivate mutating func take(_ body: Value, isData: Bool) {
      guard isData else {
        if body["t"]?.string == "h" { hello = body["d"] }
        if body["t"]?.string == "o" { pongs += 1 }
        return
      }
      if let number = body["r"]?.integer {
        answers[number] = TreeClient.Answer(
          status: body["b"]?["s"]?.string ?? "", data: body["b"]?["d"] ?? .null)
        return
      }
      let (action, content) = (body["a"]?.string ?? "", body["b"] ?? .null)
      pushes.append((action, content))
      let path = (content["p"]?.string ?? "").split(separator: "/").map(String.init)
      switch action {
      case "d": write([(path, content["d"] ?? .null)], tag: content["t"]?.integer)
      case "m":
        let changes = (content["d"]?.map ?? [:]).map { key, value in
          (path + key.split(separator: "/").map(String.init), value)
        }
        write(changes, tag: content["t"]?.integer)
      case "c":
        for index in listens.indices where listens[index].path == path {
          listens[index].isRevoked = true
        }
      default: break
      }
    }

    /// Puts what came into the views that it is for.
    private mutating func write(_ changes: [(path: [String], value: Value)], tag: Int64?) {
      for index in listens.indices where listens[index].tag == tag {
        var isConcerned = false
        for (path, value) in changes where path.starts(with: listens[index].path) {
          isConcerned = true
          let below = path.dropFirst(listens[index].path.count)
          if below.last == ".priority" {
            let priority = value.isNull ? Optional.none : value
            listens[index].view.prioritize(below.dropLast(), priority)
          } else {
            listens[index].view.set(below, ModelTree(json: value))
          }
        }
        if isConcerned { listens[index].pushes += 1 }
      }
    }
  }

  extension ModelTree {
    /// A node as the protocol has it.
    init(json: Value) {
      self.init()
      switch json {
      case .null: return
      case .map(var fields):
        priority = fields.removeValue(forKey: ".priority")
        if let leaf = fields[".value"] {
          self.leaf = leaf
          return
        }
        children = fields.mapValues { ModelTree(json: $0) }.filter { $0.value.exists }
      case .array(let elements):
        for (index, element) in elements.enumerated() where !element.isNull {
          children[String(index)] = ModelTree(json: element)
        }
      default: leaf = json
      }
    }
  }

  /// A database with sessions on it.
  struct TreeStage {
    let database: Database
    let rules: ServerRules
    let access: TreeAccess

    init(_ database: Database, isOpen: Bool = true, _ gate: CallGate? = nil) {
      self.database = database
      rules = ServerRules(database)
      access = TreeAccess(StagedAuthentication(), rules, isOpenWithoutRules: isOpen, gate)
    }

    /// Deploys a rules file; returns when its rules are in force.
    func deploy(_ text: String) async throws {
      _ = try await rules.deploy(RulesTexts(database: text))
    }

    static func inMemory() async throws -> TreeStage {
      TreeStage(try await Database.inMemory())
    }

    func session(
      _ number: UInt64, _ change: (inout TreeSession.Options) -> Void = { _ in }
    ) -> (TreeSession, TreeClient) {
      var options = TreeSession.Options()
      change(&options)
      let client = TreeClient()
      return (
        TreeSession(database, access, on: client, number: number, options: options), client
      )
    }
  }

  /// Takes "admin" for an administrator, "expired" for nobody, "until N" for a user whose
  /// credential ends N microseconds after 1970, and any other credential for a user's id.
  struct StagedAuthentication: TreeAuthentication {
    func principal(ofCredential credential: String) async throws -> TreePrincipal {
      switch credential {
      case "admin": return .administrator
      case "expired": throw TreeRefusal(.expiredToken, "Auth token is expired")
      default:
        var principal = TreePrincipal(auth: .map(["uid": .string(credential)]))
        if credential.hasPrefix("until ") { principal.expiry = Int64(credential.dropFirst(6)) }
        return principal
      }
    }
  }
#endif
