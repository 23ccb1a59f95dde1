// Joins: results completed with the documents that they refer to.

import OndolTestKit
import Testing

@testable import Ondol

@Suite struct LookupTests {
  private func makePosts() async throws -> Database {
    let database = try await Database.underTest()
    for (id, name) in [("u1", "Kim"), ("u2", "Lee")] {
      try await database.document("users/\(id)").setData(["name": name, "cityId": "c-\(id)"])
    }
    try await database.document("cities/c-u1").setData(["name": "Seoul"])
    let posts = database.collection("posts")
    try await posts.document("p1").setData(["n": 1, "userId": "u1"])
    try await posts.document("p2").setData([
      "n": 2, "userId": database.document("users/u2"), "likedBy": ["u1", "u9", "u2", 5],
    ])
    try await posts.document("p3").setData(["n": 3, "userId": "nobody"])
    try await posts.document("p4").setData(["n": 4])
    return database
  }

  @Test func `Results are completed with the documents they refer to`() async throws {
    let database = try await makePosts()
    let query = database.collection("posts").order(by: "n")
      .lookup("userId", in: "users", as: "user")
      .lookup("likedBy", in: "users", as: "likers")
      .lookup("user.cityId", in: "cities", as: "city")
    let found = try await query.getDocuments().documents
    #expect(found.map { $0.get("user.name") as String? } == ["Kim", "Lee", nil, nil])
    #expect(found[2]["user"] as Value? == .null)
    #expect(found[3]["user"] as Value? == nil)
    #expect(found[0].get("city.name") as String? == "Seoul")
    let likers = try #require(found[1]["likers"]?.array)
    #expect(likers.map { $0["name"]?.string } == ["Kim", nil, "Lee", nil])
    let same = try database.snapshot().getDocuments(query).documents
    #expect(same == found)
    let stored = try await database.document("posts/p1").getDocument()
    #expect(stored["user"] as Value? == nil)
    #expect(found[0].version == stored.version)
  }

  @Test func `Completed documents decode with the added fields`() async throws {
    struct Post: Codable {
      struct User: Codable { var name: String }
      var n: Int
      var user: User?
    }
    let database = try await makePosts()
    let found = try await database.collection("posts").order(by: "n")
      .lookup("userId", in: "users", as: "user").getDocuments()
    #expect(try found.data(as: Post.self).map { $0.user?.name } == ["Kim", "Lee", nil, nil])
  }

  @Test func `A wrong lookup throws when it is asked`() async throws {
    let database = try await makePosts()
    let posts = database.collection("posts")
    for query in [
      posts.lookup("userId", in: "users/u1", as: "user"),
      posts.lookup("a..b", in: "users", as: "user"),
      posts.lookup("userId", in: "users", as: "__user__"),
      posts.lookup("userId", in: "users", as: ""),
    ] {
      let error = await #expect(throws: DatabaseError.self) { try await query.getDocuments() }
      #expect(error?.code == .invalidArgument)
    }
  }

  /// Everything was once queried again for each change, however many results there were.
  @Test(arguments: 0..<8)
  func `A live join equals a new query, whatever changes`(number: Int) async throws {
    let seed = 0x10_0c0b + UInt64(number)
    var random = SeededRandom(seed: seed)
    let database = try await Database.underTest()
    let (posts, users) = (database.collection("posts"), database.collection("users"))
    let source =
      number % 2 == 0
      ? posts.order(by: "n") : posts.whereField("n", isLessThan: 7).order(by: "n").limit(to: 6)
    let lookup = source.lookup("user", in: "users", as: "user")
      .lookup("user.friend", in: "users", as: "friend")
    var listener = lookup.snapshots.makeAsyncIterator()
    var list: [DocumentSnapshot] = []
    #expect(try await listener.next()?.isEmpty == true)
    for step in 0..<150 {
      let batch = database.batch()
      for _ in 0..<(random.below(3) + 1) {
        let (post, user) = ("p\(random.below(12))", "u\(random.below(5))")
        switch random.below(6) {
        case 0: batch.deleteDocument(posts.document(post))
        case 1: batch.deleteDocument(users.document(user))
        case 2, 3:
          try batch.setData(
            ["name": step, "friend": "u\(random.below(5))"], forDocument: users.document(user))
        default:
          let place: any FieldContent = random.below(4) == 0 ? ["u1", "u2"] : user
          try batch.setData(
            ["n": random.below(9), "user": place], forDocument: posts.document(post))
        }
      }
      try await batch.commit(durability: .memory)
      let expected = try await lookup.getDocuments()
      guard expected.documents.map(\.fields) != list.map(\.fields) else { continue }
      let heard = try #require(try await listener.next())
      for change in heard.documentChanges {
        if let index = change.oldIndex { list.remove(at: index) }
        if let index = change.newIndex { list.insert(change.document, at: index) }
      }
      #expect(
        heard.documents.map(\.fields) == expected.documents.map(\.fields), "seed \(seed), \(step)")
      #expect(list.map(\.fields) == expected.documents.map(\.fields), "seed \(seed), \(step)")
      #expect(heard.cursor == expected.cursor)
    }
    try await database.close()
  }
}

extension DocumentSnapshot {
  /// The document without its version, because a write that changes nothing is reported to nobody.
  fileprivate var fields: [String: Value] { ["id": .string(documentID), "fields": .map(data())] }
}
