// A disabled account is disabled at once and everywhere. Revoking ends existing sessions and no
// later ones. Races and power cuts leave no session that should have ended.

import Ondol
import OndolAccounts
import OndolTestKit
import Testing

@Suite struct DisablingTests {
  private static let email = "minji@example.com"

  private static func disabled(_ isDisabled: Bool) -> AccountChanges {
    var changes = AccountChanges()
    changes.isDisabled = isDisabled
    return changes
  }

  @Test func `A disabled account refuses every sign-in, and only its owner learns why`()
    async throws
  {
    let trial = Trial()
    let database = try await trial.database()
    let letters = Letters()
    let accounts = try await trial.accounts(in: database) { $0.sendCode = letters.send }
    let session = try await accounts.createUser(withEmail: Self.email, password: Trial.password)
    let uid = session.account.uid
    let recovery = try #require(
      try await accounts.generateRecoveryCodes(token: session.token).first)
    try await accounts.sendEmailVerification(token: session.token)
    let verification = try await letters.next()
    try await accounts.sendPasswordReset(withEmail: Self.email)
    let reset = try await letters.next()
    #expect(try await accounts.updateAccount(uid, Self.disabled(true)).isDisabled)

    let calls: [@Sendable () async throws -> Void] = [
      { _ = try await accounts.signIn(withEmail: Self.email, password: Trial.password) },
      { _ = try await accounts.session(forToken: session.token) },
      { try await accounts.reauthenticate(token: session.token, password: Trial.password) },
      { _ = try await accounts.updateEmail(token: session.token, to: "a@b.kr") },
      { _ = try await accounts.updatePassword(token: session.token, to: "bamboo lamp") },
      { try await accounts.delete(token: session.token) },
      { try await accounts.sendEmailVerification(token: session.token) },
      { try await accounts.applyActionCode(verification) },
      { _ = try await accounts.confirmPasswordReset(withCode: reset, newPassword: "bamboo lamp") },
      { _ = try await accounts.checkActionCode(reset) },
      {
        _ = try await accounts.resetPassword(
          withEmail: Self.email, recoveryCode: recovery, newPassword: "bamboo lamp")
      },
      { _ = try await accounts.signIn(withUID: uid) },
      { _ = try await accounts.makeActionCode(.passwordReset, forEmail: Self.email) },
    ]
    for (number, call) in calls.enumerated() {
      #expect(await code(call) == .userDisabled, "call \(number)")
    }
    // None of this was used up, but the session has ended permanently.
    try await accounts.updateAccount(uid, Self.disabled(false))
    #expect(
      await code { _ = try await accounts.session(forToken: session.token) } == .userTokenExpired)
    _ = try await accounts.signIn(withEmail: Self.email, password: Trial.password)
    #expect(try await accounts.applyActionCode(verification).isEmailVerified)
    _ = try await accounts.confirmPasswordReset(withCode: reset, newPassword: "bamboo lamp")
    try await database.close()
  }

  @Test func `A guesser does not learn that an account is disabled, and its data is closed`()
    async throws
  {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    let session = try await accounts.createUser(withEmail: Self.email, password: Trial.password)
    let mine = accounts.privateDatabase(for: session)
    try await mine.document("notes/one").setData(["a": 1])
    try await accounts.updateAccount(session.account.uid, Self.disabled(true))
    #expect(
      await code { _ = try await accounts.signIn(withEmail: Self.email, password: "bamboo lamp") }
        == .invalidCredential)
    #expect(
      await databaseCode { try await mine.document("notes/one").setData(["a": 2]) }
        == .unauthenticated)
    #expect(
      await databaseCode { _ = try await mine.document("notes/one").getDocument() }
        == .unauthenticated)
    try await database.close()
  }

  @Test func `A device is signed out when its account is disabled`() async throws {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    let tokens = MemoryTokenStore()
    let auth = try await Auth.open(accounts, tokens: tokens)
    let user = try await auth.createUser(withEmail: Self.email, password: Trial.password)
    let token = tokens.load()
    var changes = auth.authStateChanges.makeAsyncIterator()
    #expect(await changes.next()??.uid == user.uid)
    try await accounts.updateAccount(user.uid, Self.disabled(true))
    #expect(await changes.next() == .some(nil))
    #expect(tokens.load() == nil)
    // A token that was kept elsewhere does not prevent a start.
    tokens.save(token)
    let later = try await Auth.open(accounts, tokens: tokens)
    #expect(later.currentUser == nil)
    #expect(tokens.load() == nil)
    try await database.close()
  }

  @Test func `Revoking ends all sessions in one commit, and those that come after stand`()
    async throws
  {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    let first = try await accounts.createUser(withEmail: Self.email, password: Trial.password)
    let uid = first.account.uid
    #expect(first.account.tokensValidAfterTime == first.account.creationTime)
    var sessions = [first]
    for _ in 0..<4 {
      sessions.append(try await accounts.signIn(withEmail: Self.email, password: Trial.password))
    }
    let other = try await accounts.createUser(withEmail: "a@b.kr", password: Trial.password)
    let stored = try await database.collection("accountSessions").getDocuments().documents
    await trial.clock.advance(by: .seconds(10))
    let account = try await accounts.revokeSessions(of: uid)
    #expect(
      account.tokensValidAfterTime.microsecondsSince1970
        == account.creationTime.microsecondsSince1970 + 10_000_000)
    for session in sessions {
      #expect(
        await code { _ = try await accounts.session(forToken: session.token) }
          == .userTokenExpired)
    }
    _ = try await accounts.session(forToken: other.token)
    #expect(try await database.collection("accountSessions").getDocuments().count == 1)
    // At the same moment, and a token restored from a copy.
    let next = try await accounts.signIn(withEmail: Self.email, password: Trial.password)
    for document in stored { try await document.reference.setData(document.data()) }
    for session in sessions {
      #expect(
        await code { _ = try await accounts.session(forToken: session.token) }
          == .userTokenExpired)
    }
    #expect(try await accounts.session(forToken: next.token).account.uid == uid)
    #expect(await code { try await accounts.revokeSessions(of: "nobody") } == .userNotFound)
    try await database.close()
  }

  @Test func `A wrong clock ends no session that begins after it was set right`() async throws {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    let session = try await accounts.createUser(withEmail: Self.email, password: Trial.password)
    try await accounts.revokeSessions(of: session.account.uid)
    let stored = database.collection("accounts").document(session.account.uid)
    try await stored.updateData(["tokensValidAfter": Timestamp.maximum])
    let next = try await accounts.signIn(withEmail: Self.email, password: Trial.password)
    _ = try await accounts.session(forToken: next.token)
    try await database.close()
  }

  @Test func `Sign-ins that race with disabling or revoking leave no session that stands`()
    async throws
  {
    for seed in Seeds.first(6) {
      for revokes in [false, true] {
        let trial = Trial(seed: seed)
        let database = try await trial.database()
        let accounts = try await trial.accounts(in: database)
        let uid = try await accounts.createUser(
          withEmail: Self.email, password: Trial.password
        ).account.uid
        let sessions = await withTaskGroup(of: Session?.self) { group in
          for _ in 0..<6 {
            group.addTask {
              try? await accounts.signIn(withEmail: Self.email, password: Trial.password)
            }
          }
          group.addTask {
            if revokes {
              _ = try? await accounts.revokeSessions(of: uid)
            } else {
              _ = try? await accounts.updateAccount(uid, Self.disabled(true))
            }
            return nil
          }
          return await group.reduce(into: [Session]()) { $0 += $1.map { [$0] } ?? [] }
        }
        let stored = try await database.collection("accountSessions").getDocuments().documents
        for session in sessions {
          let found = await code { _ = try await accounts.session(forToken: session.token) }
          // A session that began after the revocation is valid.
          #expect(
            revokes ? found == nil || found == .userTokenExpired : found == .userDisabled,
            "seed \(seed)")
        }
        if !revokes {
          #expect(stored.allSatisfy { $0["isSuspended"] as Bool? == true }, "seed \(seed)")
        }
        try await database.close()
      }
    }
  }

  @Test func `Disabling and revoking are whole or absent after any power cut`() async throws {
    func people(_ trial: Trial) async throws -> (Accounts, [Session]) {
      let accounts = try await trial.accounts(in: try await trial.database())
      var sessions = [
        try await accounts.createUser(withEmail: Self.email, password: Trial.password)
      ]
      for _ in 0..<2 {
        sessions.append(try await accounts.signIn(withEmail: Self.email, password: Trial.password))
      }
      return (accounts, sessions)
    }
    func act(_ accounts: Accounts, _ uid: String, _ revokes: Bool) async throws {
      if revokes {
        try await accounts.revokeSessions(of: uid)
      } else {
        try await accounts.updateAccount(uid, Self.disabled(true))
      }
    }
    for revokes in [false, true] {
      let first = Trial()
      let (untouched, some) = try await people(first)
      let before = first.device.operations
      try await act(untouched, some[0].account.uid, revokes)
      let needed = first.device.operations - before
      for step in 0..<needed {
        let trial = Trial(seed: UInt64(step + 1))
        let (accounts, sessions) = try await people(trial)
        trial.device.powerCut(after: step)
        try? await act(accounts, sessions[0].account.uid, revokes)
        trial.device.powerCut()
        let database = try await trial.database()
        let again = try await trial.accounts(in: database)
        var found: Set<AuthErrorCode?> = []
        for session in sessions {
          found.insert(await code { _ = try await again.session(forToken: session.token) })
        }
        #expect(found == [nil] || found == [revokes ? .userTokenExpired : .userDisabled], "\(step)")
        try await database.close()
      }
    }
  }
}

/// The sent codes, for tests that wait for them.
struct Letters: Sendable {
  private let codes: AsyncStream<String>
  private let continuation: AsyncStream<String>.Continuation

  init() { (codes, continuation) = AsyncStream.makeStream(of: String.self) }

  func next() async throws -> String {
    var iterator = codes.makeAsyncIterator()
    return try #require(await iterator.next())
  }

  var send: Accounts.Options.CodeSender {
    { [continuation] _, _, code in continuation.yield(code) }
  }
}
