// Frames of the Realtime Database's clients, one a line, to a session over a small tree. Whatever
// comes, the session sends whole messages of JSON, answers each request at most once, and never
// says that the server has a fault; its views lead to the tree as it is; and what is to be written
// when the connection ends is written, so that nothing of it stays in the database.

#if Server
  import Dispatch
  import Ondol
  import OndolEngine
  import OndolJSON

  @testable import OndolServer

  enum WebSocketTarget: FuzzTarget {
    static let name = "websocket"

    static func run(_ bytes: [UInt8]) {
      let isDone = DispatchSemaphore(value: 0)
      Task {
        do {
          try await serve(bytes.split(separator: 0x0A))
        } catch {
          demand(false, "\(error)")
        }
        isDone.signal()
      }
      isDone.wait()
    }

    /// Sound frames, of each request one.
    static func seeds() -> [[UInt8]] {
      let requests = [
        "q|{\"p\":\"/items\",\"h\":\"\"}",
        "q|{\"p\":\"/items\",\"q\":{\"i\":\"n\",\"l\":2,\"vf\":\"r\"},\"t\":1}",
        #"q|{"p":"/","q":{"i":".key","sp":"a","sin":false,"ep":"z"},"t":2,"h":"x"}"#,
        "n|{\"p\":\"/items\"}", "g|{\"p\":\"/items\",\"q\":{}}",
        "p|{\"p\":\"/items/lamp/n\",\"d\":31}",
        "p|{\"p\":\"/items/.priority\",\"d\":\"p\",\"h\":\"\"}",
        #"m|{"p":"/","d":{"items/bulb":{".value":1,".priority":2},"x":[1,{".sv":"timestamp"}]}}"#,
        "o|{\"p\":\"/gone\",\"d\":{\".sv\":{\"increment\":1}}}",
        "om|{\"p\":\"/\",\"d\":{\"gone\":true}}",
        "oc|{\"p\":\"/gone\",\"d\":null}", "auth|{\"cred\":\"anna\"}",
        "gauth|{\"cred\":\"owner\",\"authvar\":{}}",
        "unauth|{}", "s|{\"c\":{}}",
      ]
      let frames = requests.enumerated().map { number, request in
        let parts = request.split(separator: "|", maxSplits: 1)
        return "{\"t\":\"d\",\"d\":{\"r\":\(number),\"a\":\"\(parts[0])\",\"b\":\(parts[1])}}"
      }
      let whole = frames.joined(separator: "\n")
      let cut = "2\n{\"t\":\"c\",\"d\"\n:{\"t\":\"p\",\"d\":{}}}\n0\n3\n{"
      return (frames + [whole, cut]).map { Array($0.utf8) }
    }

    private static func serve(_ frames: [ArraySlice<UInt8>]) async throws {
      let database = try await Database.inMemory()
      try await database.tree.setValue(["items": ["lamp": ["n": 30], "bulb": ["n": 5]]])
      let rules = ServedDatabase(database).rules
      _ = try await rules.deploy(
        RulesTexts(
          database: "{\"rules\": {\".read\": true, \"items\": {\".write\": \"auth == null\"}}}"))
      let access = TreeAccess(AnyoneByName(), rules, isOpenWithoutRules: true)
      let client = CheckingConnection()
      var options = TreeSession.Options()
      options.messageLimit = 1 << 16
      options.principal = .administrator
      let session = TreeSession(database, access, on: client, number: 1, options: options)
      for frame in frames {
        guard let text = String(validating: frame, as: UTF8.self) else { break }
        await session.receive(text)
      }
      await session.end()
      let tree = try await database.tree.getData()
      demand(try await database.verify(depth: .full).isEmpty, "the tree is damaged: \(tree)")
      try await database.close()
    }
  }

  /// Everybody is who they say.
  private struct AnyoneByName: TreeAuthentication {
    func principal(ofCredential credential: String) async throws -> TreePrincipal {
      credential == "owner"
        ? .administrator : TreePrincipal(auth: .map(["uid": .string(credential)]))
    }
  }

  /// Takes frames and checks that they are messages.
  private final class CheckingConnection: TreeConnection {
    private struct State: Sendable {
      var frames = TreeFrames(messageLimit: 64 << 20)
      var isClosed = false
    }

    private let state = Guarded(State())

    func send(_ frame: String) async throws {
      try state.withLock { state in
        if state.isClosed { throw CancellationError() }
        guard let bytes = try state.frames.take(frame) else { return }
        do throws(JSONError) {
          let message = try JSONReader.read(bytes, .plain, numbers: .double)
          let status = message["d"]?["b"]?["s"]?.string
          demand(status != "internal_error", "the server has a fault: \(message)")
        } catch {
          // Two keys that are canonically equivalent are one name to this reader.
          let isTwice = error.reason.contains("stands twice")
          demand(isTwice, "no message: \(String(decoding: bytes, as: UTF8.self)): \(error.reason)")
        }
      }
    }

    func close() async { state.withLock { $0.isClosed = true } }
  }
#endif
