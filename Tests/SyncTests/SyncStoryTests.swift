// What an app sees of synchronisation: one server, one or two devices, and a network that comes and
// goes.

#if Server && Sync
  import Foundation
  import Ondol
  import Testing

  @testable import OndolSync

  @Suite struct SyncStoryTests {
    @Test func `A write is visible at once, and goes to the server when that can be reached`()
      async throws
    {
      let stage = try await SyncStage()
      try await stage.server.document("items/lamp").setData(["n": 2, "name": "Lamp"])
      let device = try await stage.device(following: "items")
      try await device.sync.settle()
      await device.goOffline()
      let lamp = device.database.document("items/lamp")
      try await lamp.updateData(["n": FieldValue.increment(-1)])
      #expect(try await device.number("items/lamp") == 1)
      #expect(try await lamp.getDocument().metadata.hasPendingWrites)
      #expect(device.sync.currentState.waitingWrites == 1)
      #expect(try await stage.server.document("items/lamp").getDocument()["n"] as Int? == 2)
      try await device.goOnline()
      #expect(try await stage.server.document("items/lamp").getDocument()["n"] as Int? == 1)
      #expect(try await device.number("items/lamp") == 1)
      #expect(try await !lamp.getDocument().metadata.hasPendingWrites)
    }

    @Test func `Waiting writes are played on what others have written meanwhile`() async throws {
      let stage = try await SyncStage()
      let served = stage.server.document("items/lamp")
      try await served.setData(["n": 2, "tags": ["oak"]])
      let device = try await stage.device(following: "items")
      try await device.sync.settle()
      await device.goOffline()
      let lamp = device.database.document("items/lamp")
      try await lamp.updateData([
        "n": FieldValue.increment(1), "tags": FieldValue.arrayUnion(["old"]), "mine": true,
      ])
      try await served.updateData(["n": 10, "theirs": true])
      try await device.goOnline()
      let expected: [String: Value] = [
        "n": 11, "tags": ["oak", "old"], "mine": true, "theirs": true,
      ]
      #expect(try await served.getDocument().data() == expected)
      #expect(try await lamp.getDocument().data() == expected)
    }

    @Test func `What one device writes arrives on the other`() async throws {
      let stage = try await SyncStage()
      let (left, right) = (
        try await stage.device(following: "items"), try await stage.device(following: "items")
      )
      try await left.database.document("items/lamp").setData(["n": 1])
      try await right.wait(for: "items/lamp", 1)
      try await right.database.document("items/lamp").updateData(["n": 2])
      try await left.wait(for: "items/lamp", 2)
      try await left.database.document("items/lamp").delete()
      try await right.wait(for: "items/lamp", nil)
    }

    @Test func `A refused write is taken back, and so is all that relies on it`() async throws {
      let stage = try await SyncStage()
      let device = try await stage.device(following: "items")
      try await device.sync.settle()
      await device.goOffline()
      let lamp = device.database.document("items/lamp")
      try await lamp.create(["n": 1])
      try await device.database.runTransaction { transaction in
        let number = try transaction.getDocument(lamp)["n"] as Int64? ?? 0
        try transaction.setData(
          ["n": number + 1], forDocument: device.database.document("items/copy"))
      }
      try await device.database.document("items/other").setData(["n": 5])
      try await stage.server.document("items/lamp").setData(["n": 100])
      try await device.goOnline()
      #expect(try await device.number("items/lamp") == 100)
      #expect(try await device.number("items/copy") == nil)
      #expect(try await device.number("items/other") == 5)
      let rejections = try await device.sync.pendingRejections()
      #expect(rejections.count == 2)
      let first = try #require(rejections.first { $0.documents.map(\.path.documentID) == ["lamp"] })
      guard case .server(.alreadyExists, _) = first.reason else {
        Issue.record("refused for \(first.reason)")
        return
      }
      #expect(first.time < .maximum)
      let second = try #require(rejections.first { $0.id != first.id })
      #expect(second.reason == .relied(on: first.id))
      try await device.sync.dismiss(first)
      try await device.sync.retry(second)
      try await device.sync.settle()
      #expect(try await device.sync.pendingRejections().isEmpty)
      #expect(try await stage.server.document("items/copy").getDocument()["n"] as Int? == 2)
    }

    @Test func `A transaction made offline is refused when its documents have changed`()
      async throws
    {
      let stage = try await SyncStage()
      try await stage.server.document("items/lamp").setData(["n": 1])
      let device = try await stage.device(following: "items")
      try await device.sync.settle()
      await device.goOffline()
      let lamp = device.database.document("items/lamp")
      for _ in 0..<2 {
        try await device.database.runTransaction { transaction in
          let number = try transaction.getDocument(lamp)["n"] as Int64? ?? 0
          try transaction.updateData(["n": number + 1], forDocument: lamp)
        }
      }
      #expect(try await device.number("items/lamp") == 3)
      try await stage.server.document("items/lamp").updateData(["other": true])
      try await device.goOnline()
      #expect(try await device.number("items/lamp") == 1)
      #expect(try await device.sync.pendingRejections().count == 2)
      await device.goOffline()
      for _ in 0..<2 {
        try await device.database.runTransaction { transaction in
          let number = try transaction.getDocument(lamp)["n"] as Int64? ?? 0
          try transaction.updateData(["n": number + 1], forDocument: lamp)
        }
      }
      try await device.goOnline()
      #expect(try await device.number("items/lamp") == 3)
      #expect(try await device.sync.pendingRejections().count == 2)
    }

    @Test func `A large follow comes in parts, and leaves when it ends`() async throws {
      let stage = try await SyncStage()
      let batch = stage.server.batch()
      for number in 0..<2_300 {
        try batch.setData(["n": number], forDocument: stage.server.document("items/i\(number)"))
      }
      try await batch.commit()
      let device = try await stage.device(following: "items")
      try await device.sync.settle()
      let items = device.database.collection("items")
      #expect(try await items.query.count.getAggregation().count == 2_300)
      let followed = try #require(device.sync.currentState.follows.first)
      #expect(followed.isComplete && followed.documentCount == 2_300)
      try await device.sync.unfollow(items)
      #expect(try await items.query.count.getAggregation().count == 0)
      #expect(try await device.database.syncedDocuments.getDocuments().documents.isEmpty)
      #expect(
        try await stage.server.collection("items").query.count.getAggregation().count == 2_300)
      // Nobody follows it any more, so it is an ordinary collection.
      try await items.document("own").setData(["n": 1])
      #expect(try await device.database.syncOutbox.getDocuments().documents.isEmpty)
    }

    @Test func `A query's documents come and go with its condition`() async throws {
      let stage = try await SyncStage()
      for number in 0..<4 {
        try await stage.server.document("items/i\(number)").setData(["n": number])
      }
      let device = try await stage.device()
      let items = device.database.collection("items")
      try await device.sync.follow(items.whereField("n", isLessThan: 2))
      try await device.sync.settle()
      #expect(try await items.getDocuments().documents.map(\.documentID) == ["i0", "i1"])
      try await stage.server.document("items/i0").updateData(["n": 7])
      try await device.wait(for: "items/i0", nil)
      // A write of this device that the follow does not contain stays until the server has it.
      await device.goOffline()
      try await items.document("i9").setData(["n": 9])
      #expect(try await device.number("items/i9") == 9)
      try await device.goOnline()
      #expect(try await device.number("items/i9") == nil)
      #expect(try await stage.server.document("items/i9").getDocument().exists)
    }

    @Test func `Documents that only the device has are refused, uploaded or replaced`()
      async throws
    {
      let stage = try await SyncStage()
      try await stage.server.document("items/b").setData(["n": 20])
      for existing in [ExistingDocuments.refuse, .upload, .replace] {
        let database = try await Database.inMemory()
        try await database.document("items/a").setData(["n": 1])
        let device = try await stage.device(database)
        guard existing != .refuse else {
          await #expect(throws: DatabaseError.self) {
            try await device.sync.follow(database.collection("items"))
          }
          try await database.document("items/a").setData(["n": 2])
          #expect(try await database.syncOutbox.getDocuments().documents.isEmpty)
          continue
        }
        try await device.sync.follow(database.collection("items"), existing: existing)
        try await device.sync.settle()
        #expect(try await device.number("items/b") == 20)
        #expect(try await device.number("items/a") == 1)
        #expect(try await stage.server.document("items/a").getDocument()["n"] as Int? == 1)
      }
    }

    @Test func `A full outbox refuses writes`() async throws {
      let stage = try await SyncStage()
      var options = Sync.Options()
      options.outboxCount = 2
      let device = try await stage.device(options: options, following: "items")
      await device.goOffline()
      for number in 0..<2 {
        try await device.database.document("items/i\(number)").setData(["n": 1])
      }
      await #expect(throws: DatabaseError.self) {
        try await device.database.document("items/i2").setData(["n": 1])
      }
      #expect(try await device.number("items/i2") == nil)
      try await device.database.document("elsewhere/a").setData(["n": 1])
      try await device.goOnline()
      try await device.database.document("items/i2").setData(["n": 1])
    }

    // MARK: - Restarts

    @Test func `After a restart a device continues where it was`() async throws {
      let stage = try await SyncStage()
      for number in 0..<50 {
        try await stage.server.document("items/i\(number)").setData(["n": number])
      }
      let place = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
      defer { try? FileManager.default.removeItem(at: place) }
      let path = place.path(percentEncoded: false)
      var database = try await Database.open(at: path)
      var device = try await stage.device(database)
      try await device.sync.follow(database.collection("items"))
      try await device.sync.settle()
      await device.goOffline()
      try await database.document("items/i1").updateData(["n": FieldValue.increment(100)])
      await device.sync.stop()
      try await database.close()
      try await stage.server.document("items/i2").delete()

      database = try await Database.open(at: path)
      #expect(try await database.document("items/i1").getDocument()["n"] as Int? == 101)
      await #expect(throws: DatabaseError.self) {
        try await database.document("items/i1").updateData(["n": 0])
      }
      device = try await stage.device(database)
      try await device.sync.settle()
      try await device.wait(for: "items/i2", nil)
      #expect(try await stage.server.document("items/i1").getDocument()["n"] as Int? == 101)
      // Only what is new.
      #expect(device.network.received < 20)
      try await database.close()
    }

    @Test func `A copied database becomes a device of its own`() async throws {
      let stage = try await SyncStage()
      try await stage.server.document("items/lamp").setData(["n": 0])
      let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(at: folder) }
      let paths = ["one", "two"].map { folder.appending(path: $0).path(percentEncoded: false) }
      let first = try await Database.open(at: paths[0])
      let begun = try await stage.device(first)
      try await begun.sync.follow(first.collection("items"))
      try await begun.sync.settle()
      await begun.goOffline()
      try await first.document("items/lamp").updateData(["n": FieldValue.increment(10)])
      await begun.sync.stop()
      try await first.close()
      try FileManager.default.copyItem(atPath: paths[0], toPath: paths[1])

      var devices: [SyncDevice] = []
      for path in paths {
        devices.append(try await stage.device(try await Database.open(at: path)))
      }
      // The waiting write is in both copies, and counts once.
      for device in devices { try await device.sync.settle() }
      #expect(try await stage.server.document("items/lamp").getDocument()["n"] as Int? == 10)
      for device in devices {
        try await device.database.document("items/lamp").updateData([
          "n": FieldValue.increment(1)
        ])
        try await device.sync.settle()
      }
      #expect(try await stage.server.document("items/lamp").getDocument()["n"] as Int? == 12)
      var ids: Set<String> = []
      for device in devices {
        let row = try await SyncClient.row(in: device.database).getDocument()
        ids.insert(try #require(SyncClient(row.data())).id)
        try await device.database.close()
      }
      #expect(ids.count == 2)
    }

    // MARK: - Users

    private struct Session: SyncSession {
      func token(isRefused: Bool) async throws -> String? { isRefused ? "new" : "old" }
    }

    @Test func `A token that has ended is renewed`() async throws {
      let stage = try await SyncStage()
      try await stage.server.document("items/lamp").setData(["n": 1])
      let database = try await Database.inMemory()
      let device = try await stage.device(database, as: Session())
      device.network.refuse("old")
      try await device.sync.follow(database.collection("items"))
      try await device.sync.settle()
      #expect(device.network.credentials.contains("new"))
      await device.sync.signIn(as: nil)
      await device.goOffline()
      try await stage.server.document("items/lamp").setData(["n": 2])
      try await device.goOnline()
      try await device.wait(for: "items/lamp", 2)
      #expect(device.network.credentials.last == .some(nil))
    }

    @Test func `A database is synchronised once`() async throws {
      let stage = try await SyncStage()
      let device = try await stage.device(following: "items")
      await #expect(throws: DatabaseError.self) { _ = try await stage.device(device.database) }
      await device.sync.stop()
      let again = try await stage.device(device.database)
      try await again.sync.settle()
    }
  }
#endif
