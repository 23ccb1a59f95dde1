// An identity at another service leads to one account, and to the same one after restarts, races
// and imports. It does not take over an account by its address.

import Ondol
import OndolAccounts
import OndolTestKit
import Testing

@Suite struct IdentityTests {
  private static let email = "minji@example.com"

  private static func identity(
    _ uid: String, _ provider: String = "one.example", email: String? = nil
  ) -> LinkedIdentity {
    var identity = LinkedIdentity(provider: provider, uid: uid)
    identity.email = email
    return identity
  }

  @Test func `An identity of another service has one account, and finds it`()
    async throws
  {
    let trial = Trial()
    var database = try await trial.database()
    var accounts = try await trial.accounts(in: database)
    var minji = Self.identity("m-1", email: "Minji@Example.com")
    minji.displayName = "김민지"
    minji.photoURL = "https://one.example/m-1.png"
    let first = try await accounts.signIn(with: minji, isEmailVerified: true)
    #expect(first.isNewUser && first.provider.rawValue == "one.example")
    #expect(first.account.email == "Minji@Example.com" && first.account.isEmailVerified)
    #expect(first.account.displayName == "김민지" && !first.account.isAnonymous)
    #expect(first.account.photoURL == minji.photoURL && !first.account.hasPassword)
    trial.device.powerCut()
    database = try await trial.database()
    accounts = try await trial.accounts(in: database)
    // Later data from the service belongs to the identity, and the account's own stays.
    minji.displayName = "Minji"
    minji.email = "new@one.example"
    let again = try await accounts.signIn(with: minji)
    #expect(again.account.uid == first.account.uid && !again.isNewUser)
    #expect(again.account.displayName == "김민지" && again.account.email == "Minji@Example.com")
    #expect(again.account.identities == [minji])
    let found = try await accounts.findAccounts([
      .identity(provider: "two.example", uid: "m-1"),
      .identity(provider: "one.example", uid: "m-2"),
      .identity(provider: "one.example", uid: "m-1"),
      .email(Self.email),
    ])
    #expect(found.map(\.uid) == [first.account.uid])
    try await database.close()
  }

  @Test func `An address alone takes no account over`() async throws {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    let session = try await accounts.createUser(withEmail: Self.email, password: Trial.password)
    let minji = Self.identity("m-1", email: Self.email)
    for isVerified in [false, true] {
      #expect(
        await code { _ = try await accounts.signIn(with: minji, isEmailVerified: isVerified) }
          == .accountExistsWithDifferentCredential)
    }
    let linked = try await accounts.link(token: session.token, with: minji)
    #expect(linked.account.identities == [minji] && !linked.account.isEmailVerified)
    #expect(try await accounts.signIn(with: minji).account.uid == session.account.uid)
    // Another identity at the same service, and another person's.
    #expect(
      await code {
        _ = try await accounts.link(token: session.token, with: Self.identity("m-2"))
      } == .providerAlreadyLinked)
    let guest = try await accounts.signInAnonymously()
    #expect(
      await code { _ = try await accounts.link(token: guest.token, with: minji) }
        == .credentialAlreadyInUse)
    let own = try await accounts.link(
      token: guest.token, with: Self.identity("m-1", "two.example"))
    #expect(!own.account.isAnonymous)
    #expect(
      await code {
        _ = try await accounts.unlink(token: session.token, fromProvider: "two.example")
      } == .noSuchProvider)
    let without = try await accounts.unlink(token: session.token, fromProvider: "one.example")
    #expect(without.account.identities.isEmpty)
    _ = try await accounts.link(
      token: own.token, with: Self.identity("m-1"))
    await trial.clock.advance(by: .seconds(301))
    #expect(
      await code {
        _ = try await accounts.unlink(token: own.token, fromProvider: "one.example")
      } == .requiresRecentLogin)
    try await database.close()
  }

  @Test func `A device signs in by another service, links one and takes it away`() async throws {
    let trial = Trial()
    let database = try await trial.database()
    let auth = try await Auth.open(
      try await trial.accounts(in: database), tokens: MemoryTokenStore())
    let user = try await auth.signIn(with: Self.identity("m-1", email: Self.email))
    #expect(auth.currentUser == user && user.email == Self.email)
    let linked = try await user.link(with: Self.identity("m", "two.example"))
    #expect(linked.account.identities.map(\.provider) == ["one.example", "two.example"])
    let without = try await linked.unlink(fromProvider: "one.example")
    #expect(auth.currentUser == without && without.account.identities.map(\.uid) == ["m"])
    #expect(try await auth.signIn(with: Self.identity("m", "two.example")).uid == user.uid)
    try await database.close()
  }

  @Test func `Concurrent sign-ins and links with one identity make one account`()
    async throws
  {
    for seed in Seeds.first(6) {
      let trial = Trial(seed: seed)
      let database = try await trial.database()
      let accounts = try await trial.accounts(in: database)
      let minji = Self.identity("m-1")
      var guests: [Session] = []
      for _ in 0..<4 { guests.append(try await accounts.signInAnonymously()) }
      let outcomes = await withTaskGroup(of: (String?, AuthErrorCode?).self) { group in
        for number in 0..<8 {
          let guest = number < 4 ? guests[number] : nil
          group.addTask {
            var session: Session?
            let found = await code {
              if let guest {
                session = try await accounts.link(token: guest.token, with: minji)
              } else {
                session = try await accounts.signIn(with: minji)
              }
            }
            return (session?.account.uid, found)
          }
        }
        return await group.reduce(into: [(String?, AuthErrorCode?)]()) { $0.append($1) }
      }
      let all = try await accounts.listAccounts().accounts
      let holders = all.filter { $0.identities == [minji] }
      #expect(holders.count == 1, "seed \(seed)")
      #expect(Set(outcomes.compactMap(\.0)) == Set(holders.map(\.uid)), "seed \(seed)")
      #expect(
        outcomes.allSatisfy { $0.1 == nil || $0.1 == .credentialAlreadyInUse }, "seed \(seed)")
      try await database.close()
    }
  }

  @Test func `An administrator links, unlinks and imports identities`() async throws {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    var new = NewAccount(uid: "minji")
    new.identities = [
      Self.identity("m-0"), Self.identity("m-1"), Self.identity("m", "two.example"),
    ]
    #expect(try await accounts.createAccount(new).identities.map(\.uid) == ["m-1", "m"])
    for (provider, uid) in [("one.example", "m-1"), ("two.example", "m")] {
      let found = try await accounts.findAccount(.identity(provider: provider, uid: uid))
      #expect(found?.uid == "minji")
    }
    var changes = AccountChanges()
    changes.unlinkedProviders = ["two.example", "three.example"]
    changes.linkedIdentities = [Self.identity("m-2")]
    #expect(try await accounts.updateAccount("minji", changes).identities.map(\.uid) == ["m-2"])
    #expect(
      try await accounts.findAccount(.identity(provider: "one.example", uid: "m-1")) == nil)
    var hajun = ImportedAccount(uid: "hajun")
    hajun.identities = [Self.identity("h"), Self.identity("m", "two.example")]
    var thief = ImportedAccount(uid: "thief")
    thief.identities = [Self.identity("m-2")]
    var double = ImportedAccount(uid: "double")
    double.identities = [Self.identity("h")]
    let result = try await accounts.importAccounts([hajun, thief, double])
    #expect(result.failures.map(\.index) == [1, 2])
    #expect(result.failures.allSatisfy { $0.error.code == .credentialAlreadyInUse })
    #expect(try await accounts.signIn(with: Self.identity("h")).account.uid == "hajun")
    new.uid = "other"
    new.identities = [Self.identity("m-2")]
    let other = new
    #expect(
      await code { _ = try await accounts.createAccount(other) } == .credentialAlreadyInUse)
    try await accounts.deleteAccount("minji")
    _ = try await accounts.createAccount(other)
    try await database.close()
  }

  @Test(arguments: [
    ("", "a"), ("one.example", ""), ("one example", "a"), ("one\nexample", "a"),
    ("한.example", "a"), ("password", "a"), ("anonymous", "a"), ("one.example", "a\n"),
    (String(repeating: "a", count: 129), "a"), ("one.example", String(repeating: "a", count: 257)),
  ])
  func `An identity without a service or a person is refused`(
    _ provider: String, _ uid: String
  ) async throws {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    let identity = LinkedIdentity(provider: provider, uid: uid)
    let guest = try await accounts.signInAnonymously()
    let calls: [@Sendable () async throws -> Void] = [
      { _ = try await accounts.signIn(with: identity) },
      { _ = try await accounts.link(token: guest.token, with: identity) },
      { _ = try await accounts.findAccount(.identity(provider: provider, uid: uid)) },
    ]
    for call in calls { #expect(await code(call) == .invalidIdentity) }
    try await database.close()
  }
}
