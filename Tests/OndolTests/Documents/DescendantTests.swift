// Everything below a document: listing collections, and deleting all of it at once.

import OndolTestKit
import Testing

@testable import Ondol

@Suite struct DescendantTests {
  private func makeTree(_ database: Database) async throws {
    for path in [
      "users/u1", "users/u1/posts/p1", "users/u1/posts/p1/comments/c1", "users/u1/likes/l1",
      "users/u2/posts/p1", "users/u10/posts/p1", "users/gone/posts/p1/comments/c1", "items/i1",
    ] {
      try await database.document(path).setData(["at": path])
    }
    try await database.collection("users/u1/posts").createIndex(on: ["at"])
  }

  @Test func `Collections are listed while there is something in or below them`() async throws {
    let database = try await Database.underTest()
    try await makeTree(database)
    #expect(try await database.listCollections().map(\.path) == ["items", "users"])
    let user = database.document("users/u1")
    #expect(try await user.listCollections().map(\.path) == ["users/u1/likes", "users/u1/posts"])
    #expect(
      try await database.document("users/gone").listCollections().map(\.collectionID) == ["posts"])
    #expect(try await database.document("users/none").listCollections().isEmpty)
    #expect(try await database.document("never/x").listCollections().isEmpty)
    try await database.document("items/i1").delete()
    #expect(try await database.listCollections().map(\.path) == ["users"])
  }

  @Test func `A recursive delete takes everything below in one commit`() async throws {
    let database = try await Database.underTest()
    try await makeTree(database)
    let before = database.snapshot()
    let result = try await database.document("users/u1").delete(
      recursive: true, returning: .before)
    #expect(result.before?["at"] as String? == "users/u1")
    #expect(result.version.rawValue == before.version.rawValue + 1)
    for path in ["users/u1", "users/u1/posts/p1", "users/u1/posts/p1/comments/c1"] {
      #expect(try before.getDocument(database.document(path)).exists)
      #expect(try await database.document(path).getDocument().exists == false)
    }
    for path in ["users/u2/posts/p1", "users/u10/posts/p1", "users/gone/posts/p1/comments/c1"] {
      #expect(try await database.document(path).getDocument().exists)
    }
    try await auditIndexes(of: database.collection("users/u1/posts"))
    #expect(try await database.document("users/u1").listCollections().isEmpty)
    try await database.document("users/gone").delete(recursive: true)
    #expect(try await database.document("users/gone").listCollections().isEmpty)
    try await database.document("never/x").delete(recursive: true)
  }

  @Test func `A recursive delete looks at the version`() async throws {
    let database = try await Database.underTest()
    try await makeTree(database)
    let error = await #expect(throws: DatabaseError.self) {
      try await database.document("users/u1").delete(recursive: true, ifVersion: .missing)
    }
    #expect(error?.code == .aborted)
    #expect(try await database.document("users/u1/likes/l1").getDocument().exists)
  }

  @Test func `A recursive delete leaves no orphan that was added meanwhile`() async throws {
    let database = try await Database.underTest()
    for round in 0..<10 {
      let user = database.document("users/u\(round)")
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          for number in 0..<10 {
            // Added only while its user exists, as an app would do.
            try await database.runTransaction(durability: .memory) { transaction in
              guard try transaction.getDocument(user).exists else { return }
              let post = user.collection("posts").document()
              try transaction.setData(["n": number], forDocument: post)
            }
          }
        }
        group.addTask {
          try await user.setData(["n": 1], durability: .memory)
          await Task.yield()
          try await user.delete(recursive: true, durability: .memory)
        }
        try await group.waitForAll()
      }
      #expect(try await user.listCollections().isEmpty, "round \(round)")
    }
    try await database.close()
  }

  @Test func `A result names the fields that changed`() async throws {
    let document = try await Database.underTest().document("c/d")
    let created = try await document.setData(["a": 1, "b": ["c": 1, "d": [1]], "n": 1])
    #expect(created.changedFields == ["a", "b", "n"])
    let changed = try await document.updateData([
      "a": 1, "b.c": 2, "b.`x.y`": nil, "n": 1.0, "new": FieldValue.serverTimestamp(),
    ])
    #expect(changed.changedFields == ["b.c", "b.`x.y`", "n", "new"])
    let same = try await document.updateData(["a": 1, "b.c": 2])
    #expect(same.changedFields.isEmpty)
    #expect(same.version == changed.version)
    let gone = try await document.delete()
    #expect(gone.changedFields.map(\.description).sorted() == ["a", "b", "n", "new"])
  }
}
