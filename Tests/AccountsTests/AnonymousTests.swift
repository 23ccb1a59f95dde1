// An anonymous user keeps everything when they get an address: the uid stays, one of two users who
// want an address gets it, and no power cut leaves half a link.

import Ondol
import OndolAccounts
import OndolTestKit
import Testing

@Suite struct AnonymousTests {
  private static let email = "minji@example.com"

  @Test func `An anonymous account becomes its owner's, with the uid and all that it has`()
    async throws
  {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    let guest = try await accounts.signInAnonymously()
    #expect(guest.account.isAnonymous)
    #expect(guest.account.email == nil)
    #expect(!guest.account.hasPassword)
    #expect(guest.provider == .anonymous && guest.isNewUser)
    #expect(try await accounts.session(forToken: guest.token).provider == .anonymous)
    let notes = accounts.privateDatabase(for: guest)
    try await notes.document("notes/one").setData(["text": "buy tea"])

    await trial.clock.advance(by: .seconds(86_400))
    let linked = try await accounts.link(
      token: guest.token, withEmail: Self.email, password: Trial.password)
    #expect(linked.account.uid == guest.account.uid)
    #expect(!linked.account.isAnonymous)
    #expect(linked.account.email == Self.email)
    #expect(!linked.account.isEmailVerified)
    #expect(linked.provider == .password)
    // The session continues, and the password was given just now.
    let known = try await accounts.session(forToken: guest.token)
    #expect(known.account == linked.account && !known.isNewUser && !linked.isNewUser)
    #expect(known.authenticationTime == linked.authenticationTime)
    #expect(known.authenticationTime != guest.authenticationTime)
    let session = try await accounts.signIn(withEmail: Self.email, password: Trial.password)
    #expect(session.account.uid == guest.account.uid)
    let stored = try await accounts.privateDatabase(for: session).document("notes/one")
      .getDocument()
    #expect(stored["text"] as String? == "buy tea")
    // Once.
    #expect(
      await code {
        _ = try await accounts.link(
          token: guest.token, withEmail: "other@example.com", password: Trial.password)
      } == .providerAlreadyLinked)
    try await database.close()
  }

  @Test func `Each anonymous sign-in is another account, without an address or a password`()
    async throws
  {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    var uids: Set<String> = []
    for _ in 0..<20 { uids.insert(try await accounts.signInAnonymously().account.uid) }
    #expect(uids.count == 20)
    #expect(trial.runs.take().isEmpty)
    #expect(try await accounts.addressConflicts().isEmpty)
    let guest = try await accounts.signInAnonymously()
    let refusals = await [
      code { _ = try await accounts.updatePassword(token: guest.token, to: "bamboo lamp") },
      code { try await accounts.sendEmailVerification(token: guest.token) },
      code { try await accounts.reauthenticate(token: guest.token, password: "bamboo lamp") },
      code {
        _ = try await accounts.link(token: guest.token, withEmail: "a@b.kr", password: "password")
      },
      code {
        _ = try await accounts.link(token: guest.token, withEmail: "a b", password: Trial.password)
      },
    ]
    #expect(
      refusals == [
        .missingEmail, .operationNotAllowed, .operationNotAllowed, .weakPassword, .invalidEmail,
      ])
    // Its token is all it has, however old it is.
    await trial.clock.advance(by: .seconds(86_400))
    try await accounts.delete(token: guest.token)
    #expect(
      await code { _ = try await accounts.session(forToken: guest.token) } == .userTokenExpired)
    try await database.close()
  }

  @Test func `An origin has a limit of guests, and its users still sign in`()
    async throws
  {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database) { $0.maximumGuestsOfOrigin = 7 }
    _ = try await accounts.createUser(withEmail: Self.email, password: Trial.password)
    let codes = await withTaskGroup(of: AuthErrorCode?.self) { group in
      for _ in 0..<20 {
        group.addTask {
          await code { _ = try await accounts.signInAnonymously(origin: "192.0.2.1") }
        }
      }
      return await group.reduce(into: [AuthErrorCode?]()) { $0.append($1) }
    }
    #expect(codes.count { $0 == nil } == 7)
    #expect(codes.count { $0 == .tooManyRequests } == 13)
    #expect(try await accounts.countAccounts() == 8)
    _ = try await accounts.signInAnonymously(origin: "192.0.2.2")
    _ = try await accounts.signInAnonymously()
    _ = try await accounts.signIn(
      withEmail: Self.email, password: Trial.password, origin: "192.0.2.1")
    await trial.clock.advance(by: .seconds(900))
    _ = try await accounts.signInAnonymously(origin: "192.0.2.1")
    try await database.close()
  }

  @Test func `Of links and sign-ups that race for an address one wins, and the others stay guests`()
    async throws
  {
    for seed in Seeds.first(8) {
      let trial = Trial(seed: seed)
      let database = try await trial.database()
      let accounts = try await trial.accounts(in: database)
      var guests: [Session] = []
      for _ in 0..<6 { guests.append(try await accounts.signInAnonymously()) }
      let codes = await withTaskGroup(of: AuthErrorCode?.self) { group in
        for guest in guests {
          group.addTask {
            await code {
              _ = try await accounts.link(
                token: guest.token, withEmail: "Race@example.com", password: Trial.password)
            }
          }
        }
        for _ in 0..<3 {
          group.addTask {
            await code {
              _ = try await accounts.createUser(
                withEmail: "race@Example.com", password: Trial.password)
            }
          }
        }
        return await group.reduce(into: [AuthErrorCode?]()) { $0.append($1) }
      }
      #expect(codes.count { $0 == nil } == 1, "seed \(seed)")
      #expect(codes.count { $0 == .emailAlreadyInUse } == 8, "seed \(seed)")
      let all = try await accounts.listAccounts().accounts
      #expect(all.count { $0.email != nil } == 1, "seed \(seed)")
      #expect(all.filter { $0.email == nil }.allSatisfy { $0.isAnonymous && !$0.hasPassword })
      try await database.close()
    }
  }

  @Test func `Of two links of one account one wins, with its own address and password`()
    async throws
  {
    for seed in Seeds.first(8) {
      let trial = Trial(seed: seed)
      let database = try await trial.database()
      let accounts = try await trial.accounts(in: database)
      let guest = try await accounts.signInAnonymously()
      let codes = await withTaskGroup(of: (Int, AuthErrorCode?).self) { group in
        for number in 0..<4 {
          group.addTask {
            let found = await code {
              _ = try await accounts.link(
                token: guest.token, withEmail: "\(number)@example.com",
                password: "rattan lamp \(number)")
            }
            return (number, found)
          }
        }
        return await group.reduce(into: [(Int, AuthErrorCode?)]()) { $0.append($1) }
      }
      let winners = codes.filter { $0.1 == nil }.map(\.0)
      #expect(winners.count == 1, "seed \(seed)")
      #expect(codes.count { $0.1 == .providerAlreadyLinked } == 3, "seed \(seed)")
      let winner = try #require(winners.first)
      let session = try await accounts.signIn(
        withEmail: "\(winner)@example.com", password: "rattan lamp \(winner)")
      #expect(session.account.uid == guest.account.uid, "seed \(seed)")
      try await database.close()
    }
  }

  @Test func `A link is whole or absent after any power cut`() async throws {
    func guest(_ trial: Trial) async throws -> (Accounts, Session) {
      let accounts = try await trial.accounts(in: try await trial.database())
      return (accounts, try await accounts.signInAnonymously())
    }
    let first = Trial()
    let (untouched, one) = try await guest(first)
    let before = first.device.operations
    _ = try await untouched.link(
      token: one.token, withEmail: Self.email, password: Trial.password)
    let needed = first.device.operations - before
    #expect(needed > 0)
    for step in 0..<needed {
      let trial = Trial(seed: UInt64(step + 1))
      let (accounts, session) = try await guest(trial)
      trial.device.powerCut(after: step)
      _ = try? await accounts.link(
        token: session.token, withEmail: Self.email, password: Trial.password)
      trial.device.powerCut()
      let database = try await trial.database()
      let again = try await trial.accounts(in: database)
      let account = try await again.session(forToken: session.token).account
      #expect(account.isAnonymous == (account.email == nil), "\(step)")
      #expect(account.isAnonymous == !account.hasPassword, "\(step)")
      let found = await code {
        _ = try await again.signIn(withEmail: Self.email, password: Trial.password)
      }
      #expect(found == (account.isAnonymous ? .invalidCredential : nil), "\(step)")
      try await database.close()
    }
  }

  @Test func `A device stays the same guest until it links, and keeps its uid afterwards`()
    async throws
  {
    let trial = Trial()
    let database = try await trial.database()
    let auth = try await Auth.open(
      try await trial.accounts(in: database), tokens: MemoryTokenStore())
    let guest = try await auth.signInAnonymously()
    #expect(guest.isAnonymous)
    #expect(try await auth.signInAnonymously() == guest)
    #expect("\(guest)" == "User(uid: \(guest.uid), email: none)")
    try await guest.updateProfile(
      displayName: .set("민지"), photoURL: .set("https://example.com/minji.png"))
    #expect(auth.currentUser?.displayName == "민지")
    #expect(auth.currentUser?.photoURL == "https://example.com/minji.png")
    try await auth.currentUser?.updateProfile(photoURL: .remove)
    #expect(auth.currentUser?.photoURL == nil)
    #expect(
      await code { try await guest.updateProfile(displayName: .set("two\nlines")) }
        == .invalidDisplayName)
    #expect(
      await code { try await guest.updateProfile(photoURL: .set("javascript:alert(1)")) }
        == .invalidPhotoURL)
    let user = try await guest.link(withEmail: Self.email, password: Trial.password)
    #expect(user.uid == guest.uid)
    #expect(auth.currentUser == user)
    #expect(user.displayName == "민지")
    // A user with a password is no longer a guest.
    #expect(try await auth.signInAnonymously().uid != guest.uid)
    try await database.close()
  }

  @Test func `An address without a password belongs to its account, and only mail leads back`()
    async throws
  {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    let guest = try await accounts.signInAnonymously()
    let changed = try await accounts.updateEmail(token: guest.token, to: Self.email)
    #expect(!changed.account.isAnonymous)
    #expect(!changed.account.hasPassword)
    _ = trial.runs.take()
    // Such an account has no valid password, and finding that out costs as much as a wrong one.
    #expect(
      await code {
        _ = try await accounts.signIn(withEmail: Self.email, password: Trial.password)
      } == .invalidCredential)
    #expect(trial.runs.take() == [Trial.cheap])
    #expect(
      await code {
        _ = try await accounts.createUser(withEmail: Self.email, password: Trial.password)
      } == .emailAlreadyInUse)
    // Linking needs a recent sign-in: the account is more than its token.
    await trial.clock.advance(by: .seconds(301))
    #expect(
      await code {
        _ = try await accounts.link(
          token: guest.token, withEmail: Self.email, password: Trial.password)
      } == .requiresRecentLogin)
    try await database.close()
  }
}
