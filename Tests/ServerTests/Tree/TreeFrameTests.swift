// Frames, paths and JSON of the protocol, without a session.

#if Server
  import Ondol
  import OndolTestKit
  import Testing

  @testable import OndolServer

  @Suite struct `Frames and texts of the tree` {
    @Test func `A message comes out of its frames as it was, however it is cut`() throws {
      for seed in Seeds.first(50) {
        var random = SeededRandom(seed: seed)
        let characters = ["a", "é", "한", "😀", "\"", "e\u{301}", "\r\n"]
        let count = random.pick([0, 1, 5, 6, 7, 16_383, 16_384, 16_385, 40_000])
        let message = "{" + (0..<count).map { _ in random.pick(characters) }.joined()
        let frames = TreeFrames.frames(of: message)
        #expect(frames.allSatisfy { $0.utf8.count <= TreeFrames.frameLength }, "SEED=\(seed)")
        var assembler = TreeFrames(messageLimit: 1 << 20)
        var messages: [[UInt8]] = []
        // Keeping alive between messages is allowed, and not within one.
        for frame in ["0"] + frames + ["0"] {
          if let message = try assembler.take(frame) { messages.append(message) }
        }
        #expect(messages == [Array(message.utf8)], "SEED=\(seed)")
      }
    }

    @Test func `Two messages do not mix, and a count that lies takes what follows`() throws {
      var assembler = TreeFrames(messageLimit: 1_024)
      #expect(try assembler.take("2") == nil)
      #expect(try assembler.take("{\"a\":") == nil)
      #expect(try assembler.take("1}") == Array("{\"a\":1}".utf8))
      #expect(try assembler.take("{}") == Array("{}".utf8))
      // A third frame was announced: the next message becomes a part of this one.
      #expect(try assembler.take("3") == nil)
      #expect(try assembler.take("{\"a\":") == nil)
      #expect(try assembler.take("1}") == nil)
      #expect(try assembler.take("{\"b\":2}") == Array("{\"a\":1}{\"b\":2}".utf8))
      #expect(throws: TreeRefusal.self) { try TreeMessage(Array("{\"a\":1}{\"b\":2}".utf8)) }
    }

    @Test func `What is announced or sent beyond the limit is refused`() throws {
      var assembler = TreeFrames(messageLimit: 1_024)
      #expect(throws: TreeRefusal.self) { try assembler.take("5") }
      #expect(throws: TreeRefusal.self) { try assembler.take(String(repeating: "x", count: 1_025)) }
      #expect(try assembler.take("3") == nil)
      #expect(try assembler.take(String(repeating: "x", count: 1_000)) == nil)
      #expect(throws: TreeRefusal.self) { try assembler.take(String(repeating: "x", count: 25)) }
    }

    @Test func `Paths are keys between slashes`() throws {
      #expect(try TreePlace("/").keys == [])
      #expect(try TreePlace("").keys == [])
      #expect(try TreePlace("//a///b/").keys == ["a", "b"])
      // A slash with a combining mark is a slash, and the mark begins a key.
      #expect(try TreePlace("a/\u{301}b").keys.count == 2)
      #expect(try TreePlace(String(repeating: "k", count: 768)).keys.count == 1)
      for path in ["a.b", "..", ".", "a/../b", "$a", "#", "[", "]", "a\u{0}", "a\n", "\u{7f}"] {
        #expect(throws: TreeRefusal.self, "\(path)") { try TreePlace(path) }
      }
      #expect(throws: TreeRefusal.self) { try TreePlace(String(repeating: "k", count: 769)) }
      #expect(try TreeTarget("/a/.priority").isPriority)
      #expect(try TreeTarget("/.priority").place.keys == [])
      #expect(throws: TreeRefusal.self) { try TreeTarget("/.priority/a") }
    }

    @Test(arguments: [
      ("[1,2,3]", "[1,2,3]"), ("{\"0\":1,\"1\":2}", "[1,2]"), ("{\"1\":1,\"2\":2}", "[null,1,2]"),
      ("{\"0\":1,\"5\":2}", "{\"0\":1,\"5\":2}"), ("{\"0\":1,\"3\":2,\"1\":3}", "[1,3,null,2]"),
      ("{\"0\":1,\"01\":2}", "{\"0\":1,\"01\":2}"), ("{\"-1\":1,\"0\":2}", "{\"-1\":1,\"0\":2}"),
      ("{\"0\":1,\"a\":2}", "{\"0\":1,\"a\":2}"), ("[null,null,3]", "{\"2\":3}"),
      ("{\"a\":1.0,\"b\":1.5,\"c\":-0.0}", "{\"a\":1,\"b\":1.5,\"c\":-0}"),
      ("\"\\u0001\\\"\\\\\\n\\u00e9/\"", "\"\\u0001\\\"\\\\\\n\u{e9}/\""),
      ("{\"a\":{\"b\":{}}}", "null"), ("1e20", "1e+20"), ("9007199254740993", "9007199254740993"),
    ])
    func `Nodes are written as the Realtime Database writes them`(
      input: String, output: String
    ) async throws {
      let stage = try await TreeStage.inMemory()
      let rest = TreeREST(stage.database, stage.access)
      var request = TreeHTTPRequest(method: "PUT", target: "/x.json?print=silent")
      request.body = Array(input.utf8)
      #expect(await rest.respond(to: request).status == 204)
      let response = await rest.respond(to: TreeHTTPRequest(method: "GET", target: "/x.json"))
      #expect(response.body == output)
    }
  }
#endif
