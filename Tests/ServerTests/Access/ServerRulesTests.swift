// Deployments of rules: checked, followed, remembered.

#if Server
  import Foundation
  import GRPCCore
  import Ondol
  import OndolTestKit
  import OndolWire
  import Testing

  @testable import OndolServer

  @Suite struct ServerRulesTests {
    private static let open = RuledStage.file("match /items/{i} { allow read: if true; }")
    private static let closed = RuledStage.file("match /items/{i} { allow read: if false; }")

    private func stored(_ database: Database) async throws -> [DocumentSnapshot] {
      try await database.collection(ServerRules.root).getDocuments().documents
    }

    @Test func `A file with an error is refused whole, and the old one stays`() async throws {
      let stage = try await RuledStage(Self.open)
      try await stage.database.document("items/a").setData(["n": 1])
      await #expect {
        _ = try await ServerRules.deploy(
          RulesTexts(firestore: Self.closed, storage: "service firebase.storage { match"),
          to: stage.database)
      } throws: { error in
        let error = error as? DatabaseError
        return error?.code == .invalidArgument
          && error?.message.hasPrefix("storage rules: 1:") == true
      }
      #expect(try await stored(stage.database).count == 1)
      #expect(try await stage.get("items/a", as: "ann").fields.count == 1)
    }

    @Test func `The last ten deployments stay, and the same files are deployed once`() async throws
    {
      let stage = try await RuledStage(Self.open)
      for number in 2...14 {
        let text = Self.open + "// \(number)"
        #expect(
          try await ServerRules.deploy(RulesTexts(firestore: text), to: stage.database)
            == Int64(number))
        #expect(
          try await ServerRules.deploy(RulesTexts(firestore: text), to: stage.database) == nil)
      }
      let numbers = try await stored(stage.database).compactMap { Int64($0.documentID) }
      #expect(numbers == Array(5...14))
    }

    @Test func `Files that a deployment does not have stay as they are`() async throws {
      let stage = try await RuledStage(Self.open)
      let tree = #"{"rules": {".read": "auth != null"}}"#
      _ = try await ServerRules.deploy(RulesTexts(database: tree), to: stage.database)
      let current = try #require(try await stage.served.rules.current())
      #expect(current.firestore != nil && current.tree != nil && current.storage == nil)
    }

    /// Somebody may write the document by hand, and a newer version's rules may say more.
    @Test func `A stored file that is wrong leaves the rules before it in force`() async throws {
      let stage = try await RuledStage(Self.open)
      try await stage.database.document("items/a").setData(["n": 1])
      #expect(try await stage.get("items/a", as: "ann").fields.count == 1)
      try await stage.database.document("\(ServerRules.root)/000000000002").setData([
        "firestore": "service cloud.firestore { match /{d=**} { allow read, write: maybe; } }"
      ])
      for _ in 0..<1_000_000 where stage.served.rules.seen < 2 { await Task.yield() }
      #expect(stage.served.rules.seen == 2)
      #expect(try await stage.get("items/a", as: "ann").fields.count == 1)
      #expect(try await stage.served.rules.current()?.number == 1)
      // A deployment of another file does not put the wrong one in force, and does not wait for it.
      let tree = RulesTexts(database: "{\"rules\": {}}")
      await #expect(throws: DatabaseError.self) { try await stage.served.rules.deploy(tree) }
      let whole = RulesTexts(firestore: RuledStage.file(Self.open), database: tree.database)
      #expect(try await stage.served.rules.deploy(whole) == 3)
      #expect(try await stage.served.rules.current()?.number == 3)
      // Where there were none before, nothing is allowed.
      let other = try await RuledStage(nil)
      try await other.database.document("\(ServerRules.root)/000000000001").setData([
        "firestore": "no rules"
      ])
      #expect(await code { try await other.get("items/a", as: "ann") } == .permissionDenied)
    }

    @Test func `Rules see every value as the language's own`() throws {
      let (path, time) = (try DocumentPath("items/a"), try Timestamp(microsecondsSince1970: -1))
      let pairs: [(Value, String)] = [
        (.null, "null"), (.boolean(true), "true"), (.integer(-3), "-3"), (.double(2.5), "2.5"),
        (.decimal(try #require(DecimalValue("0.5"))), "0.5"), (.string("x"), "\"x\""),
        (.array([.integer(1)]), "[1]"), (.map(["a": .null]), "{\"a\": null}"),
      ]
      for (value, description) in pairs {
        #expect("\(RuleValue(value, in: "d"))" == description)
      }
      guard case .path(let segments) = RuleValue(.reference(path), in: "d"),
        case .timestamp(let instant) = RuleValue(.timestamp(time), in: "d")
      else { return #expect(Bool(false), "of the wrong type") }
      #expect(segments == ["databases", "d", "documents", "items", "a"])
      #expect(instant.instant.seconds == -1 && instant.instant.nanoseconds == 999_999_000)
    }
  }
#endif
