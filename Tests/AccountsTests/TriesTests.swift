// Tries are counted in a sliding window. The suite compares them with a model that keeps every try
// in a list, over random sequences of right and wrong guesses and of passing time. Separate counts
// stay separate.

import Foundation
import Ondol
import OndolAccounts
import OndolTestKit
import Testing

@Suite struct TriesTests {
  /// A sliding window, in seconds, as a list.
  private struct Window {
    static let length = 900
    let most: Int
    var failures: [Int] = []

    /// Returns the time until another try is allowed; nil if it is allowed now.
    mutating func wait(at now: Int) -> Int? {
      failures.removeAll { $0 + Self.length <= now }
      return failures.count < most ? nil : failures[failures.count - most] + Self.length - now
    }
  }

  private static let emails = (0..<3).map { "\($0)@example.com" }
  private static let origins = ["192.0.2.1", "192.0.2.2", nil]

  @Test func `Tries are let through exactly as a sliding window lets them`() async throws {
    for seed in Seeds.first(6) {
      let trial = Trial(seed: seed)
      let database = try await trial.database()
      let accounts = try await trial.accounts(in: database) {
        $0.maximumTries = 4
        $0.maximumTriesOfOrigin = 6
        $0.triesWindow = .seconds(Window.length)
      }
      for email in Self.emails {
        _ = try await accounts.createUser(withEmail: email, password: Trial.password)
      }
      var random = SeededRandom(seed: seed)
      var ofEmail = Self.emails.map { _ in Window(most: 4) }
      var ofOrigin = Self.origins.map { _ in Window(most: 6) }
      var now = 0
      for step in 0..<250 {
        let pause =
          Int.random(in: 0...3, using: &random) == 0
          ? Int.random(in: 0...600, using: &random) : Int.random(in: 0...30, using: &random)
        await trial.clock.advance(by: .seconds(pause))
        now += pause
        let email = Int.random(in: 0..<Self.emails.count, using: &random)
        let origin = Int.random(in: 0..<Self.origins.count, using: &random)
        let isRight = Int.random(in: 0..<3, using: &random) == 0
        let waits = [
          ofEmail[email].wait(at: now),
          Self.origins[origin] == nil ? nil : ofOrigin[origin].wait(at: now),
        ]
        var found: AuthError?
        do {
          _ = try await accounts.signIn(
            withEmail: Self.emails[email], password: isRight ? Trial.password : "guess \(step)",
            origin: Self.origins[origin])
        } catch {
          found = error
        }
        if let wait = waits[0] ?? waits[1] {
          #expect(found?.code == .tooManyRequests, "seed \(seed), step \(step)")
          #expect(found?.retryAfter == .seconds(wait), "seed \(seed), step \(step)")
        } else if isRight {
          #expect(found == nil, "seed \(seed), step \(step)")
          ofEmail[email].failures = []
        } else {
          #expect(found?.code == .invalidCredential, "seed \(seed), step \(step)")
          ofEmail[email].failures.append(now)
          ofOrigin[origin].failures.append(now)
        }
      }
      try await database.close()
    }
  }

  // Successes once counted against their origin, and a school with one address was locked out after
  // a hundred of them.
  @Test func `A school may sign in from one address as often as it likes`() async throws {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database) { $0.maximumTriesOfOrigin = 20 }
    for email in Self.emails {
      _ = try await accounts.createUser(withEmail: email, password: Trial.password)
    }
    func signIn(_ number: Int, _ password: String) async -> AuthErrorCode? {
      await code {
        _ = try await accounts.signIn(
          withEmail: Self.emails[number % 3], password: password, origin: "192.0.2.7")
      }
    }
    for number in 0..<100 { #expect(await signIn(number, Trial.password) == nil) }
    // Wrong tries among the right ones still count.
    var wrong = 0
    for number in 0..<60 where wrong < 20 {
      if number % 3 == 0 {
        #expect(await signIn(number / 3, "spring2026") == .invalidCredential)
        wrong += 1
      } else {
        #expect(await signIn(number / 3, Trial.password) == nil)
      }
    }
    #expect(wrong == 20)
    #expect(await signIn(0, Trial.password) == .tooManyRequests)
    try await database.close()
  }

  @Test func `Guesses at many addresses at once are as many as their origin may make`()
    async throws
  {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database) { $0.maximumTriesOfOrigin = 20 }
    _ = try await accounts.createUser(withEmail: Self.emails[0], password: Trial.password)
    _ = trial.runs.take()
    let codes = await withTaskGroup(of: AuthErrorCode?.self) { group in
      for number in 0..<200 {
        group.addTask {
          await code {
            _ = try await accounts.signIn(
              withEmail: "\(number + 1)@example.com", password: "spring2026", origin: "192.0.2.1")
          }
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(codes.count { $0 == .invalidCredential } == 20)
    #expect(codes.count { $0 == .tooManyRequests } == 180)
    #expect(trial.runs.take().count == 20)
    _ = try await accounts.signIn(
      withEmail: Self.emails[0], password: Trial.password, origin: "192.0.2.2")
    try await database.close()
  }

  @Test func `A try that the hasher turned away is no failure`() async throws {
    let database = try await Database.inMemory()
    let gate = Gate()
    let derivation = KeyDerivation { password, salt, hashing throws(AuthError) in
      gate.wait()
      return try KeyDerivation.scrypt.derive(password, salt, hashing)
    }
    var options = Accounts.Options()
    options.hashing = Trial.cheap
    let accounts = try await Accounts.open(in: database, options: options, derivation: derivation)
    let codes = await withTaskGroup(of: AuthErrorCode?.self) { group in
      for number in 0..<164 {
        group.addTask {
          await code {
            _ = try await accounts.signIn(
              withEmail: "\(number)@example.com", password: "wrong password", origin: "192.0.2.1")
          }
        }
      }
      var codes: [AuthErrorCode?] = []
      for await code in group {
        codes.append(code)
        if codes.count == 100 { gate.open() }
      }
      return codes
    }
    #expect(codes.count { $0 == .invalidCredential } == 64)
    let counts = try await database.collection("accountTries").getDocuments().documents
      .compactMap { $0["count"] as Int? }
    // Sixty-four with one each, and the origin's.
    #expect(counts.sorted() == Array(repeating: 1, count: 64) + [64])
    try await database.close()
  }

  // They once had one counter: anyone who knew an address could keep its owner from changing the
  // password.
  @Test func `Guesses at sign-in and at reauthentication are counted separately`()
    async throws
  {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    let email = Self.emails[0]
    let session = try await accounts.createUser(withEmail: email, password: Trial.password)
    func signIn(_ password: String) async -> AuthErrorCode? {
      await code { _ = try await accounts.signIn(withEmail: email, password: password) }
    }
    func again(_ password: String) async -> AuthErrorCode? {
      await code { try await accounts.reauthenticate(token: session.token, password: password) }
    }
    for number in 0..<10 { #expect(await signIn("guess \(number)") == .invalidCredential) }
    #expect(await signIn(Trial.password) == .tooManyRequests)
    #expect(await again(Trial.password) == nil)
    #expect(await signIn(Trial.password) == .tooManyRequests)
    await trial.clock.advance(by: .seconds(900))
    for number in 0..<10 { #expect(await again("guess \(number)") == .invalidCredential) }
    #expect(await again(Trial.password) == .tooManyRequests)
    #expect(await signIn(Trial.password) == nil)
    #expect(await again(Trial.password) == .tooManyRequests)
    await trial.clock.advance(by: .seconds(900))
    #expect(await again(Trial.password) == nil)
    try await database.close()
  }

  @Test func `Counts of an earlier version hold, and those of a wrong clock do not`()
    async throws
  {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    let email = Self.emails[0]
    _ = try await accounts.createUser(withEmail: email, password: Trial.password)
    func signIn() async -> AuthErrorCode? {
      await code { _ = try await accounts.signIn(withEmail: email, password: Trial.password) }
    }
    _ = await code { _ = try await accounts.signIn(withEmail: email, password: "a guess") }
    let stored = try #require(
      try await database.collection("accountTries").getDocuments().documents.first)
    let since = try #require(stored["since"] as Timestamp?)
    func put(_ moment: Timestamp) async throws {
      try await stored.reference.setData([
        "count": 10, "since": moment,
        "expiresAt": try Timestamp(
          microsecondsSince1970: moment.microsecondsSince1970 + 900_000_000),
      ])
    }
    try await put(since)
    #expect(await signIn() == .tooManyRequests)
    try await put(
      try Timestamp(microsecondsSince1970: since.microsecondsSince1970 + 86_400_000_000))
    #expect(await signIn() == nil)
    try await database.close()
  }

  @Test func `Recovery codes end with the password they were made beside`() async throws {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    let email = Self.emails[0]
    var session = try await accounts.createUser(withEmail: email, password: Trial.password)
    func recover(_ recoveryCode: String) async -> AuthErrorCode? {
      await code {
        session = try await accounts.resetPassword(
          withEmail: email, recoveryCode: recoveryCode, newPassword: "third lamp 9")
      }
    }
    var codes = try await accounts.generateRecoveryCodes(token: session.token)
    #expect(try await accounts.session(forToken: session.token).account.recoveryCodeCount == 8)
    session = try await accounts.updatePassword(token: session.token, to: "bamboo lamp 8")
    #expect(session.account.recoveryCodeCount == 0)
    #expect(await recover(codes[0]) == .invalidCredential)
    codes = try await accounts.generateRecoveryCodes(token: session.token)
    #expect(await recover(codes[0]) == nil)
    #expect(session.account.recoveryCodeCount == 0)
    #expect(await recover(codes[1]) == .invalidCredential)
    try await database.close()
  }
}
