// Stories of writes with an uncertain end. A caller gets one of three answers: it has happened, it
// has not, or nobody can know before the database is reopened. The answer is never wrong.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct UncertainWriteTests {
  /// The disk refuses a write. Nobody knows whether the bytes exist, and the caller must get
  /// exactly that answer. Acknowledged commits can still be read, and nothing more is written.
  @Test func `A write whose file failed is neither promised nor denied`() async throws {
    let world = SimulatedWorld(seed: 1)
    let database = try await Database.open(at: "/d", environment: world.environment)
    let documents = database.collection("diary")
    try await documents.document("kept").setData(["n": 1])
    for kinds: Set<OperationKind> in [[.write, .sync]] {
      world.fileSystem.inject([Fault(failing: kinds, of: .log, errno: 5, isSticky: true)])
    }
    let failed = await #expect(throws: DatabaseError.self) {
      try await documents.document("doubtful").setData(["n": 2])
    }
    #expect(failed?.code == .unavailable, "\(failed as Any)")
    #expect(failed?.message.contains("opened again") == true, "\(failed as Any)")
    #expect(failed?.message.contains("known only then") == true, "\(failed as Any)")

    // The disk works again, and still nothing is written after a hole.
    world.fileSystem.inject([])
    let later = await #expect(throws: DatabaseError.self) {
      try await documents.document("later").setData(["n": 3])
    }
    #expect(later?.code == .unavailable)
    #expect(try await documents.document("kept").getDocument().data() == ["n": 1])
    #expect(try await documents.document("later").getDocument().exists == false)
    try? await database.close()

    let again = try await Database.open(
      at: "/d",
      environment: SimulatedWorld(fileSystem: world.fileSystem.kill(), seed: 2).environment)
    let found = again.collection("diary")
    #expect(try await found.document("kept").getDocument().data() == ["n": 1])
    let doubtful = try await found.document("doubtful").getDocument()
    #expect(!doubtful.exists || doubtful.data() == ["n": 2])
    #expect(try await found.document("later").getDocument().exists == false)
    try await found.document("later").setData(["n": 3])
    try await again.close()
  }

  /// The photo diary once saved, queried its list, and did not find what it had just saved.
  @Test func `A read after an acknowledged write finds it`() async throws {
    let database = try await Database.underTest()
    let diary = database.collection("diary")
    try await diary.createIndex(on: ["day"])
    for day in 0..<200 {
      try await diary.document("d\(day)").setData(["day": day], durability: .memory)
      let isFound = try await withThrowingTaskGroup(of: Bool.self) { group in
        group.addTask { try await diary.document("d\(day)").getDocument().exists }
        group.addTask {
          try await diary.whereField("day", isEqualTo: day).getDocuments().count == 1
        }
        group.addTask { database.snapshot().version > .missing }
        return try await group.allSatisfy { $0 }
      }
      #expect(isFound, "day \(day)")
    }
    try await database.close()
  }
}
