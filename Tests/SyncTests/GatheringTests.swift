// What a server says is gathered into moments, and what no honest server says is refused.

#if Sync
  import Foundation
  import Ondol
  import OndolMapping
  import OndolTestKit
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

    /// A device that is slow commits several moments at once. Of each document it must know what it
    /// would know if they had been one.
    @Test func `Moments one after another say what one moment says`() async throws {
      let seed = UInt64.random(in: 0...UInt64.max)
      var random = SeededRandom(seed: seed)
      let database = try await Database.inMemory()
      var follows: [FollowedQuery] = []
      for number in 1...Int64(3) {
        let query = database.collection("items").whereField("n", isGreaterThan: number)
        follows.append(try FollowedQuery(query, number: number))
      }
      for _ in 0..<2_000 {
        var (whole, parts) = (
          Gathering(ValueMapping(database: Self.name)), Gathering(ValueMapping(database: Self.name))
        )
        for follow in follows {
          _ = whole.add(follow)
          _ = parts.add(follow)
        }
        var pending: ServerMoment?
        // As a server does: it says that a document has left a follow only if it was in it.
        var members: [String: Set<Int32>] = ["a": [1, 2], "b": []]
        for second in 1...Int64.random(in: 2...6, using: &random) {
          for id in ["a", "b"] where Bool.random(using: &random) {
            let old = members[id] ?? []
            let new = Set((1...3).filter { _ in Bool.random(using: &random) }.map { Int32($0) })
            guard !new.isEmpty || !old.isEmpty else { continue }
            members[id] = new
            var message = change("items/\(id)", new.sorted(), left: old.subtracting(new).sorted())
            if new.isEmpty {
              let isDeleted = Bool.random(using: &random)
              message = left("items/\(id)", old.sorted(), isDeleted: isDeleted)
            } else {
              message.documentChange.document.updateTime.seconds = second
            }
            _ = try whole.take(message)
            _ = try parts.take(message)
          }
          let moment = parts.takeMoment(try Timestamp(seconds: second, nanoseconds: 0), [1])
          pending?.add(moment)
          pending = pending ?? moment
        }
        let expected = whole.takeMoment(try Timestamp(seconds: 1, nanoseconds: 0), [1]).changes
        #expect(
          pending?.changes.mapValues(text) == expected.mapValues(text), "seed \(seed)")
      }
    }

    private func text(_ change: ServerChange) -> String {
      "\(change.state), joined \(change.joined.sorted()), left \(change.left.sorted())"
    }

    private func left(
      _ path: String, _ targets: [Int32], isDeleted: Bool
    ) -> WireListenResponse {
      .with {
        if isDeleted {
          $0.documentDelete.document = "\(Self.name.documents)/\(path)"
          $0.documentDelete.removedTargetIds = targets
        } else {
          $0.documentRemove.document = "\(Self.name.documents)/\(path)"
          $0.documentRemove.removedTargetIds = targets
        }
      }
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
