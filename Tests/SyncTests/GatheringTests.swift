// What a server says is gathered into moments, and what no honest server says is refused.

#if Sync
  import Foundation
  import Ondol
  import OndolMapping
  import OndolWire
  import SwiftProtobuf
  import Testing

  @testable import OndolSync

  @Suite struct GatheringTests {
    private static let name = DatabaseName(project: "p", id: "(default)")

    private func followed(_ collection: String) async throws -> FollowedQuery {
      let database = try await Database.inMemory()
      return try FollowedQuery(database.collection(collection).query, number: 1)
    }

    private func change(
      _ path: String, _ targets: [Int32], left: [Int32] = []
    ) -> WireListenResponse {
      .with {
        $0.documentChange.document.name = "\(Self.name.documents)/\(path)"
        $0.documentChange.document.updateTime.seconds = 1
        $0.documentChange.targetIds = targets
        $0.documentChange.removedTargetIds = left
      }
    }

    private func target(
      _ type: WireTargetChange.TargetChangeType, _ ids: [Int32] = [], at seconds: Int64? = nil
    ) -> WireListenResponse {
      .with {
        $0.targetChange.targetChangeType = type
        $0.targetChange.targetIds = ids
        if let seconds { $0.targetChange.readTime.seconds = seconds }
        $0.targetChange.resumeToken = Data("token".utf8)
      }
    }

    @Test func `Changes before the targets are current are no moment`() async throws {
      var gathering = Gathering(ValueMapping(database: Self.name))
      _ = gathering.add(try await followed("items"))
      _ = try gathering.take(change("items/a", [1]))
      guard case .nothing = try gathering.take(target(.noChange, at: 5)) else {
        Issue.record("a moment, before its target is current")
        return
      }
      _ = try gathering.take(target(.current, [1]))
      guard case .moment(let time, let token) = try gathering.take(target(.noChange, at: 6)) else {
        Issue.record("no moment")
        return
      }
      let moment = gathering.takeMoment(time, token)
      #expect(moment.changes.keys.map(\.documentID) == ["a"])
      #expect(moment.tokens == [1: Array("token".utf8)])
    }

    @Test func `A document outside its follow is refused`() async throws {
      var gathering = Gathering(ValueMapping(database: Self.name))
      _ = gathering.add(try await followed("items"))
      #expect(throws: DatabaseError.self) { try gathering.take(change("others/a", [1])) }
      #expect(throws: DatabaseError.self) { try gathering.take(change("items/__a__", [1])) }
      #expect(throws: DatabaseError.self) { try gathering.take(WireListenResponse()) }
    }

    @Test func `A moment does not go back`() async throws {
      var gathering = Gathering(ValueMapping(database: Self.name))
      _ = gathering.add(try await followed("items"))
      _ = try gathering.take(target(.current, [1]))
      _ = try gathering.take(target(.noChange, at: 6))
      #expect(throws: DatabaseError.self) { try gathering.take(target(.noChange, at: 5)) }
    }

    @Test func `A reset forgets what its target has shown`() async throws {
      var gathering = Gathering(ValueMapping(database: Self.name))
      _ = gathering.add(try await followed("items"))
      _ = try gathering.take(change("items/a", [1]))
      _ = try gathering.take(target(.reset, [1]))
      _ = try gathering.take(change("items/b", [1]))
      _ = try gathering.take(target(.current, [1]))
      guard case .moment(let time, let token) = try gathering.take(target(.noChange, at: 6)) else {
        Issue.record("no moment")
        return
      }
      #expect(gathering.refreshed.map(\.seen.count) == [1])
      #expect(gathering.takeMoment(time, token).changes.keys.map(\.documentID) == ["b"])
    }

    @Test func `Targets that nobody has are not listened to`() async throws {
      var gathering = Gathering(ValueMapping(database: Self.name))
      _ = gathering.add(try await followed("items"))
      _ = try gathering.take(change("items/a", [7]))
      _ = try gathering.take(target(.current, [1]))
      guard case .moment(let time, let token) = try gathering.take(target(.noChange, at: 6)) else {
        Issue.record("no moment")
        return
      }
      #expect(gathering.takeMoment(time, token).changes.isEmpty)
    }
  }
#endif
