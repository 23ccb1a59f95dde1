// Synchronisation beside the other things that a database can do with a collection: dropping,
// renaming, expiry, schemas, keys, names of every spelling.

#if Server && Sync
  import Foundation
  import Ondol
  import OndolTestKit
  import Testing

  @testable import OndolSync

  @Suite struct SyncEdgeTests {
    private func refuses(_ body: () async throws -> Void) async -> Bool {
      do {
        try await body()
        return false
      } catch let error as DatabaseError {
        return error.code == .failedPrecondition && error.suggestion?.contains("unfollow") == true
      } catch {
        return false
      }
    }

    private func rename(_ database: Database, _ name: String, to other: String) async throws {
      var migrator = Migrator()
      migrator.register("m") { $0.renameCollection(name, to: other) }
      try await migrator.migrate(database)
    }

    @Test func `A followed collection is neither dropped nor renamed on one device alone`()
      async throws
    {
      let stage = try await SyncStage()
      try await stage.server.document("items/lamp").setData(["n": 1])
      try await stage.server.document("shops/s/notes/a").setData(["n": 1])
      let device = try await stage.device(following: "items")
      let database = device.database
      try await device.sync.follow(database.collectionGroup("notes"))
      try await device.sync.settle()
      try await database.document("plain/a").setData(["n": 1])
      let items = database.collection("items")
      #expect(await refuses { try await items.drop() })
      #expect(await refuses { try await items.drop(includingDeclarations: true) })
      #expect(await refuses { try await database.collection("shops").drop() })
      #expect(await refuses { try await database.collection("shops/s/notes").drop() })
      #expect(await refuses { try await rename(database, "items", to: "others") })
      // A migration that was refused stays begun, so this is another database's.
      let target = try await stage.device(following: "items").database
      try await target.document("plain/a").setData(["n": 1])
      #expect(await refuses { try await rename(target, "plain", to: "items") })
      try await database.collection("plain").drop()
      #expect(try await device.number("items/lamp") == 1)
      await device.sync.stop()
      #expect(await refuses { try await items.drop() })
      let again = try await stage.device(database)
      try await again.sync.unfollow(items)
      try await items.document("own").setData(["n": 1])
      try await items.drop()
      #expect(try await items.getDocuments().isEmpty)
      #expect(try await stage.server.document("items/lamp").getDocument().exists)
    }

    @Test func `A document that has expired is hidden here, and the server removes it`()
      async throws
    {
      let stage = try await SyncStage()
      let past = try Timestamp(microsecondsSince1970: 1_000_000)
      try await stage.server.document("items/old").setData(["ends": past, "n": 1])
      try await stage.server.document("items/new").setData(["n": 2])
      let device = try await stage.device()
      let items = device.database.collection("items")
      try await items.setTimeToLive(field: "ends")
      try await device.sync.follow(items)
      try await device.sync.settle()
      #expect(try await items.getDocuments().documents.map(\.documentID) == ["new"])
      #expect(try await device.database.removeEnded() == 0)
      #expect(try await stage.server.document("items/old").getDocument().exists)
      // It comes back with another end, also when the server sets it.
      try await stage.server.document("items/old").updateData(["ends": FieldValue.delete()])
      try await device.wait(for: "items/old", 1)
      try await stage.server.document("items/old").updateData(["ends": past])
      try await device.wait(for: "items/old", nil)
      try await items.setTimeToLive(field: nil)
      #expect(try await device.number("items/old") == 1)
      try await stage.server.document("items/old").delete()
      try await device.wait(for: "items/old", nil)
      try await device.sync.settle()
      #expect(try await device.database.syncedDocuments.getDocuments().count == 1)
    }

    @Test func `A follow that was cancelled leaves nothing behind`() async throws {
      let stage = try await SyncStage()
      for round in 0..<12 {
        let database = try await Database.inMemory()
        let device = try await stage.device(database)
        for number in 0..<30 { try await database.document("items/i\(number)").setData(["n": 1]) }
        let task = Task {
          for _ in 0..<round * 3 { await Task.yield() }
          try await device.sync.follow(database.collection("items"), existing: .replace)
        }
        for _ in 0..<round * 2 { await Task.yield() }
        task.cancel()
        let isFollowed = (try? await task.value) != nil
        let rows = try await database.syncFollows.getDocuments().count
        #expect(rows == (isFollowed ? 1 : 0))
        try await database.document("items/new").setData(["n": 1])
        #expect(
          try await database.syncOutbox.getDocuments().isEmpty == !isFollowed, "round \(round)")
        if !isFollowed { #expect(try await device.number("items/i3") == 1) }
        await device.sync.stop()
      }
    }

    @Test func `Names of every spelling are names of their own`() async throws {
      let stage = try await SyncStage()
      let spellings = [
        "\u{1112}\u{1161}\u{11ab}", "\u{d55c}", "e\u{301}", "\u{e9}", "a\u{328}\u{301}",
        "a\u{301}\u{328}", "\u{212b}", "\u{c5}",
      ]
      let devices = [
        try await stage.device(following: "이름", "\u{110b}\u{1175}름"),
        try await stage.device(following: "이름", "\u{110b}\u{1175}름"),
      ]
      for device in devices { try await device.sync.settle() }
      await devices[0].goOffline()
      for (number, name) in spellings.enumerated() {
        try await devices[0].database.collection("이름").document(name)
          .setData(["n": number, name: name])
      }
      try await devices[0].database.collection("\u{110b}\u{1175}름").document("x").setData(["n": 1])
      try await devices[0].goOnline()
      for (number, name) in spellings.enumerated() {
        let document = try await stage.server.collection("이름").document(name).getDocument()
        #expect(document["n"] as Int? == number, "\(Array(name.unicodeScalars))")
        #expect(document[FieldPath([name])] as String? == name)
      }
      try await devices[1].wait(for: "이름/\(spellings[7])", 7)
      let shown = try await devices[1].database.collection("이름").getDocuments()
      #expect(shown.count == spellings.count)
      for document in shown.documents {
        let number = try #require(document["n"] as Int?)
        #expect(document.documentID.utf8.elementsEqual(spellings[number].utf8))
      }
      #expect(
        try await stage.server.collection("\u{110b}\u{1175}름").getDocuments().count == 1)
      #expect(try await stage.server.collection("이름").getDocuments().count == spellings.count)
      // Each has a row and an outbox entry of its own.
      await devices[1].goOffline()
      for name in spellings {
        try await devices[1].database.collection("이름").document(name).updateData([
          "n": FieldValue.increment(100)
        ])
      }
      try await devices[1].goOnline()
      for (number, name) in spellings.enumerated() {
        let document = try await stage.server.collection("이름").document(name).getDocument()
        #expect(document["n"] as Int? == number + 100)
      }
    }

    private struct Unfit: Error {}

    @Test func `A schema's upgrade that fails stops nothing`() async throws {
      let stage = try await SyncStage()
      for name in ["good", "bad"] {
        try await stage.server.document("items/\(name)").setData(["n": 1])
      }
      let place = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
      defer { try? FileManager.default.removeItem(at: place) }
      let path = place.path(percentEncoded: false)
      var database = try await Database.open(at: path)
      var device = try await stage.device(database)
      try await device.sync.follow(database.collection("items"))
      try await device.sync.settle()
      await device.sync.stop()
      try await database.close()
      database = try await Database.open(at: path)
      try await database.collection("items").setSchema(version: 1) { fields, _ in
        if fields["n"] == 1 { throw Unfit() }
      }
      device = try await stage.device(database)
      try await device.sync.settle()
      // What the server sends has the present schema, whatever it is.
      try await stage.server.document("items/good").setData(["n": 2])
      await device.waitUntilReadable("items/good", 2)
      try await stage.server.document("items/bad").updateData(["other": true])
      await device.waitUntilReadable("items/bad", 1)
      try await database.close()
    }

    @Test func `A collection with a key of its own is not followed`() async throws {
      let stage = try await SyncStage()
      let place = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
      defer { try? FileManager.default.removeItem(at: place) }
      let database = try await Database.open(
        at: place.path(percentEncoded: false),
        options: Database.Options(encryption: .key([UInt8](repeating: 7, count: 32))))
      try await database.collection("keyed").createWithOwnKey()
      let device = try await stage.device(database)
      try await device.sync.follow(database.collection("items"))
      for query in [database.collection("keyed").query, database.collectionGroup("notes").query] {
        await #expect(throws: DatabaseError.self) { try await device.sync.follow(query) }
      }
      #expect(await refuses { try await database.collection("items").createWithOwnKey() })
      try await database.document("keyed/a").setData(["n": 1])
      #expect(try await database.syncOutbox.getDocuments().isEmpty)
      // It is dropped as ever, and the encrypted database is synchronised.
      try await database.collection("keyed").drop(includingDeclarations: true)
      try await database.document("items/a").setData(["n": 1])
      try await device.sync.settle()
      #expect(try await stage.server.document("items/a").getDocument()["n"] as Int? == 1)
      try await database.close()
    }
  }
#endif
