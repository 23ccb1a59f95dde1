// The keys that sign tokens: made once, shared by servers, replaced without ending a session, and
// out of the sight of apps and clients.

#if Server
  import Foundation
  import OndolAccounts
  import OndolEngine
  import OndolJSON
  import OndolTestKit
  import Testing

  @testable import Ondol
  import OndolMapping
  @testable import OndolServer

  @Suite struct TokenKeyTests {
    @Test func `Servers that start at once make one key`() async throws {
      let stage = try await AuthStage()
      let database = stage.database
      let ids = try await withThrowingTaskGroup(of: String.self) { group in
        for _ in 0..<8 { group.addTask { try await TokenKeys(database).signing().id } }
        return try await group.reduce(into: Set<String>()) { $0.insert($1) }
      }
      #expect(ids.count == 1)
      #expect(try await database.tokenKeys.getDocuments().documents.count == 1)
    }

    @Test func `A rotated key is published until its last token has ended`() async throws {
      let stage = try await AuthStage()
      let keys = stage.identity.keys
      let first = try await keys.signing().id
      let old = try await stage.signUp().text("idToken")
      let second = try await TokenKeys.rotate(in: stage.database)
      // Another server rotated. This one sees it within a minute, and takes its tokens at once.
      let other = Identity(stage.database)
      let new = try await other.sign(
        TokenKind.customClaims(for: "u", .none, now: stage.identity.now))
      _ = try await stage.identity.verify(new, as: .custom)
      await stage.clock.advance(by: .seconds(61))
      #expect(try await keys.signing().id == second)
      #expect(Set(try await keys.published().map(\.id)) == [first, second])
      _ = try await stage.identity.verify(old, as: .id)
      await stage.clock.advance(by: .seconds(14 * 86_400 + 3_600))
      #expect(try await keys.published().map(\.id) == [second])
      #expect(await problem { _ = try await stage.identity.verify(old, as: .id) } == .wrongKey)
      let third = try await TokenKeys.rotate(in: stage.database)
      let left = try await stage.database.tokenKeys.getDocuments().documents.map(\.documentID)
      #expect(Set(left) == [second, third])
    }

    @Test func `Keys outlive the server`() async throws {
      let stage = try await AuthStage()
      let text = try await stage.signUp().text("idToken")
      try await stage.database.close()
      let again = try await AuthStage(stage.clock, stage.device, path: "app.ondol")
      _ = try await again.identity.verify(text, as: .id)
    }

    @Test func `No app and no client sees them`() async throws {
      let stage = try await AuthStage()
      _ = try await stage.signUp()
      let ids = try await stage.database.readMoment().collectionIDs(below: nil)
      #expect(ids.contains("accounts") && !ids.contains { $0.contains("key") })
      let path = "projects/p/databases/(default)/documents/\(TokenKeyRows.root)/x"
      #expect(throws: DatabaseError.self) { try DatabaseName.document(path) }
      await #expect(throws: DatabaseError.self) {
        _ = try await stage.database.document("\(TokenKeyRows.root)/x").getDocument()
      }
    }

    /// A dump of a served database had records that no load took.
    @Test func `A dump has them, and a load brings them back`() async throws {
      let world = SimulatedWorld(seed: 1)
      let database = try await Database.open(at: "/db", environment: world.environment)
      let id = try await TokenKeys(database).signing().id
      try await database.prepareForWriteGroups()
      _ = try await database.commit([], as: WriteGroup(stream: "s", number: 1))
      var text: [UInt8] = []
      var writer = DumpWriter(try DumpReader(database), to: DumpStream { text += $0 })
      try await writer.write()
      try await database.close()
      var rest = text[...]
      let source = DumpText { count in
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
      }
      let restoration = try await Restoration.begin(at: "/new", environment: world.environment)
      _ = try await DumpLoader.load(source, into: restoration)
      let loaded = try await Database.open(at: "/new", environment: world.environment)
      #expect(try await TokenKeys(loaded).signing().id == id)
      #expect(try await loaded.verify().isEmpty)
      try await loaded.close()
    }
  }
#endif
