// What snapshots and listeners on a device say beside the documents: whether writes wait, whether a
// follow is complete, and who made a change.

#if Server && Sync
  import Foundation
  import Ondol
  import Testing

  @testable import OndolSync

  @Suite struct SyncMetadataTests {
    @Test func `A document says that its writes wait, until they have come back`() async throws {
      let stage = try await SyncStage()
      try await stage.server.document("items/lamp").setData(["n": 1])
      let device = try await stage.device(following: "items")
      try await device.sync.settle()
      let (items, lamp) = (
        device.database.collection("items"), device.database.document("items/lamp")
      )
      #expect(try await !lamp.getDocument().metadata.hasPendingWrites)
      #expect(try await lamp.getDocument().metadata.isComplete)
      await device.goOffline()
      try await lamp.updateData(["n": 2])
      try await items.document("chair").setData(["n": 3])
      #expect(try await lamp.getDocument().metadata.hasPendingWrites)
      let shown = try await items.getDocuments()
      #expect(shown.metadata.hasPendingWrites)
      #expect(shown.documents.allSatisfy { $0.metadata.hasPendingWrites })
      #expect(
        try await !items.whereField("n", isGreaterThan: 5).getDocuments().metadata.hasPendingWrites)
      #expect(try device.database.snapshot().getDocument(lamp).metadata.hasPendingWrites)
      try await device.goOnline()
      #expect(try await !lamp.getDocument().metadata.hasPendingWrites)
      #expect(try await !items.getDocuments().metadata.hasPendingWrites)
    }

    @Test func `A listener may want to know when only the metadata changes`() async throws {
      let stage = try await SyncStage()
      try await stage.server.document("items/lamp").setData(["n": 1])
      let device = try await stage.device(following: "items")
      try await device.sync.settle()
      let (items, lamp) = (
        device.database.collection("items"), device.database.document("items/lamp")
      )
      var plain = items.snapshots.makeAsyncIterator()
      var all = items.snapshots(includeMetadataChanges: true).makeAsyncIterator()
      var one = lamp.snapshots(includeMetadataChanges: true).makeAsyncIterator()
      _ = try await plain.next()
      _ = try await all.next()
      _ = try await one.next()
      await device.goOffline()
      try await lamp.updateData(["n": 2])
      let waiting = try await plain.next()
      #expect(waiting?.metadata.hasPendingWrites == true)
      #expect(waiting?.documentChanges.map(\.origin) == [.local])
      #expect(try await all.next()?.metadata.hasPendingWrites == true)
      let changed = try await one.next()
      #expect(changed?.metadata.hasPendingWrites == true && changed?.change == .modified)
      try await device.goOnline()
      let confirmed = try await all.next()
      #expect(confirmed?.metadata.hasPendingWrites == false)
      #expect(confirmed?.documentChanges.isEmpty == true)
      #expect(
        confirmed?.documentChanges(includeMetadataChanges: true).map(\.type) == [.modified])
      let settled = try await one.next()
      #expect(settled?.metadata.hasPendingWrites == false && settled?.change == nil)
      // Nothing has changed for who does not ask for metadata.
      #expect(try await plain.poll() == nil)
      try await stage.server.document("items/lamp").updateData(["n": 3])
      let theirs = try await plain.next()
      #expect(theirs?.documentChanges.map(\.origin) == [.server])
      #expect(theirs?.metadata.hasPendingWrites == false)
      try await stage.server.document("items/lamp").delete()
      let gone = try await plain.next()
      #expect(gone?.documentChanges.map(\.type) == [.removed])
      #expect(gone?.documentChanges.map(\.origin) == [.server])
    }

    @Test func `A listener learns when a follow is complete`() async throws {
      let stage = try await SyncStage()
      let batch = stage.server.batch()
      for number in 0..<1_200 {
        try batch.setData(["n": number], forDocument: stage.server.document("items/i\(number)"))
      }
      try await batch.commit()
      let device = try await stage.device()
      device.network.cut()
      let items = device.database.collection("items")
      #expect(try await items.getDocuments().metadata.isComplete)
      try await device.sync.follow(items)
      #expect(try await !items.getDocuments().metadata.isComplete)
      var all = items.snapshots(includeMetadataChanges: true).makeAsyncIterator()
      #expect(try await all.next()?.metadata.isComplete == false)
      device.network.mend()
      await device.sync.reconnect()
      while let snapshot = try await all.next() {
        guard snapshot.metadata.isComplete else { continue }
        #expect(snapshot.count == 1_200)
        break
      }
      #expect(try await items.getDocuments().metadata.isComplete)
    }

    @Test func `A refused write is no longer marked, and its removal is the server's`() async throws
    {
      let stage = try await SyncStage()
      let device = try await stage.device(following: "items")
      try await device.sync.settle()
      await device.goOffline()
      var changes = device.database.collection("items").snapshots.makeAsyncIterator()
      _ = try await changes.next()
      try await device.database.document("items/lamp").create(["n": 1])
      #expect(try await changes.next()?.documentChanges.map(\.origin) == [.local])
      try await stage.server.document("items/lamp").setData(["n": 9])
      try await device.goOnline()
      var last: QuerySnapshot?
      while let next = try await changes.poll() { last = next }
      #expect(last?.documentChanges.map(\.origin) == [.server])
      #expect(last?.metadata.hasPendingWrites == false)
    }

    @Test func `After a restart the marks are those of the outbox`() async throws {
      let stage = try await SyncStage()
      let place = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
      defer { try? FileManager.default.removeItem(at: place) }
      let path = place.path(percentEncoded: false)
      var database = try await Database.open(at: path)
      let device = try await stage.device(database)
      try await device.sync.follow(database.collection("items"))
      try await device.sync.settle()
      await device.goOffline()
      try await database.document("items/lamp").setData(["n": 1])
      await device.sync.stop()
      try await database.close()
      database = try await Database.open(at: path)
      let network = stage.network()
      network.cut()
      let sync = try await Sync(database, over: network, to: SyncStage.name)
      #expect(try await database.document("items/lamp").getDocument().metadata.hasPendingWrites)
      network.mend()
      await sync.reconnect()
      try await sync.settle()
      #expect(try await !database.document("items/lamp").getDocument().metadata.hasPendingWrites)
      try await database.close()
    }

    @Test func `The change feed says who made a commit`() async throws {
      let stage = try await SyncStage()
      try await stage.server.document("items/lamp").setData(["n": 1])
      let database = try await Database.inMemory(
        options: Database.Options(changeRetention: Database.ChangeRetention()))
      let start = try database.changeToken()
      let device = try await stage.device(database)
      try await device.sync.follow(database.collection("items"))
      try await device.sync.settle()
      try await database.document("items/lamp").updateData(["n": 2])
      try await database.document("elsewhere/a").setData(["n": 1])
      try await device.sync.settle()
      var feed = database.changes(since: start).makeAsyncIterator()
      var seen: [[String]] = []
      while let change = try await feed.poll() {
        seen.append(
          ["\(change.origin)"] + change.documents.map { "\($0.reference.path) \($0.type)" })
      }
      #expect(
        seen == [
          ["server", "items/lamp added"], ["local", "items/lamp modified"],
          ["local", "elsewhere/a added"],
        ])
    }

    @Test func `A database that is not synchronised marks nothing`() async throws {
      let database = try await Database.inMemory()
      let lamp = database.document("items/lamp")
      try await lamp.setData(["n": 1])
      let metadata = try await lamp.getDocument().metadata
      #expect(!metadata.hasPendingWrites && metadata.isComplete && !metadata.isStale)
      var all = lamp.snapshots(includeMetadataChanges: true).makeAsyncIterator()
      #expect(try await all.next()?.change == .added)
      #expect(try await all.poll() == nil)
    }
  }
#endif
