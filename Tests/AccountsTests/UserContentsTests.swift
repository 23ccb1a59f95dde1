// Nobody gets bytes by knowing their digest: a document may refer only to contents that its writer
// put or can already read, wherever in the document the reference is.

import Ondol
import OndolAccounts
import OndolTestKit
import Testing

@Suite struct UserContentsTests {
  private struct Profile: Codable {
    var name: String
    var picture: BlobReference?
  }

  private struct Album: Codable {
    var pages: [[String: BlobReference]]
  }

  private struct People {
    let database: Database
    let accounts: Accounts
    let minji: Session
    let hajun: Session

    init(_ trial: Trial) async throws {
      database = try await trial.database()
      accounts = try await trial.accounts(in: database)
      minji = try await accounts.createUser(
        withEmail: "minji@b.kr", password: Trial.password, profile: Profile(name: "민지"),
        picture: [7, 7, 7] as [UInt8])
      hajun = try await accounts.createUser(withEmail: "hajun@b.kr", password: Trial.password)
    }
  }

  /// Returns the database's error that `body` throws; nil if it throws none.
  private func refusal(_ body: () async throws -> Void) async -> DatabaseError? {
    do {
      try await body()
      return nil
    } catch {
      return error as? DatabaseError
    }
  }

  @Test func `A crafted reference is refused wherever it stands, with its place`() async throws {
    let people = try await People(Trial())
    let hers = people.accounts.privateDatabase(for: people.minji)
    let secret = try await hers.put([1, 2, 3] as [UInt8])
    try await hers.document("notes/one").setData(["photo": secret])
    // He only needs to know the digest and the length.
    let crafted = try BlobReference(digest: secret.digest, length: 3)
    for his in [
      people.accounts.privateDatabase(for: people.hajun),
      people.accounts.publicDatabase(for: people.hajun),
    ] {
      let note = his.document("notes/mine")
      try await note.setData(["text": "his", "list": ["a"]])
      let before = try await note.getDocument()
      let refused = await [
        refusal { try await note.setData(["photo": crafted]) },
        refusal { try await note.setData(["a b": ["deep": ["photo": crafted]]], merge: true) },
        refusal {
          let list = Value.array(["x", .map(["photo": .blob(crafted)])])
          try await note.setData(["list": list])
        },
        refusal { try await note.setData(from: Album(pages: [[:], ["photo": crafted]])) },
        refusal { try await note.setData(from: ["photo": crafted]) },
        refusal { try await note.updateData(["map.photo": crafted]) },
        refusal { try await note.updateData(["list": FieldValue.arrayUnion(["x", crafted])]) },
        refusal {
          try await note.setData(["m": ["list": FieldValue.arrayUnion([crafted])]], merge: true)
        },
        refusal { try await his.collection("notes").addDocument(["photo": crafted]) },
        refusal { try await his.collection("notes").addDocument(from: ["photo": crafted]) },
      ]
      #expect(
        refused.map { $0?.code } == Array(repeating: .permissionDenied, count: refused.count))
      #expect(
        refused.map { $0?.field } == [
          "photo", "`a b`.deep.photo", "list[1].photo", "pages[1].photo", "photo", "map.photo",
          "list[1]", "m.list[0]", "photo", "photo",
        ])
      #expect(refused[0]?.path?.hasSuffix("notes/mine") == true)
      #expect(try await note.getDocument() == before)
      #expect(try await his.collection("notes").getDocuments().count == 1)
      // Nor does the answer reveal whether anyone has the bytes.
      let unknown = try BlobReference(
        digest: #require(BlobDigest(bytes: [UInt8](repeating: 9, count: 32))), length: 3)
      let answer = await refusal { try await note.setData(["photo": unknown]) }
      #expect(answer == refused[0])
      // Removing an absent reference is no way to it either.
      try await note.updateData(["list": FieldValue.arrayRemove([crafted])])
    }
    try await people.database.close()
  }

  @Test func `A person's documents may refer to contents that they put or can read`() async throws {
    let people = try await People(Trial())
    let hers = people.accounts.privateDatabase(for: people.minji)
    let his = people.accounts.privateDatabase(for: people.hajun)
    let photo = try await hers.put([1, 2, 3] as [UInt8], contentType: "image/png")
    let shown = people.accounts.publicDatabase(for: people.minji)
    try await hers.document("notes/one").setData(["photo": photo])
    try await hers.document("notes/one/pages/two").setData(["photo": photo])
    // He may have it after she shows it, and as long as someone does.
    #expect(await refusal { try await his.document("a/b").setData(["photo": photo]) } != nil)
    try await shown.document("posts/one").setData(["photos": [photo]])
    try await his.document("a/b").setData(["photo": photo])
    #expect(try await his.document("a/b").data(in: "photo") == [1, 2, 3])
    try await shown.document("posts/one").delete()
    // His own document has it, so it may be written again, and elsewhere.
    try await his.document("a/b").setData(["photo": photo, "text": "mine"])
    try await his.document("c/d/e/f").setData(from: ["photo": photo])
    try await his.document("a/b").delete()
    try await his.document("c/d/e/f").delete()
    #expect(
      await refusal { try await his.document("a/b").setData(["photo": photo]) }?.code
        == .permissionDenied)
    // A user with the bytes themselves needs no other.
    let own = try await his.put([1, 2, 3] as [UInt8])
    #expect(own.digest == photo.digest)
    try await his.document("a/b").setData(["photo": own])
    try await people.database.close()
  }

  @Test func `The picture of a profile is its owner's to use`() async throws {
    let people = try await People(Trial())
    let path = try #require(people.minji.account.profilePath)
    let picture = try #require(
      try await people.database.document(path).getDocument()["picture"] as BlobReference?)
    let hers = people.accounts.publicDatabase(for: people.minji)
    let his = people.accounts.publicDatabase(for: people.hajun)
    #expect(await refusal { try await his.document("a/b").setData(["p": picture]) } != nil)
    try await hers.document("posts/one").setData(["p": picture])
    try await people.database.close()
  }

  @Test func `A put content waits for a document as long as its lease, and goes with the account`()
    async throws
  {
    let trial = Trial()
    let people = try await People(trial)
    let hers = people.accounts.privateDatabase(for: people.minji)
    let photo = try await hers.put([1, 2, 3] as [UInt8])
    // Another user keeps the bytes, in private.
    let his = people.accounts.privateDatabase(for: people.hajun)
    try await his.document("a/b").setData(["photo": try await his.put([1, 2, 3] as [UInt8])])
    await trial.clock.advance(by: .seconds(86_400))
    #expect(
      await refusal { try await hers.document("a/b").setData(["photo": photo]) }?.code
        == .permissionDenied)
    _ = try await hers.put([4, 5, 6] as [UInt8])
    try await people.accounts.reauthenticate(
      token: people.minji.token, password: Trial.password)
    try await people.accounts.delete(token: people.minji.token)
    let puts = people.database.collection("accounts/\(people.minji.account.uid)/puts")
    #expect(try await puts.getDocuments().isEmpty)
    try await people.database.close()
  }

  @Test func `An expired document shows its bytes to no user`() async throws {
    let trial = Trial()
    let people = try await People(trial)
    try await people.database.collection("publicData/all/posts").setTimeToLive(field: "ends")
    let hers = people.accounts.publicDatabase(for: people.minji)
    let photo = try await hers.put([1, 2, 3] as [UInt8])
    try await people.accounts.privateDatabase(for: people.minji).document("a/b")
      .setData(["photo": photo])
    let end = try Timestamp(
      microsecondsSince1970: trial.clock.microsecondsSince1970 + 60_000_000)
    try await hers.document("posts/one").setData(["photo": photo, "ends": end])
    let his = people.accounts.privateDatabase(for: people.hajun)
    try await his.document("a/b").setData(["photo": photo])
    try await his.document("a/b").delete()
    await trial.clock.advance(by: .seconds(60))
    #expect(
      await refusal { try await his.document("a/b").setData(["photo": photo]) }?.code
        == .permissionDenied)
    try await people.database.close()
  }

  @Test func `A collection with its own key accepts contents put for it, and its existing ones`()
    async throws
  {
    let trial = Trial()
    let key = Database.Encryption.key([UInt8](repeating: 1, count: 32))
    let database = try await Database.open(
      at: Trial.path, options: Database.Options(encryption: key), on: trial.device)
    try await database.collection("privateData").createWithOwnKey()
    let accounts = try await trial.accounts(in: database)
    let minji = try await accounts.createUser(withEmail: "minji@b.kr", password: Trial.password)
    let hajun = try await accounts.createUser(withEmail: "hajun@b.kr", password: Trial.password)
    let hers = accounts.privateDatabase(for: minji)
    let his = accounts.privateDatabase(for: hajun)
    let scan = try await hers.put([1, 2, 3] as [UInt8], for: hers.collection("notes"))
    try await hers.document("notes/one").setData(["scan": scan])
    try await hers.document("notes/one").setData(["scan": scan, "text": "again"])
    #expect(try await hers.document("notes/one").data(in: "scan") == [1, 2, 3])
    #expect(
      await refusal { try await his.document("notes/one").setData(["scan": scan]) }?.code
        == .permissionDenied)
    try await database.close()
  }
}
