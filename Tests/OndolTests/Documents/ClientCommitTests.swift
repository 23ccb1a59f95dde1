// Commits in the form of Firestore's protocol: each write's meaning and answer.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct ClientCommitTests {
  private func path(_ text: String) throws -> DocumentPath { try DocumentPath(text) }

  @Test func `Transforms return their stored values, in order`() async throws {
    let database = try await Database.underTest()
    let write = ClientWrite(
      path: try path("c/a"), .replace(["n": 1]),
      transforms: [
        .init(path: ["n"], .increment(4)), .init(path: ["when"], .serverTimestamp()),
        .init(path: ["tags"], .arrayUnion(["x"])), .init(path: ["m", "least"], .minimum(3)),
      ])
    let commit = try await database.commit([write])
    #expect(
      commit.answers[0].transformed == [.integer(5), .timestamp(commit.time), .null, .integer(3)])
    #expect(commit.answers[0].updateTime == commit.time)
  }

  @Test func `Several writes to one document each return their result`() async throws {
    let database = try await Database.underTest()
    let increment = ClientWrite(
      path: try path("c/a"), .patch([:], mask: []),
      transforms: [.init(path: ["n"], .increment(1))])
    let commit = try await database.commit([increment, increment, increment])
    #expect(commit.answers.map(\.transformed) == [[.integer(1)], [.integer(2)], [.integer(3)]])
  }

  @Test func `A masked place that the fields lack is removed, and others stay`() async throws {
    let database = try await Database.underTest()
    try await database.document("c/a").setData(["keep": 1, "go": 2, "map": ["x": 1, "y": 2]])
    _ = try await database.commit([
      ClientWrite(
        path: try path("c/a"), .patch(["map": ["x": 5]], mask: [["go"], ["map", "x"]]))
    ])
    let data = try await database.document("c/a").getDocument().data()
    #expect(Value.map(data) == ["keep": 1, "map": ["x": 5, "y": 2]])
  }

  @Test func `Conditions are those of Firestore`() async throws {
    let database = try await Database.underTest()
    let there = try await database.commit([
      ClientWrite(path: try path("c/there"), .replace([:]))
    ])
    func code(_ write: ClientWrite) async -> DatabaseError.Code? {
      do {
        _ = try await database.commit([write])
        return nil
      } catch {
        return error.code
      }
    }
    let (here, missing) = (try path("c/there"), try path("c/missing"))
    #expect(await code(ClientWrite(path: here, .verify, condition: .exists(true))) == nil)
    #expect(await code(ClientWrite(path: missing, .verify, condition: .exists(true))) == .notFound)
    #expect(
      await code(ClientWrite(path: here, .replace([:]), condition: .exists(false)))
        == .alreadyExists)
    #expect(
      await code(ClientWrite(path: here, .delete, condition: .updated(at: .minimum)))
        == .failedPrecondition)
    #expect(
      await code(ClientWrite(path: here, .delete, condition: .updated(at: there.time))) == nil)
    #expect(await code(ClientWrite(path: here, .delete)) == nil)
  }

  /// A verified document is part of the commit: it must not change in between.
  @Test func `A verified document guards the commit`() async throws {
    let database = try await Database.underTest()
    let guarded = try path("c/guard")
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<100 {
        group.addTask {
          _ = try? await database.commit([
            ClientWrite(path: guarded, .verify, condition: .exists(false)),
            ClientWrite(path: try path("c/\(number)"), .replace([:])),
          ])
        }
      }
      group.addTask { try await database.document("c/guard").setData([:]) }
      try await group.waitForAll()
    }
    let made = try await database.document("c/guard").getDocument()
    let others = try await database.collection("c").getDocuments().documents
    #expect(others.allSatisfy { $0.documentID == "guard" || $0.version < made.version })
  }

  @Test func `A write that changes nothing keeps its time`() async throws {
    let database = try await Database.underTest()
    let write = ClientWrite(path: try path("c/a"), .replace(["n": 1]))
    let first = try await database.commit([write])
    let second = try await database.commit([write])
    #expect(second.answers[0].updateTime == first.time)
  }

  @Test func `An unstorable value names its field`() async throws {
    let database = try await Database.underTest()
    let error = await #expect(throws: DatabaseError.self) {
      try await database.commit([
        ClientWrite(path: try path("c/a"), .patch(["a": ["__b__": 1]], mask: [["a"]]))
      ])
    }
    #expect(error?.code == .invalidArgument)
    #expect(error?.field == "a.__b__")
  }
}
