// People's data is separate: each call checks its owner, and whether the session is still valid.

import Ondol
import OndolAccounts
import OndolTestKit
import Testing

@Suite struct UserDatabaseTests {
  private struct People {
    let database: Database
    let accounts: Accounts
    let minji: Session
    let hajun: Session

    init(_ trial: Trial) async throws {
      database = try await trial.database()
      accounts = try await trial.accounts(in: database)
      minji = try await accounts.createUser(withEmail: "minji@b.kr", password: Trial.password)
      hajun = try await accounts.createUser(withEmail: "hajun@b.kr", password: Trial.password)
    }
  }

  @Test func `Private data is its owner's alone`() async throws {
    let people = try await People(Trial())
    let hers = people.accounts.privateDatabase(for: people.minji)
    let his = people.accounts.privateDatabase(for: people.hajun)
    try await hers.document("notes/one").setData(["text": "hers"])
    #expect(try await hers.document("notes/one").getDocument()["text"] as String? == "hers")
    #expect(try await !his.document("notes/one").getDocument().exists)
    #expect(try await his.collection("notes").getDocuments().isEmpty)
    // No path leads out of a root.
    for path in [
      "../\(people.minji.account.uid)/notes/one", "notes/../one", "", "notes", "notes/one/",
    ] {
      let found = await databaseCode { _ = try await his.document(path).getDocument() }
      #expect(found == .invalidArgument, "\(path)")
    }
    for path in ["/notes/one", "notes//one", "\(people.minji.account.uid)/notes/one/two"] {
      let found = try? await his.document(path).getDocument()
      #expect(found?.exists != true, "\(path)")
    }
    let blob = try await hers.put([1, 2, 3] as [UInt8])
    try await hers.document("notes/one").updateData(["photo": blob])
    #expect(try await hers.document("notes/one").data(in: "photo") == [1, 2, 3])
    #expect(
      await databaseCode { _ = try await his.document("notes/one").data(in: "photo") } == .notFound)
    try await people.database.close()
  }

  @Test func `A public document is its maker's to change, whatever it says`() async throws {
    let people = try await People(Trial())
    let (minji, hajun) = (people.minji.account.uid, people.hajun.account.uid)
    let hers = people.accounts.publicDatabase(for: people.minji)
    let his = people.accounts.publicDatabase(for: people.hajun)
    let path = "posts/one"
    try await hers.document(path).setData(["text": "hello", "ownerID": hajun])
    let read = try await his.document(path).getDocument()
    #expect(read["text"] as String? == "hello")
    #expect(read["ownerID"] as String? == minji)
    let refused = await [
      databaseCode { try await his.document(path).setData(["text": "his"]) },
      databaseCode { try await his.document(path).setData(["ownerID": hajun], merge: true) },
      databaseCode { try await his.document(path).setData(from: ["text": "his"]) },
      databaseCode { try await his.document(path).updateData(["text": "his"]) },
      databaseCode { try await his.document(path).delete() },
    ]
    #expect(refused == Array(repeating: .permissionDenied, count: 5))
    #expect(try await hers.document(path).getDocument() == read)
    // Not even its creator gives it away.
    try await hers.document(path).updateData(["text": "again", "ownerID": FieldValue.delete()])
    #expect(try await his.document(path).getDocument()["ownerID"] as String? == minji)
    try await his.collection("posts").addDocument(from: ["text": "two"])
    let posts = try await hers.collection("posts").getDocuments(
      where: .whereField("ownerID", isEqualTo: hajun), orderedBy: "text")
    #expect(posts.documents.map { $0["text"] as String? } == ["two"])
    try await hers.document(path).delete()
    #expect(try await !his.document(path).getDocument().exists)
    // A document without an owner, which the app itself wrote, cannot be changed by any user.
    try await people.database.document("publicData/all/posts/three").setData(["text": "rules"])
    #expect(
      await databaseCode { try await his.document("posts/three").updateData(["text": "his"]) }
        == .permissionDenied)
    try await people.database.close()
  }

  @Test func `One of two racing creators of a public document owns it`() async throws {
    for seed in Seeds.first(5) {
      let people = try await People(Trial(seed: seed))
      async let first = databaseCode {
        try await people.accounts.publicDatabase(for: people.minji).document("a/b")
          .setData(["by": "minji"])
      }
      async let second = databaseCode {
        try await people.accounts.publicDatabase(for: people.hajun).document("a/b")
          .setData(["by": "hajun"])
      }
      let codes = await [first, second]
      #expect(codes.filter { $0 == nil }.count == 1, "seed \(seed)")
      #expect(codes.contains(.permissionDenied), "seed \(seed)")
      let stored = try await people.database.document("publicData/all/a/b").getDocument()
      let winner = codes[0] == nil ? people.minji : people.hajun
      #expect(stored["ownerID"] as String? == winner.account.uid, "seed \(seed)")
      try await people.database.close()
    }
  }

  @Test func `Every call asks whether the session still stands`() async throws {
    let people = try await People(Trial())
    let databases = [
      people.accounts.privateDatabase(for: people.minji),
      people.accounts.publicDatabase(for: people.minji),
    ]
    for database in databases { try await database.document("a/b").setData(["n": 1]) }
    var listeners = databases.map { $0.document("a/b").snapshots.makeAsyncIterator() }
    for place in listeners.indices {
      let first = try await listeners[place].next()
      #expect(first?["n"] as Int? == 1)
    }
    var lists = databases.map { $0.collection("a").snapshots().makeAsyncIterator() }
    try await people.accounts.signOut(token: people.minji.token)
    let before = try await people.database.document("publicData/all/a/b").getDocument()
    for (place, database) in databases.enumerated() {
      let document = database.document("a/b")
      let codes = await [
        databaseCode { _ = try await document.getDocument() },
        databaseCode { _ = try await document.data(in: "n") },
        databaseCode { try await document.setData(["n": 2]) },
        databaseCode { try await document.setData(from: ["n": 2]) },
        databaseCode { try await document.updateData(["n": 2]) },
        databaseCode { try await document.delete() },
        databaseCode { _ = try await database.collection("a").getDocuments() },
        databaseCode { try await database.collection("a").addDocument(["n": 2]) },
        databaseCode { try await database.collection("a").addDocument(from: ["n": 2]) },
        databaseCode { _ = try await database.put([1] as [UInt8]) },
      ]
      #expect(codes == Array(repeating: .unauthenticated, count: 10))
      // A listener does not receive writes after the end either.
      let path = try #require(
        place == 0 ? "privateData/\(people.minji.account.uid)/a/b" : "publicData/all/a/b")
      try await people.database.document(path).setData(["n": 3], merge: true)
      #expect(await databaseCode { _ = try await listeners[place].next() } == .unauthenticated)
      #expect(await databaseCode { _ = try await lists[place].next() } == .unauthenticated)
    }
    #expect(before["n"] as Int? == 1)
    try await people.database.close()
  }
}
