// Attacks fail: guesses, tokens that were changed, stolen or kept too long, and reading the
// database.

import Ondol
import OndolAccounts
import OndolTestKit
import Testing

@Suite struct AttackTests {
  private static let email = "minji@example.com"

  @Test func `Ten thousand guesses at once are ten, and the right one is not among the rest`()
    async throws
  {
    let trial = Trial()
    var database = try await trial.database()
    var accounts = try await trial.accounts(in: database)
    _ = try await accounts.createUser(withEmail: Self.email, password: Trial.password)
    _ = trial.runs.take()
    let guesses = 10_000
    let codes = await withTaskGroup(of: [AuthErrorCode?].self) { group in
      // In hundreds, each of them one after another.
      for first in stride(from: 0, to: guesses, by: 100) {
        group.addTask { [accounts] in
          var codes: [AuthErrorCode?] = []
          for number in first..<(first + 100) {
            codes.append(
              await code {
                _ = try await accounts.signIn(withEmail: Self.email, password: "guess \(number)")
              })
          }
          return codes
        }
      }
      return await group.reduce(into: []) { $0 += $1 }
    }
    #expect(codes.count == guesses)
    #expect(codes.count { $0 == .invalidCredential } == 10)
    #expect(codes.count { $0 == .tooManyRequests } == guesses - 10)
    #expect(trial.runs.take().count == 10)

    // Not even the right one works, and not after a restart either.
    trial.device.powerCut()
    database = try await trial.database()
    accounts = try await trial.accounts(in: database)
    do {
      _ = try await accounts.signIn(withEmail: Self.email, password: Trial.password)
      Issue.record("signed in behind ten failures")
    } catch {
      #expect(error.code == .tooManyRequests)
      #expect(error.retryAfter == .seconds(15 * 60))
    }
    #expect(trial.runs.take().isEmpty)

    await trial.clock.advance(by: .seconds(15 * 60 - 1))
    #expect(
      await code {
        _ = try await accounts.signIn(withEmail: Self.email, password: Trial.password)
      } == .tooManyRequests)
    await trial.clock.advance(by: .seconds(1))
    _ = try await accounts.signIn(withEmail: Self.email, password: Trial.password)
    try await database.close()
  }

  @Test func `Known and unknown addresses cost one run of scrypt with equal parameters`()
    async throws
  {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    _ = try await accounts.createUser(withEmail: Self.email, password: Trial.password)
    _ = trial.runs.take()
    var runs: [[PasswordHashing]] = []
    var messages: Set<String> = []
    for email in [Self.email, "nobody@example.com"] {
      do {
        _ = try await accounts.signIn(withEmail: email, password: "wrong password")
      } catch {
        messages.insert("\(error)")
      }
      runs.append(trial.runs.take())
    }
    #expect(runs == [[Trial.cheap], [Trial.cheap]])
    #expect(
      messages == ["\(AuthErrorCode.invalidCredential): the address or the password is wrong"])
    // A try of a code also costs the same, and gives the same answer.
    for email in [Self.email, "nobody@example.com"] {
      let found = await code {
        _ = try await accounts.resetPassword(
          withEmail: email, recoveryCode: "0000-0000-0000-0000", newPassword: "another lamp")
      }
      #expect(found == .invalidCredential)
      runs.append(trial.runs.take())
    }
    #expect(runs[2...] == [[Trial.cheap], [Trial.cheap]])
    try await database.close()
  }

  @Test func `Raised parameters are taken over at the next sign-in`() async throws {
    let trial = Trial()
    let database = try await trial.database()
    var accounts = try await trial.accounts(in: database)
    _ = try await accounts.createUser(withEmail: Self.email, password: Trial.password)
    accounts = try await trial.accounts(in: database, Trial.dearer)
    _ = trial.runs.take()
    _ = await code {
      _ = try await accounts.signIn(withEmail: Self.email, password: "wrong password")
    }
    #expect(trial.runs.take() == [Trial.cheap])
    _ = try await accounts.signIn(withEmail: Self.email, password: Trial.password)
    #expect(trial.runs.take() == [Trial.cheap, Trial.dearer])
    _ = try await accounts.signIn(withEmail: Self.email, password: Trial.password)
    #expect(trial.runs.take() == [Trial.dearer])
    // Lowered parameters change nothing.
    accounts = try await trial.accounts(in: database)
    _ = try await accounts.signIn(withEmail: Self.email, password: Trial.password)
    #expect(trial.runs.take() == [Trial.dearer])
    // While both exist, an unknown address costs what some known one does: one run of either.
    var decoys: Set<PasswordHashing> = []
    for number in 0..<64 {
      _ = await code {
        _ = try await accounts.signIn(
          withEmail: "\(number)@example.com", password: "wrong password")
      }
      let runs = trial.runs.take()
      #expect(runs.count == 1)
      decoys.formUnion(runs)
    }
    #expect(decoys == [Trial.cheap, Trial.dearer])
    try await database.close()
  }

  @Test func `A token with any letter changed is invalid`() async throws {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    let session = try await accounts.createUser(withEmail: Self.email, password: Trial.password)
    let letters = Array(session.token)
    for place in letters.indices {
      var tampered = letters
      tampered[place] = letters[place] == "A" ? "B" : "A"
      let found = await code { _ = try await accounts.session(forToken: String(tampered)) }
      #expect(found == .userTokenExpired || found == .invalidUserToken, "\(place)")
    }
    let digest = try await database.collection("accountSessions").getDocuments().documents
      .map(\.documentID)
    let hostile =
      digest + [
        "", "/", "../..", session.token + "=", " " + session.token,
        String(session.token.dropLast()),
        String(repeating: "A", count: 1 << 20), session.account.uid,
      ]
    for text in hostile {
      #expect(await code { _ = try await accounts.session(forToken: text) } == .invalidUserToken)
      #expect(await code { try await accounts.signOut(token: text) } == .invalidUserToken)
    }
    #expect(try await accounts.session(forToken: session.token).account == session.account)
    try await database.close()
  }

  @Test func `Sessions end when they are signed out, too old, or the password changes`()
    async throws
  {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database) {
      $0.sessionLifetime = .seconds(3_600)
      $0.recentSignIn = .seconds(7_200)
    }
    func isOver(_ session: Session) async -> Bool {
      await code { _ = try await accounts.session(forToken: session.token) } == .userTokenExpired
    }
    let first = try await accounts.createUser(withEmail: Self.email, password: Trial.password)
    let second = try await accounts.signIn(withEmail: Self.email, password: Trial.password)
    try await accounts.signOut(token: second.token)
    #expect(await isOver(second))
    #expect(await !isOver(first))

    let third = try await accounts.signIn(withEmail: Self.email, password: Trial.password)
    let changed = try await accounts.updatePassword(token: first.token, to: "another lamp")
    for session in [first, third] { #expect(await isOver(session)) }
    #expect(await !isOver(changed))
    #expect(
      await code {
        _ = try await accounts.signIn(withEmail: Self.email, password: Trial.password)
      } == .invalidCredential)
    #expect(try await database.collection("accountSessions").getDocuments().count == 1)

    await trial.clock.advance(by: .seconds(3_599))
    #expect(await !isOver(changed))
    await trial.clock.advance(by: .seconds(1))
    #expect(await isOver(changed))
    #expect(try await database.collection("accountSessions").getDocuments().isEmpty)
    try await database.close()
  }

  @Test func `A session restored after a change of the password has ended all the same`()
    async throws
  {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    let session = try await accounts.createUser(withEmail: Self.email, password: Trial.password)
    let stored = try #require(
      try await database.collection("accountSessions").getDocuments().documents.first)
    _ = try await accounts.updatePassword(token: session.token, to: "another lamp")
    try await stored.reference.setData(stored.data())
    #expect(
      await code { _ = try await accounts.session(forToken: session.token) } == .userTokenExpired)
    try await database.close()
  }

  @Test func `A token alone does not take an account over`() async throws {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    let session = try await accounts.createUser(withEmail: Self.email, password: Trial.password)
    await trial.clock.advance(by: .seconds(5 * 60))
    let before = try await trial.stored(database)
    let token = session.token
    let codes = await [
      code { _ = try await accounts.updateEmail(token: token, to: "thief@example.com") },
      code { _ = try await accounts.updatePassword(token: token, to: "another lamp") },
      code { _ = try await accounts.generateRecoveryCodes(token: token) },
      code { try await accounts.delete(token: token) },
    ]
    #expect(codes == Array(repeating: .requiresRecentLogin, count: 4))
    #expect(try await trial.stored(database) == before)
    #expect(
      await code { try await accounts.reauthenticate(token: token, password: "wrong password") }
        == .invalidCredential)
    try await accounts.reauthenticate(token: token, password: Trial.password)
    let changed = try await accounts.updateEmail(token: token, to: "minji@example.org")
    #expect(changed.account.email == "minji@example.org")
    try await database.close()
  }

  @Test func `A recovery code works once, and ends all sessions`() async throws {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    let session = try await accounts.createUser(withEmail: Self.email, password: Trial.password)
    let codes = try await accounts.generateRecoveryCodes(token: session.token)
    #expect(Set(codes).count == 8)
    let typed = codes[3].lowercased().replacing("-", with: " ")
    let recovered = try await accounts.resetPassword(
      withEmail: Self.email, recoveryCode: typed, newPassword: "another lamp")
    #expect(
      await code { _ = try await accounts.session(forToken: session.token) } == .userTokenExpired)
    #expect(
      await code {
        _ = try await accounts.resetPassword(
          withEmail: Self.email, recoveryCode: codes[3], newPassword: "third lamp")
      } == .invalidCredential)
    // New codes replace the old ones.
    _ = try await accounts.generateRecoveryCodes(token: recovered.token, count: 1)
    #expect(
      await code {
        _ = try await accounts.resetPassword(
          withEmail: Self.email, recoveryCode: codes[4], newPassword: "third lamp")
      } == .invalidCredential)
    // Guesses are counted.
    var found: AuthErrorCode?
    for _ in 0..<10 {
      found = await code {
        _ = try await accounts.resetPassword(
          withEmail: Self.email, recoveryCode: codes[0], newPassword: "third lamp")
      }
    }
    #expect(found == .tooManyRequests)
    try await database.close()
  }

  @Test func `Neither the database nor any printed text contains passwords, tokens or codes`()
    async throws
  {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    let session = try await accounts.createUser(withEmail: Self.email, password: Trial.password)
    let codes = try await accounts.generateRecoveryCodes(token: session.token)
    _ = await code {
      _ = try await accounts.signIn(withEmail: "other@example.com", password: "secret guess")
    }
    let auth = try await Auth.open(accounts, tokens: MemoryTokenStore())
    let user = try await auth.signIn(withEmail: Self.email, password: Trial.password)
    var printed = "\(session) \(user) \(session.account)"
    dump(session, to: &printed)
    dump(user, to: &printed)
    debugPrint(session, user, to: &printed)
    let texts = [try await trial.stored(database), printed]
    let secrets =
      [Trial.password, session.token, "secret guess", "other@example.com"] + codes
      + codes.map { $0.replacing("-", with: "") }
    for text in texts {
      #expect(text.contains(Self.email))
      for secret in secrets { #expect(!text.contains(secret)) }
    }
    try await database.close()
  }

  @Test func `A flood of sign-ins is turned away at the hasher`() async throws {
    // With threads of its own, because on a simulated device scrypt runs on its caller's thread.
    let database = try await Database.inMemory()
    let started = Gate()
    let derivation = KeyDerivation { password, salt, hashing throws(AuthError) in
      started.wait()
      return try KeyDerivation.scrypt.derive(password, salt, hashing)
    }
    var options = Accounts.Options()
    options.hashing = Trial.cheap
    let accounts = try await Accounts.open(in: database, options: options, derivation: derivation)
    let codes = await withTaskGroup(of: AuthErrorCode?.self) { group in
      for number in 0..<200 {
        group.addTask {
          await code {
            _ = try await accounts.signIn(
              withEmail: "\(number)@example.com", password: "wrong password")
          }
        }
      }
      var codes: [AuthErrorCode?] = []
      for await code in group {
        codes.append(code)
        // The rejected calls come back first, because no other can while the gate is closed.
        if codes.count == 200 - 64 { started.open() }
      }
      return codes
    }
    #expect(codes.prefix(200 - 64).allSatisfy { $0 == .tooManyRequests })
    #expect(codes.suffix(64).allSatisfy { $0 == .invalidCredential })
    try await database.close()
  }
}
