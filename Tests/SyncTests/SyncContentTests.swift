// Contents of documents between a device and its server: they go before the document, arrive when
// they are read, and a server that sends others is not believed.

#if Server && Sync
  import Foundation
  import OndolTestKit
  import Testing

  @testable import Ondol
  @testable import OndolSync

  @Suite struct SyncContentTests {
    private static func bytes(_ count: Int, _ seed: UInt64 = 1) -> [UInt8] {
      var random = SeededRandom(seed: seed)
      return (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    }

    private func photo(_ database: Database) async throws -> BlobReference? {
      try await database.document("items/lamp").getDocument()["photo"]
    }

    /// A server with a document that names a content.
    private func stage(_ bytes: [UInt8]) async throws -> SyncStage {
      let stage = try await SyncStage()
      let blob = try await stage.server.storage.put(bytes, contentType: "image/png")
      try await stage.server.document("items/lamp").setData(["n": 1, "photo": blob])
      return stage
    }

    @Test(arguments: [0, 1, 300, 70_000])
    func `A document's contents go before it, and arrive when they are read`(
      _ count: Int
    ) async throws {
      let bytes = Self.bytes(count)
      let stage = try await SyncStage()
      var options = Sync.Options()
      options.contentPiece = 10_000
      let left = try await stage.device(options: options, following: "items")
      let right = try await stage.device(options: options, following: "items")
      let blob = try await left.database.storage.put(bytes, contentType: "image/png")
      try await left.database.document("items/lamp").setData(["n": 1, "photo": blob])
      try await right.wait(for: "items/lamp", 1)
      #expect(try await left.sync.pendingRejections().isEmpty)
      #expect(try await Array(stage.server.storage.data(of: blob)) == bytes)
      let there = try #require(try await photo(right.database))
      #expect(there == blob)
      #expect(try await !right.database.hasBytes(of: blob.digest))
      #expect(try await right.database.verify() == [])
      #expect(try await Array(right.database.storage.data(of: there)) == bytes)
      #expect(try await right.database.hasBytes(of: blob.digest))
      #expect(try await right.database.verify() == [])
      // Now it needs no server.
      await right.goOffline()
      #expect(try await Array(right.database.storage.data(of: there)) == bytes)
    }

    @Test func `Without a network, what was never read is unavailable`() async throws {
      let bytes = Self.bytes(5_000)
      let stage = try await stage(bytes)
      let device = try await stage.device(following: "items")
      try await device.sync.settle()
      await device.goOffline()
      let blob = try #require(try await photo(device.database))
      let error = await #expect(throws: DatabaseError.self) {
        try await device.database.storage.data(of: blob)
      }
      #expect(error?.code == .unavailable)
      try await device.goOnline()
      #expect(try await Array(device.database.storage.data(of: blob)) == bytes)
    }

    @Test func `Many readers of a content fetch it once`() async throws {
      let bytes = Self.bytes(5_000)
      let stage = try await stage(bytes)
      let device = try await stage.device(following: "items")
      try await device.sync.settle()
      let blob = try #require(try await photo(device.database))
      let isSame = await withTaskGroup(of: Bool.self) { group in
        for _ in 0..<10 {
          group.addTask { (try? await device.database.storage.data(of: blob)) == Data(bytes) }
        }
        return await group.reduce(true) { $0 && $1 }
      }
      #expect(isSame)
      #expect(device.network.requests.count == 1)
    }

    @Test func `An eager device has contents before anybody reads them`() async throws {
      let bytes = Self.bytes(5_000)
      let stage = try await stage(bytes)
      var options = Sync.Options()
      options.contents = .eager
      let device = try await stage.device(options: options, following: "items")
      try await device.sync.settle()
      let blob = try #require(try await photo(device.database))
      while try await !device.database.hasBytes(of: blob.digest) { await Task.yield() }
      await device.goOffline()
      #expect(try await Array(device.database.storage.data(of: blob)) == bytes)
    }

    @Test func `A server that sends other bytes is not believed`() async throws {
      let bytes = Self.bytes(5_000)
      let stage = try await stage(bytes)
      let device = try await stage.device(following: "items")
      try await device.sync.settle()
      let blob = try #require(try await photo(device.database))
      func answer(_ body: [UInt8], _ range: String) -> DirectTransport.Tamper {
        { _, _ in StorageAnswer(status: 206, headers: ["content-range": range], body: body) }
      }
      let lies: [DirectTransport.Tamper] = [
        answer(bytes.reversed(), "bytes 0-4999/5000"),
        answer(Array(bytes.dropLast()), "bytes 0-4998/4999"),
        answer(Array(bytes.dropLast()), "bytes 0-4999/5000"),
        answer(bytes + [1], "bytes 0-4999/5000"), answer(bytes, "bytes 0-4999/50000"),
        { _, _ in throw DatabaseError.endlessAnswer(5_000) },
        { _, _ in StorageAnswer(status: 416, headers: [:], body: []) },
      ]
      for lie in lies {
        device.network.tamper(lie)
        let error = await #expect(throws: DatabaseError.self) {
          try await device.database.storage.data(of: blob)
        }
        #expect(error?.code == .dataLoss, "\(String(describing: error))")
        #expect(try await !device.database.hasBytes(of: blob.digest))
        #expect(try await device.database.verify() == [])
      }
      device.network.tamper(nil)
      #expect(try await Array(device.database.storage.data(of: blob)) == bytes)
    }

    @Test func `A broken download continues where it was`() async throws {
      let bytes = Self.bytes(5_000)
      let stage = try await stage(bytes)
      var options = Sync.Options()
      options.contentPiece = 1_000
      let device = try await stage.device(options: options, following: "items")
      try await device.sync.settle()
      let blob = try #require(try await photo(device.database))
      let network = device.network
      network.tamper { [weak network] request, answer in
        // Every third answer is lost.
        if network?.requests.count.isMultiple(of: 3) == true {
          throw DatabaseError(.unavailable, "the answer is lost")
        }
        return answer
      }
      #expect(try await Array(device.database.storage.data(of: blob)) == bytes)
      #expect((6...8).contains(network.requests.count))
    }

    @Test func `A long upload continues after a restart`() async throws {
      let bytes = Self.bytes(10_000)
      let stage = try await SyncStage()
      let database = try await Database.inMemory()
      var options = Sync.Options()
      options.contentPiece = 1_000
      let first = try await stage.device(database, options: options)
      try await first.sync.follow(database.collection("items"))
      try await first.sync.settle()
      // The network goes after half of the bytes.
      let network = first.network
      let (halves, note) = AsyncStream.makeStream(of: Void.self)
      network.tamper { [weak network] request, answer in
        guard network?.requests.count(where: { !$0.body.isEmpty }) ?? 0 > 5 else { return answer }
        note.yield()
        throw DatabaseError(.unavailable, "the answer is lost")
      }
      let blob = try await database.storage.put(bytes)
      try await database.document("items/lamp").setData(["n": 1, "photo": blob])
      for await _ in halves { break }
      await first.sync.stop()
      let second = try await stage.device(database, options: options)
      try await second.sync.settle()
      #expect(try await Array(stage.server.storage.data(of: blob)) == bytes)
      let sent = second.network.requests.reduce(0) { $0 + $1.body.count }
      #expect((1_000...6_000).contains(sent), "\(sent) bytes were sent again")
      #expect(try await second.sync.pendingRejections().isEmpty)
    }

    @Test func `The outbox holds the contents that only its entries name`() async throws {
      let stage = try await SyncStage()
      let device = try await stage.device(following: "items")
      try await device.sync.settle()
      await device.goOffline()
      let blobs = [
        try await device.database.storage.put(Self.bytes(5_000, 1)),
        try await device.database.storage.put(Self.bytes(5_000, 2)),
      ]
      let lamp = device.database.document("items/lamp")
      for blob in blobs { try await lamp.setData(["n": 1, "photo": blob]) }
      let holders = try await device.database.documents(holding: blobs[0].digest, atMost: 9)
      #expect(!holders.isEmpty)
      #expect(try await device.database.verify() == [])
      try await device.goOnline()
      #expect(try await device.sync.pendingRejections().isEmpty)
      #expect(try await photo(stage.server) == blobs[1])
      #expect(
        try await device.database.documents(holding: blobs[0].digest, atMost: 9).isEmpty)
    }

    @Test func `A document with contents is refused when the server has no storage`()
      async throws
    {
      let stage = try await SyncStage()
      let device = try await stage.device(bucket: nil, following: "items")
      let blob = try await device.database.storage.put(Self.bytes(5_000))
      try await device.database.document("items/lamp").setData(["n": 1, "photo": blob])
      try await device.database.document("items/table").setData(["n": 2])
      try await device.sync.settle()
      let rejections = try await device.sync.pendingRejections()
      #expect(
        rejections.map { $0.documents.map(\.path.segments) } == [[["items", "lamp"]]])
      #expect(try await device.number("items/lamp") == nil)
      #expect(try await stage.server.document("items/table").getDocument()["n"] as Int? == 2)
      // The rejection still holds the bytes, and can be tried again.
      #expect(
        try await device.database.documents(holding: blob.digest, atMost: 9).count == 1)
    }

    @Test func `A document that leaves the device takes its content with it`() async throws {
      let stage = try await stage(Self.bytes(5_000))
      let device = try await stage.device(following: "items")
      try await device.sync.settle()
      let blob = try #require(try await photo(device.database))
      try await device.sync.unfollow(device.database.collection("items"))
      #expect(try await device.database.documents(holding: blob.digest, atMost: 9).isEmpty)
      #expect(try await device.database.verify() == [])
    }
  }
#endif
