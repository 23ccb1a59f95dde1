// An administrator's calls do what a model does, in any order. Pages show each account once, and a
// deleted account goes whole. AccountModelTests has random orders of calls.

import Ondol
import OndolAccounts
import OndolTestKit
import Testing

@Suite struct AdministrationTests {
  @Test func `An account has the properties of its creation, and each may be missing`() async throws
  {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    let bare = try await accounts.createAccount(NewAccount())
    #expect(bare.uid.count == 20)
    #expect(bare.email == nil && bare.phoneNumber == nil && bare.displayName == nil)
    #expect(!bare.hasPassword && !bare.isDisabled && !bare.isAnonymous)
    #expect(bare.lastSignInTime == nil)
    #expect(bare.customClaims.isEmpty)

    var new = NewAccount(uid: "minji")
    new.email = "Minji@Example.com"
    new.isEmailVerified = true
    new.password = Trial.password
    new.phoneNumber = "+82 (10) 1234-5678"
    new.displayName = "김민지"
    new.photoURL = "https://example.com/minji.png"
    new.customClaims = try CustomClaims(["admin": true])
    let full = try await accounts.createAccount(new)
    #expect(full.uid == "minji")
    #expect(full.email == "Minji@Example.com")
    #expect(full.isEmailVerified && full.hasPassword)
    #expect(full.phoneNumber == "+821012345678")
    #expect(full.displayName == "김민지")
    #expect(full.photoURL == "https://example.com/minji.png")
    #expect(full.customClaims == new.customClaims)
    for identifier in [
      AccountIdentifier.uid("minji"), .email("minji@EXAMPLE.com"), .phoneNumber("+82-10-12345678"),
    ] {
      #expect(try await accounts.findAccount(identifier) == full)
    }
    let some = try await accounts.findAccounts([
      .email("nobody@example.com"), .phoneNumber("+821012345678"), .uid(bare.uid), .uid("minji"),
      .uid("nobody"),
    ])
    #expect(some == [full, bare])
    let session = try await accounts.signIn(
      withEmail: "minji@example.com", password: Trial.password)
    #expect(session.account.uid == "minji")
    #expect(session.account.lastSignInTime != nil)
    // The secrets are neither printed nor dumped.
    var printed = ""
    dump(new, to: &printed)
    #expect(!printed.contains(Trial.password))
    try await database.close()
  }

  @Test func `Properties of another account and invalid ones are refused, and nothing changes`()
    async throws
  {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    var new = NewAccount(uid: "minji")
    new.email = "minji@b.kr"
    new.phoneNumber = "+8210"
    _ = try await accounts.createAccount(new)
    _ = try await accounts.createAccount(NewAccount(uid: "hajun"))
    let before = try await trial.stored(database)
    typealias Property = (
      WritableKeyPath<NewAccount, String?>, WritableKeyPath<AccountChanges, PropertyChange<String>>
    )
    let email: Property = (\.email, \.email)
    let phone: Property = (\.phoneNumber, \.phoneNumber)
    let name: Property = (\.displayName, \.displayName)
    let photo: Property = (\.photoURL, \.photoURL)
    let wrong: [(Property, String, AuthErrorCode)] = [
      (email, "MINJI@b.kr", .emailAlreadyInUse), (email, "minji", .invalidEmail),
      (email, "", .invalidEmail), (phone, "+82-10", .credentialAlreadyInUse),
      (phone, "82 10", .invalidPhoneNumber), (phone, "+0123", .invalidPhoneNumber),
      (phone, "+1\u{664}2", .invalidPhoneNumber), (phone, "+", .invalidPhoneNumber),
      (phone, "+1234567890123456", .invalidPhoneNumber), (name, "", .invalidDisplayName),
      (name, "a\u{0}", .invalidDisplayName), (photo, "minji.png", .invalidPhotoURL),
      (photo, "https:///a", .invalidPhotoURL), (photo, "", .invalidPhotoURL),
      ((\.password, \.password), "short", .weakPassword),
    ]
    for (number, (property, value, expected)) in wrong.enumerated() {
      var (new, changes) = (NewAccount(uid: "seoyeon"), AccountChanges())
      new[keyPath: property.0] = value
      changes[keyPath: property.1] = .set(value)
      // The valid changes beside it do not happen either.
      new.displayName = new.displayName ?? "서연"
      if changes.displayName == .keep { changes.displayName = .set("서연") }
      let (made, changed) = (new, changes)
      #expect(await code { _ = try await accounts.createAccount(made) } == expected, "\(number)")
      #expect(await code { try await accounts.updateAccount("hajun", changed) } == expected)
    }
    #expect(
      await code { _ = try await accounts.createAccount(NewAccount(uid: "minji")) }
        == .uidAlreadyInUse)
    #expect(
      await code { try await accounts.updateAccount("nobody", AccountChanges()) } == .userNotFound)
    #expect(await code { try await accounts.deleteAccount("nobody") } == .userNotFound)
    #expect(try await trial.stored(database) == before)
    try await database.close()
  }

  @Test(arguments: [
    "", ".", "..", "a/b", "/", "__a__", "a\u{0}", "e\u{301}", String(repeating: "a", count: 129),
    String(repeating: "a", count: 1 << 16),
  ])
  func `A name that no document can have is not a uid`(_ uid: String) async throws {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    let calls: [@Sendable () async throws -> Void] = [
      { _ = try await accounts.createAccount(NewAccount(uid: uid)) },
      { _ = try await accounts.findAccount(.uid(uid)) },
      { try await accounts.updateAccount(uid, AccountChanges()) },
      { try await accounts.revokeSessions(of: uid) },
      { try await accounts.deleteAccount(uid) },
      { _ = try await accounts.signIn(withUID: uid) },
    ]
    for (number, call) in calls.enumerated() {
      #expect(await code(call) == .invalidUID, "call \(number)")
    }
    let result = try await accounts.deleteAccounts([uid])
    #expect(result.failures.map(\.error.code) == [.invalidUID])
    try await database.close()
  }

  @Test func `An administrator's new password ends sessions, and without one nobody signs in`()
    async throws
  {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    let session = try await accounts.createUser(withEmail: "a@b.kr", password: Trial.password)
    let uid = session.account.uid
    var changes = AccountChanges()
    changes.displayName = .set("민지")
    #expect(try await accounts.updateAccount(uid, changes).displayName == "민지")
    _ = try await accounts.session(forToken: session.token)
    await trial.clock.advance(by: .seconds(1))
    changes = AccountChanges()
    changes.password = .set("bamboo lamp")
    let changed = try await accounts.updateAccount(uid, changes)
    #expect(changed.displayName == "민지")
    #expect(changed.tokensValidAfterTime != session.account.tokensValidAfterTime)
    #expect(
      await code { _ = try await accounts.session(forToken: session.token) } == .userTokenExpired)
    let again = try await accounts.signIn(withEmail: "a@b.kr", password: "bamboo lamp")
    changes.password = .remove
    #expect(try await !accounts.updateAccount(uid, changes).hasPassword)
    #expect(
      await code { _ = try await accounts.session(forToken: again.token) } == .userTokenExpired)
    #expect(
      await code { _ = try await accounts.signIn(withEmail: "a@b.kr", password: "bamboo lamp") }
        == .invalidCredential)
    // An address that an administrator confirms, removes and replaces.
    changes = AccountChanges()
    changes.isEmailVerified = true
    #expect(try await accounts.updateAccount(uid, changes).isEmailVerified)
    changes = AccountChanges()
    changes.email = .set("c@b.kr")
    #expect(try await !accounts.updateAccount(uid, changes).isEmailVerified)
    changes.email = .set("d@b.kr")
    changes.isEmailVerified = true
    #expect(try await accounts.updateAccount(uid, changes).isEmailVerified)
    changes = AccountChanges()
    changes.email = .remove
    let bare = try await accounts.updateAccount(uid, changes)
    #expect(bare.email == nil && !bare.isEmailVerified)
    #expect(try await accounts.findAccount(.email("d@b.kr")) == nil)
    _ = try await accounts.createUser(withEmail: "d@b.kr", password: Trial.password)
    try await database.close()
  }

  @Test func `Pages show each account once, in order, whatever is deleted between them`()
    async throws
  {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    var random = SeededRandom(seed: 1)
    var uids: [String] = []
    for number in 0..<57 {
      let uid = "\(random.pick(["a", "Z", "한", "é", "~"]))\(number)"
      _ = try await accounts.createAccount(NewAccount(uid: uid))
      uids.append(uid)
    }
    uids.sort { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    for limit in [1, 2, 10, 56, 57, 58, 1_000] {
      var (seen, token, pages): ([String], String?, Int) = ([], nil, 0)
      repeat {
        let page = try await accounts.listAccounts(limit: limit, pageToken: token)
        seen += page.accounts.map(\.uid)
        token = page.nextPageToken
        pages += 1
      } while token != nil
      #expect(seen == uids, "limit \(limit)")
      #expect(pages == (uids.count + limit - 1) / limit, "limit \(limit)")
    }
    // The account at which a token was made may be deleted.
    let page = try await accounts.listAccounts(limit: 5)
    try await accounts.deleteAccount(uids[4])
    let rest = try await accounts.listAccounts(pageToken: page.nextPageToken)
    #expect(rest.accounts.map(\.uid) == Array(uids[5...]))
    #expect(rest.nextPageToken == nil)
    for limit in [0, -1, 1_001, .max, .min] {
      #expect(await code { _ = try await accounts.listAccounts(limit: limit) } == .invalidCount)
    }
    let foreign = try await database.collection("accounts").order(by: "createdAt").limit(to: 1)
      .getDocuments().cursor?.description
    let changed = (page.nextPageToken ?? "") + "A"
    for token in ["", " ", "x", "AAAA", try #require(foreign), changed] {
      #expect(
        await code { _ = try await accounts.listAccounts(pageToken: token) } == .invalidPageToken,
        "\(token)")
    }
    try await database.close()
  }

  @Test func `Many are deleted with all of their data, and missing ones count as deleted`()
    async throws
  {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    var uids: [String] = []
    for number in 0..<5 {
      let session = try await accounts.createUser(
        withEmail: "\(number)@b.kr", password: Trial.password, profile: ["name": "\(number)"],
        picture: [UInt8(number)])
      uids.append(session.account.uid)
      let mine = accounts.privateDatabase(for: session)
      let photo = try await mine.put([9, UInt8(number)] as [UInt8])
      try await mine.document("notes/one").setData(["photo": photo])
    }
    let kept = uids.removeLast()
    let result = try await accounts.deleteAccounts(uids + ["nobody", "a/b"])
    #expect(result.successCount == 5)
    #expect(result.failures.map(\.index) == [5])
    #expect(try await accounts.listAccounts().accounts.map(\.uid) == [kept])
    #expect(try await database.collection("users").getDocuments().documents.count == 1)
    #expect(try await database.collection("accountSessions").getDocuments().count == 1)
    for uid in uids {
      let notes = database.collection("privateData").document(uid).collection("notes")
      #expect(try await notes.getDocuments().isEmpty)
    }
    #expect(try await database.storage.statistics().heldBytes == 3)
    #expect(
      await code {
        _ = try await accounts.deleteAccounts(Array(repeating: "a", count: 1_001))
      } == .invalidCount)
    #expect(
      await code {
        _ = try await accounts.findAccounts(Array(repeating: .uid("a"), count: 101))
      } == .invalidCount)
    try await database.close()
  }

  @Test func `Deleting is whole or absent after any power cut`() async throws {
    func person(_ trial: Trial) async throws -> (Accounts, String) {
      let accounts = try await trial.accounts(in: try await trial.database())
      let session = try await accounts.createUser(
        withEmail: "a@b.kr", password: Trial.password, profile: ["name": "민지"],
        picture: [1, 2, 3] as [UInt8])
      try await accounts.privateDatabase(for: session).document("notes/one").setData(["a": 1])
      return (accounts, session.account.uid)
    }
    let first = Trial()
    let (untouched, one) = try await person(first)
    let before = first.device.operations
    try await untouched.deleteAccount(one)
    let needed = first.device.operations - before
    for step in 0..<needed {
      let trial = Trial(seed: UInt64(step + 1))
      let (accounts, uid) = try await person(trial)
      trial.device.powerCut(after: step)
      try? await accounts.deleteAccount(uid)
      trial.device.powerCut()
      let database = try await trial.database()
      let people = try await database.collection("accounts").getDocuments().count
      #expect(try await database.collection("users").getDocuments().count == people, "\(step)")
      let notes = database.collection("privateData").document(uid).collection("notes")
      #expect(try await notes.getDocuments().count == people, "\(step)")
      let sessions = try await database.collection("accountSessions").getDocuments().count
      #expect(sessions == people, "\(step)")
      try await database.close()
    }
  }

  @Test func `Accounts made at once with one uid, address or number are one`() async throws {
    for seed in Seeds.first(6) {
      let trial = Trial(seed: seed)
      let database = try await trial.database()
      let accounts = try await trial.accounts(in: database)
      let codes = await withTaskGroup(of: AuthErrorCode?.self) { group in
        for number in 0..<9 {
          group.addTask {
            await code {
              var new = NewAccount(uid: number % 3 == 0 ? "same" : "\(number)")
              new.email = number % 3 == 1 ? "same@b.kr" : nil
              new.phoneNumber = number % 3 == 2 ? "+8210" : nil
              _ = try await accounts.createAccount(new)
            }
          }
        }
        return await group.reduce(into: [AuthErrorCode?]()) { $0.append($1) }
      }
      #expect(codes.count { $0 == nil } == 3, "seed \(seed)")
      for refusal in [
        AuthErrorCode.uidAlreadyInUse, .emailAlreadyInUse, .credentialAlreadyInUse,
      ] {
        #expect(codes.count { $0 == refusal } == 2, "seed \(seed)")
      }
      #expect(try await accounts.listAccounts().accounts.count == 3, "seed \(seed)")
      try await database.close()
    }
  }
}
