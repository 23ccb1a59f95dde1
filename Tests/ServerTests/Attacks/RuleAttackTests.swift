// What strangers try with rules: to make them read another document, to name a document in another
// way, and to make them work without end.

#if Server
  import Foundation
  import GRPCCore
  import Ondol
  import OndolTestKit
  import OndolWire
  import Testing

  @testable import OndolServer

  @Suite struct RuleAttackTests {
    /// Members of a room may write there; the caller names the room.
    private static let rooms = """
      match /texts/{text} {
        allow create: if get(/databases/$(database)/documents/rooms/$(request.resource.data.room))
          .data.owner == request.auth.uid;
        allow read: if exists(/databases/$(database)/documents/rooms/$(resource.data.room));
      }
      match /diaries/{user}/pages/{page} { allow read, write: if request.auth.uid == user; }
      """

    @Test(arguments: [
      "../diaries/eve", "b/x/a", "a/../b", "..", ".", "", "/", "a/", "%2E%2E", "b%2Fx", "a\u{0}",
      "a\u{301}", "rooms/mine", "$(request.auth.uid)", "mine\n", "__a__",
    ])
    func `A text of the caller's is one segment of a path, or none`(room: String) async throws {
      let stage = try await RuledStage(Self.rooms)
      // Eve owns documents in all the places that the text could be made to mean.
      for path in ["diaries/eve", "rooms/b/x/a", "rooms/mine/rooms/mine"] {
        try await stage.database.document(path).setData(["owner": "eve"])
      }
      try await stage.database.document("rooms/a").setData(["owner": "ann"])
      let text = try RuledStage.set("texts/t", ["room": .string(room)])
      #expect(await code { try await stage.commit([text], as: "eve") } == .permissionDenied)
      #expect(try await !stage.database.document("texts/t").getDocument().exists)
    }

    @Test func `Rules read as of the caller's own commit, and not what it pretends`() async throws {
      let stage = try await RuledStage(Self.rooms)
      try await stage.database.document("rooms/a").setData(["owner": "ann"])
      // The room is taken and written to in one commit.
      let writes = [
        try RuledStage.set("rooms/a", ["owner": "eve"]),
        try RuledStage.set("texts/t", ["room": "a"]),
      ]
      #expect(await code { try await stage.commit(writes, as: "eve") } == .permissionDenied)
      #expect(try await stage.database.document("rooms/a").getDocument().data()["owner"] == "ann")
    }

    @Test func `A document has one name, and no other leads to it`() async throws {
      let stage = try await RuledStage(Self.rooms)
      try await stage.database.document("diaries/ann/pages/p").setData(["text": "secret"])
      try await stage.database.document("accounts/ann").setData(["x": 1])
      let own = try await stage.get("diaries/ann/pages/p", as: "ann")
      #expect(own.fields.count == 1)
      for name in [
        "diaries/ann/pages/p", "diaries/eve/../ann/pages/p", "diaries/eve%2F..%2Fann/pages/p",
        "diaries/eve/pages/../../ann/pages/p", "diaries/%61nn/pages/p", "diaries/ANN/pages/p",
        "diaries/ann\u{200B}/pages/p", "diaries//ann/pages/p", "/diaries/ann/pages/p",
        "diaries/ann/pages/p/", "accounts/ann", "diaries/eve/pages/../../../accounts/ann",
        "serverRules/000000000001", "__tokenkeys__/k", "./accounts/ann", "accounts%2Fann",
      ] {
        #expect(await code { try await stage.get(name, as: "eve") } != nil, "\(name)")
        let write = try? RuledStage.set(name, ["text": "hers"])
        if let write {
          #expect(await code { try await stage.commit([write], as: "eve") } != nil, "\(name)")
        }
      }
    }

    /// Two spellings that look alike are two people.
    @Test func `Canonically equal names are different names`() async throws {
      let stage = try await RuledStage(Self.rooms)
      let (composed, decomposed) = ("jos\u{E9}", "jose\u{301}")
      try await stage.database.document("diaries/\(composed)/pages/p").setData(["text": "secret"])
      #expect(
        await code { try await stage.get("diaries/\(composed)/pages/p", as: decomposed) }
          == .permissionDenied)
      #expect(
        await code { try await stage.get("diaries/\(composed)/pages/p", as: composed) } == nil)
      let other = try await stage.with(decomposed) {
        await code { try await stage.get("diaries/\(decomposed)/pages/p", as: decomposed) }
      }
      #expect(other == .notFound)
    }

    @Test(arguments: [
      "function f(x) { return f(x); }",
      "function f(x) { return g(x); } function g(x) { return f(x); }",
      "function f(x) { return x.size() > 0 && f(x) && f(x); }",
    ])
    func `Rules that loop deny, or are refused when they are deployed`(functions: String)
      async throws
    {
      let stage = try await RuledStage(nil, isLocal: false)
      do {
        try await stage.deploy(
          functions + " match /items/{item} { allow read, write: if f(item); }")
      } catch {
        #expect((error as? DatabaseError)?.code == .invalidArgument)
        return
      }
      try await stage.database.document("items/a").setData(["x": 1])
      #expect(await code { try await stage.get("items/a", as: "ann") } == .permissionDenied)
      #expect(
        await code { try await stage.commit([RuledStage.delete("items/a")], as: "ann") }
          == .permissionDenied)
    }

    @Test func `Rules read the documents of their own database alone`() async throws {
      let stage = try await RuledStage(
        "match /items/{item} { allow read: if exists(/databases/other/documents/rooms/a); }")
      try await stage.database.document("rooms/a").setData(["x": 1])
      try await stage.database.document("items/a").setData(["x": 1])
      #expect(await code { try await stage.get("items/a", as: "ann") } == .permissionDenied)
    }

    @Test func `A rule's reads are counted over the whole call`() async throws {
      let rooms = (0..<11).map { "exists(/databases/$(database)/documents/rooms/r\($0))" }
      let stage = try await RuledStage(
        "match /items/{item} { allow read: if \(rooms.joined(separator: " && ")); }")
      for number in 0..<11 {
        try await stage.database.document("rooms/r\(number)").setData(["x": 1])
      }
      try await stage.database.document("items/a").setData(["x": 1])
      #expect(await code { try await stage.get("items/a", as: "ann") } == .permissionDenied)
    }
  }
#endif
