// Transactions on a device that has no network: what they have read is compared when they reach the
// server, by documents and by queries.

#if Server && Sync
  import Foundation
  import GRPCCore
  import Ondol
  import OndolEngine
  import OndolMapping
  import OndolTestKit
  import OndolWire
  import SwiftProtobuf
  import Testing

  @testable import OndolServer
  @testable import OndolSync

  @Suite struct SyncTransactionTests {
    /// Books a place when a query finds no booking of it.
    private func book(
      _ id: String, _ device: SyncDevice, finding query: (CollectionReference) -> Query
    ) async throws {
      let bookings = device.database.collection("bookings")
      let free = query(bookings)
      try await device.database.runTransaction { transaction in
        guard try transaction.getDocuments(free).isEmpty else { return }
        try transaction.setData(["seat": 7, "note": "first"], forDocument: bookings.document(id))
      }
    }

    private func isTaken(_ bookings: CollectionReference) -> Query {
      bookings.whereField("seat", isEqualTo: 7)
    }

    @Test func `Of two bookings that found the same seat free, one is refused`() async throws {
      let stage = try await SyncStage()
      let devices = [
        try await stage.device(following: "bookings"),
        try await stage.device(following: "bookings"),
      ]
      for (number, device) in devices.enumerated() {
        try await device.sync.settle()
        await device.goOffline()
        try await book("b\(number)", device, finding: isTaken)
      }
      for device in devices { try await device.goOnline() }
      for device in devices { try await device.sync.settle() }
      let bookings = try await stage.server.collection("bookings").getDocuments()
      #expect(bookings.documents.map(\.documentID) == ["b0"])
      let rejection = try #require(try await devices[1].sync.pendingRejections().first)
      guard case .server(.failedPrecondition, _) = rejection.reason else {
        Issue.record("refused for \(rejection.reason)")
        return
      }
      #expect(try await devices[1].number("bookings/b1") == nil)
      #expect(try await devices[0].sync.pendingRejections().isEmpty)
    }

    @Test func `Other documents do not matter to a query`() async throws {
      let stage = try await SyncStage()
      let device = try await stage.device(following: "bookings")
      try await device.sync.settle()
      await device.goOffline()
      try await book("mine", device, finding: isTaken)
      try await stage.server.document("bookings/other").setData(["seat": 8])
      try await device.goOnline()
      #expect(try await device.sync.pendingRejections().isEmpty)
      #expect(try await stage.server.document("bookings/mine").getDocument().exists)
    }

    @Test func `A count, a limit and a query that the protocol lacks are compared as well`()
      async throws
    {
      let queries: [(String, (CollectionReference) -> Query)] = [
        ("count", { $0.query }), ("limit", { $0.order(by: "seat").limit(to: 1) }),
        ("last", { $0.order(by: "seat").limit(toLast: 1) }),
        ("prefix", { $0.whereField("note", hasPrefix: "fi") }),
        ("end", { $0.order(by: "seat").start(at: [3]) }),
      ]
      for (name, query) in queries {
        let stage = try await SyncStage()
        let device = try await stage.device(following: "bookings")
        try await device.sync.settle()
        await device.goOffline()
        let bookings = device.database.collection("bookings")
        try await device.database.runTransaction { transaction in
          if name == "count" {
            _ = try transaction.getAggregation(query(bookings).count)
          } else {
            _ = try transaction.getDocuments(query(bookings))
          }
          try transaction.setData(["seat": 1], forDocument: bookings.document("mine"))
        }
        try await stage.server.document("bookings/a").setData(["seat": 5, "note": "first"])
        try await device.goOnline()
        #expect(try await device.sync.pendingRejections().count == 1, "\(name)")
      }
    }

    @Test func `A query of documents that the device has only in part is not compared`()
      async throws
    {
      let stage = try await SyncStage()
      let device = try await stage.device()
      let bookings = device.database.collection("bookings")
      try await device.sync.follow(bookings.whereField("seat", isLessThan: 5))
      try await device.sync.settle()
      await device.goOffline()
      try await stage.server.document("bookings/a").setData(["seat": 9])
      try await device.database.runTransaction { transaction in
        _ = try transaction.getDocuments(bookings)
        try transaction.setData(["seat": 1], forDocument: bookings.document("mine"))
      }
      try await device.goOnline()
      #expect(try await device.sync.pendingRejections().isEmpty)
    }

    @Test func `What earlier commits of the device have made is part of what a query finds`()
      async throws
    {
      let stage = try await SyncStage()
      try await stage.server.document("bookings/old").setData(["seat": 7])
      let device = try await stage.device(following: "bookings")
      try await device.sync.settle()
      await device.goOffline()
      try await device.database.document("bookings/new").setData(["seat": 7])
      try await device.database.document("bookings/old").delete()
      let bookings = device.database.collection("bookings")
      try await device.database.runTransaction { transaction in
        let count = try transaction.getDocuments(isTaken(bookings)).count
        try transaction.setData(["n": count], forDocument: bookings.document("count"))
      }
      try await device.goOnline()
      #expect(try await device.sync.pendingRejections().isEmpty)
      #expect(
        try await stage.server.document("bookings/count").getDocument()["n"] as Int? == 1)
    }

    @Test func `A document is created again only where the server has none`() async throws {
      let stage = try await SyncStage()
      try await stage.server.document("items/lamp").setData(["n": 1])
      let device = try await stage.device(following: "items")
      try await device.sync.settle()
      let lamp = device.database.document("items/lamp")
      device.network.holdListening()
      try await lamp.delete()
      // The server has answered, and the device does not see it yet.
      for try await rows in device.database.syncOutbox.snapshots {
        let entry = try #require(rows.documents.first.map { try OutboxEntry($0) })
        if entry.answer != nil { break }
      }
      try await stage.server.document("items/lamp").setData(["n": 100])
      try await device.database.runTransaction { transaction in
        guard try !transaction.getDocument(lamp).exists else { return }
        try transaction.setData(["n": 2], forDocument: lamp)
      }
      #expect(try await device.number("items/lamp") == 2)
      for await state in device.sync.states where state.waitingWrites < 2 { break }
      device.network.releaseListening()
      try await device.sync.settle()
      #expect(try await stage.server.document("items/lamp").getDocument()["n"] as Int? == 100)
      #expect(try await device.number("items/lamp") == 100)
      #expect(try await device.sync.pendingRejections().count == 1)
    }

    // MARK: - Footprints

    private static func footprint(_ found: [String] = []) throws -> QueryFootprint {
      let target = WireTarget.QueryTarget.with {
        $0.parent = "projects/p/databases/(default)/documents"
        $0.structuredQuery.from = [.with { $0.collectionID = "items" }]
      }
      return QueryFootprint(target, found: try found.map { try DocumentPath("items/\($0)") })
    }

    @Test func `A footprint knows its documents, in any order and any spelling`() throws {
      let decomposed = "\u{1112}\u{1161}\u{11ab}"
      let composed = "\u{d55c}"
      let footprint = try Self.footprint(["a", "b", decomposed])
      let text = try QueryFootprint.text(of: [footprint, try Self.footprint()])
      let read = try QueryFootprint.footprints(in: text)
      #expect(read == [footprint, try Self.footprint()])
      func paths(_ ids: [String]) throws -> [DocumentPath] {
        try ids.map { try DocumentPath("items/\($0)") }
      }
      #expect(read[0].isMet(by: try paths([decomposed, "b", "a"])))
      #expect(!read[0].isMet(by: try paths(["a", "b", composed])))
      #expect(!read[0].isMet(by: try paths(["a", "b"])))
      #expect(!read[0].isMet(by: try paths(["a", "bb", decomposed])))
      #expect(read[1].isMet(by: []))
    }

    @Test func `Hostile footprints are refused with an error of their own`() throws {
      let good = try QueryFootprint.text(of: [Self.footprint(["a"])])
      let parts = good.split(separator: ".").map(String.init)
      var hostile = [
        "", "x", "..", good + ",", "\(parts[0]).-1.\(parts[2])", "\(parts[0]).10001.\(parts[2])",
        "\(parts[0]).99999999999999999999.\(parts[2])", "\(parts[0]).1.\(parts[2])00",
        "\(parts[0]).1.zz", "%%.1.\(parts[2])",
        String(repeating: good + ",", count: 64) + good,
        String(repeating: "A", count: QueryFootprint.longestText + 1),
      ]
      var random = SeededRandom(seed: 7)
      for _ in 0..<500 {
        var bytes = Array(good.utf8)
        bytes[random.below(bytes.count)] = UInt8(32 + random.below(95))
        hostile.append(String(decoding: bytes, as: UTF8.self))
      }
      for (number, text) in hostile.enumerated() {
        do {
          let read = try QueryFootprint.footprints(in: text)
          // A changed byte may make another footprint, and nothing else.
          #expect(number >= 12 && read.count <= 2, "\(text)")
        } catch {
          #expect(error.code == .invalidArgument, "\(text)")
        }
      }
    }

    @Test func `The server refuses a group whose footprint is none`() async throws {
      let stage = try await SyncStage()
      let good = try QueryFootprint.text(of: [Self.footprint()])
      let device = try await stage.device(following: "items")
      try await device.sync.settle()
      let cases: [(String, RPCError.Code?)] = [
        ("nonsense", .invalidArgument), (good, nil),
        (good.replacing(".0.", with: ".3."), .failedPrecondition),
      ]
      for (number, (text, code)) in cases.enumerated() {
        let network = stage.network()
        let (requests, ask) = AsyncStream.makeStream(of: WireWriteRequest.self)
        let name = "g\(number)"
        ask.yield(
          .with {
            $0.database = "projects/p/databases/(default)"
            $0.streamToken = Data("stream\(name):0".utf8)
          })
        ask.yield(
          .with {
            $0.streamToken = Data("stream\(name):1:\(name):\(text)".utf8)
            $0.writes = [
              .with { $0.verify = "projects/p/databases/(default)/documents/items/none" }
            ]
          })
        ask.finish()
        let count = Guarded(0)
        do {
          try await network.write(nil, requests) { _ in count.withLock { $0 += 1 } }
          #expect(code == nil && count.withLock { $0 } == 2, "\(text)")
        } catch let error as RPCError {
          #expect(error.code == code, "\(text): \(error)")
        }
      }
    }

    /// Writes of an app on a device without a network, and what the device makes of the server's
    /// states when they come without answers.
    private struct LateAnswers {
      let device: SyncDevice
      let commits: LocalCommits
      let lamp: DocumentReference
      let time: Timestamp

      init() async throws {
        let stage = try await SyncStage()
        try await stage.server.document("items/lamp").setData(["n": 0])
        device = try await stage.device(following: "items")
        try await device.sync.settle()
        await device.goOffline()
        lamp = device.database.document("items/lamp")
        commits = LocalCommits(
          database: device.database,
          witness: SyncWitness(
            session: "", limits: SyncWitness.Limits(), board: StateBoard(),
            device.database.environment))
        time = try Timestamp(seconds: 2_000_000_000, nanoseconds: 0)
      }

      /// The entries of the outbox, in their order.
      func entries() async throws -> [OutboxEntry] {
        try await device.database.syncOutbox.getDocuments().documents.map { try OutboxEntry($0) }
          .sorted { $0.order < $1.order }
      }

      /// Adds to the number in a transaction.
      func count(_ step: Int) async throws {
        try await device.database.runTransaction { transaction in
          let number = try transaction.getDocument(lamp)["n"] as Int? ?? 0
          try transaction.setData(["n": number + step], forDocument: lamp)
        }
      }

      /// The server's number as of the time.
      func see(_ number: Int) async throws {
        let shown = ServerChange(
          state: .shown(ServerDocument(fields: ["n": .integer(Int64(number))], updated: time)),
          joined: [1])
        _ = try await commits.apply(
          ServerMoment(changes: [try DocumentPath("items/lamp"): shown], time: time), finishing: [])
      }
    }

    /// While a server's answer is late, the device may show a write of its own twice: in the
    /// server's state, and on top of it. A transaction that had read that was once sent as made on
    /// the server's state, and stayed.
    @Test func `A transaction that has read a write twice is refused`() async throws {
      let late = try await LateAnswers()
      try await late.lamp.updateData(["n": FieldValue.increment(1)])
      var entry = try #require(try await late.entries().first)
      try await late.see(1)
      #expect(try await late.device.number("items/lamp") == 2)
      try await late.count(10)
      let answer = OutboxEntry.Answer(time: late.time, updates: [late.time])
      entry.answer = answer
      try await late.commits.acknowledge([(entry, answer)], SyncClient(id: "d"))
      _ = try await late.commits.apply(ServerMoment(time: late.time), finishing: [entry])
      #expect(try await late.device.number("items/lamp") == 1, "the server would refuse it")
      let left = try await late.entries()
      #expect(left.flatMap(\.writes).map(\.reliance) == [.impossible])
      await late.device.sync.stop()
    }

    /// Or it leaves out a transaction of its own, because the server's state is not what that was
    /// made on: it may be what that has made. The next transaction was once sent as made on the
    /// state with both, and the first one's change was lost.
    @Test func `A transaction that has not read an earlier one is refused`() async throws {
      let late = try await LateAnswers()
      try await late.count(1)
      try await late.count(1)
      // The first one's work.
      try await late.see(1)
      #expect(try await late.device.number("items/lamp") == 1, "both are left out")
      for step in [100, 1_000] {
        try await late.lamp.updateData(["n": FieldValue.increment(Int64(step))])
      }
      try await late.count(1)
      #expect(try await late.device.number("items/lamp") == 1_102)
      #expect(try await late.entries().last?.writes.map(\.reliance) == [.impossible])
      await late.device.sync.stop()
    }
  }
#endif
