// A code that went to an address signs in its owner, once and for a limited time. It leaves nothing
// to a person who signed up with someone else's address. An administrator's codes work as mailed
// ones do.

import Ondol
import OndolAccounts
import OndolTestKit
import Testing

@Suite struct EmailCodeTests {
  private static let email = "minji@example.com"

  private struct Post {
    let trial: Trial
    let letters = Letters()
    let database: Database
    let accounts: Accounts

    init(seed: UInt64 = 1) async throws {
      trial = Trial(seed: seed)
      database = try await trial.database()
      accounts = try await trial.accounts(in: database) { [letters] in
        $0.sendCode = letters.send
      }
    }

    func code(_ email: String) async throws -> String {
      try await accounts.sendSignInCode(toEmail: email)
      return try await letters.next()
    }
  }

  @Test func `A code that was mailed makes an account, and signs in to it from then on`()
    async throws
  {
    let post = try await Post()
    let accounts = post.accounts
    let first = try await post.code("Minji@Example.com")
    #expect(try await accounts.findAccount(.email(Self.email)) == nil)
    let info = try await accounts.checkActionCode(first)
    #expect(info.operation == .emailSignIn && info.email == nil)
    // The caller must state the address, in any spelling.
    #expect(
      await code { _ = try await accounts.signIn(withEmail: "a@b.kr", code: first) }
        == .invalidActionCode)
    let typed = first.lowercased().replacing("-", with: " ")
    let session = try await accounts.signIn(withEmail: "MINJI@example.com", code: typed)
    #expect(session.account.isEmailVerified && !session.account.hasPassword)
    #expect(!session.account.isAnonymous)
    #expect(session.provider == .password && session.isNewUser)
    // Once.
    #expect(
      await code { _ = try await accounts.signIn(withEmail: Self.email, code: first) }
        == .invalidActionCode)
    let again = try await accounts.signIn(
      withEmail: Self.email, code: try await post.code(Self.email))
    #expect(again.account.uid == session.account.uid && !again.isNewUser)
    _ = try await accounts.session(forToken: session.token)
    // A password in addition to it.
    let linked = try await accounts.link(
      token: again.token, withEmail: Self.email, password: Trial.password)
    #expect(linked.account.isEmailVerified && linked.account.hasPassword)
    _ = try await accounts.signIn(withEmail: Self.email, code: try await post.code(Self.email))
    _ = try await accounts.signIn(withEmail: Self.email, password: Trial.password)
    try await post.database.close()
  }

  @Test func `A person who signed up with another's address loses the account`() async throws {
    let post = try await Post()
    let accounts = post.accounts
    let thief = try await accounts.createUser(withEmail: Self.email, password: Trial.password)
    let recovery = try #require(
      try await accounts.generateRecoveryCodes(token: thief.token).first)
    let owner = try await accounts.signIn(
      withEmail: Self.email, code: try await post.code(Self.email))
    #expect(owner.account.uid == thief.account.uid)
    let codes = await [
      code { _ = try await accounts.session(forToken: thief.token) },
      code { _ = try await accounts.signIn(withEmail: Self.email, password: Trial.password) },
      code {
        _ = try await accounts.resetPassword(
          withEmail: Self.email, recoveryCode: recovery, newPassword: "bamboo lamp")
      },
    ]
    #expect(codes == [.userTokenExpired, .invalidCredential, .invalidCredential])
    try await post.database.close()
  }

  @Test func `A code ends after its time, and guesses at it are counted`() async throws {
    let post = try await Post()
    let accounts = post.accounts
    let late = try await post.code(Self.email)
    await post.trial.clock.advance(by: .seconds(3_600))
    #expect(
      await code { _ = try await accounts.signIn(withEmail: Self.email, code: late) }
        == .invalidActionCode)
    #expect(await code { _ = try await accounts.checkActionCode(late) } == .invalidActionCode)
    let right = try await post.code(Self.email)
    let last = try #require(right.last)
    let wrong = right.dropLast() + (last == "0" ? "1" : "0")
    var codes: [AuthErrorCode?] = []
    for number in 0..<12 {
      codes.append(
        await code {
          if number.isMultiple(of: 2) {
            _ = try await accounts.checkActionCode(String(wrong))
          } else {
            _ = try await accounts.signIn(withEmail: Self.email, code: String(wrong))
          }
        })
    }
    #expect(codes[..<10].allSatisfy { $0 == .invalidActionCode })
    #expect(codes[10...].allSatisfy { $0 == .tooManyRequests })
    #expect(
      await code { _ = try await accounts.signIn(withEmail: Self.email, code: right) }
        == .tooManyRequests)
    // No more than five codes in a period, with and without an account.
    _ = try await accounts.createUser(withEmail: "c@b.kr", password: Trial.password)
    for email in ["a@b.kr", "c@b.kr"] {
      for _ in 0..<5 { _ = try await post.code(email) }
      #expect(await code { try await accounts.sendSignInCode(toEmail: email) } == .tooManyRequests)
    }
    let stored = try await post.database.collection("accountCodes").getDocuments().documents
      .map { "\($0.documentID) \($0.data())" }.joined()
    #expect(!stored.contains("@") && !stored.contains(right))
    try await post.database.close()
  }

  @Test func `Two concurrent uses of a code make one account`() async throws {
    for seed in Seeds.first(6) {
      let post = try await Post(seed: seed)
      let accounts = post.accounts
      let mailed = try await post.code(Self.email)
      let codes = await withTaskGroup(of: AuthErrorCode?.self) { group in
        for number in 0..<5 {
          group.addTask {
            await code {
              if number == 4 {
                _ = try await accounts.createUser(
                  withEmail: Self.email, password: Trial.password)
              } else {
                _ = try await accounts.signIn(withEmail: Self.email, code: mailed)
              }
            }
          }
        }
        return await group.reduce(into: [AuthErrorCode?]()) { $0.append($1) }
      }
      #expect(codes.count { $0 == .invalidActionCode } == 3, "seed \(seed)")
      let all = try await accounts.listAccounts().accounts
      #expect(all.count == 1 && all[0].isEmailVerified, "seed \(seed)")
      try await post.database.close()
    }
  }

  @Test func `An administrator's codes work as mailed ones do, without a mail`() async throws {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    let session = try await accounts.createUser(withEmail: Self.email, password: Trial.password)
    let verification = try await accounts.makeActionCode(
      .verifyEmail, forEmail: "MINJI@example.com")
    let reset = try await accounts.makeActionCode(.passwordReset, forEmail: Self.email)
    for (made, operation) in [
      (verification, ActionCodeOperation.verifyEmail), (reset, .passwordReset),
    ] {
      // As often as the user likes.
      for _ in 0..<12 {
        let info = try await accounts.checkActionCode(made)
        #expect(info.operation == operation && info.email == Self.email)
      }
    }
    #expect(try await accounts.applyActionCode(verification).isEmailVerified)
    let changed = try await accounts.confirmPasswordReset(
      withCode: reset, newPassword: "bamboo lamp")
    #expect(changed.account.uid == session.account.uid)
    for used in [verification, reset] {
      #expect(await code { _ = try await accounts.checkActionCode(used) } == .invalidActionCode)
    }
    let signIn = try await accounts.makeActionCode(.emailSignIn, forEmail: "new@b.kr")
    #expect(try await accounts.signIn(withEmail: "new@b.kr", code: signIn).account.isEmailVerified)
    for operation in [ActionCodeOperation.verifyEmail, .passwordReset] {
      #expect(
        await code { _ = try await accounts.makeActionCode(operation, forEmail: "nobody@b.kr") }
          == .userNotFound)
    }
    #expect(
      await code { try await accounts.sendSignInCode(toEmail: Self.email) }
        == .operationNotAllowed)
    // Codes without a limit.
    for _ in 0..<20 { _ = try await accounts.makeActionCode(.passwordReset, forEmail: Self.email) }
    try await database.close()
  }

  @Test func `A new address is the account's once its owner has shown it, and not before`()
    async throws
  {
    let post = try await Post()
    let accounts = post.accounts
    let auth = try await Auth.open(accounts, tokens: MemoryTokenStore())
    let user = try await auth.createUser(withEmail: Self.email, password: Trial.password)
    try await user.sendEmailVerification(beforeUpdatingEmailTo: "New@b.kr")
    let mailed = try await post.letters.next()
    #expect(auth.currentUser?.email == Self.email)
    let info = try await auth.checkActionCode(mailed)
    #expect(info.operation == .verifyAndChangeEmail)
    #expect(info.email == "New@b.kr" && info.previousEmail == Self.email)
    #expect(
      await code {
        _ = try await accounts.confirmPasswordReset(withCode: mailed, newPassword: "bamboo lamp")
      } == .invalidActionCode)
    #expect(
      await code { try await user.sendEmailVerification(beforeUpdatingEmailTo: "no address") }
        == .invalidEmail)
    // Another user has the address in the meantime, and then loses it.
    let other = try await accounts.createUser(withEmail: "new@b.kr", password: Trial.password)
    #expect(
      await code { try await user.sendEmailVerification(beforeUpdatingEmailTo: "NEW@b.kr") }
        == .emailAlreadyInUse)
    #expect(await code { try await auth.applyActionCode(mailed) } == .emailAlreadyInUse)
    try await accounts.delete(token: other.token)
    try await auth.applyActionCode(mailed)
    #expect(auth.currentUser?.email == "New@b.kr" && auth.currentUser?.isEmailVerified == true)
    #expect(await code { try await auth.applyActionCode(mailed) } == .invalidActionCode)
    #expect(
      try await auth.signIn(withEmail: "new@b.kr", password: Trial.password).uid == user.uid)
    #expect(try await accounts.findAccount(.email(Self.email)) == nil)
    try await post.database.close()
  }

  @Test func `A code for a new address ends with the address that the account had`() async throws {
    let post = try await Post()
    let accounts = post.accounts
    _ = try await accounts.createUser(withEmail: "new@b.kr", password: Trial.password)
    let made = try await accounts.makeActionCode(
      .verifyAndChangeEmail, forEmail: "new@b.kr", newEmail: "third@b.kr")
    let second = try await accounts.makeActionCode(
      .verifyAndChangeEmail, forEmail: "new@b.kr", newEmail: "fourth@b.kr")
    #expect(try await accounts.applyActionCode(made).email == "third@b.kr")
    #expect(await code { try await accounts.applyActionCode(second) } == .invalidActionCode)
    #expect(
      await code {
        _ = try await accounts.makeActionCode(.verifyAndChangeEmail, forEmail: "third@b.kr")
      } == .missingEmail)
    // A token alone does not take an account over.
    let again = try await accounts.signIn(withEmail: "third@b.kr", password: Trial.password)
    await post.trial.clock.advance(by: .seconds(301))
    #expect(
      await code {
        try await accounts.sendEmailVerification(
          token: again.token, beforeUpdatingEmailTo: "a@b.kr")
      } == .requiresRecentLogin)
    try await post.database.close()
  }

  @Test func `A device signs in by a code`() async throws {
    let post = try await Post()
    let auth = try await Auth.open(post.accounts, tokens: MemoryTokenStore())
    try await auth.sendSignInCode(toEmail: Self.email)
    let user = try await auth.signIn(withEmail: Self.email, code: try await post.letters.next())
    #expect(auth.currentUser == user && user.email == Self.email && user.isEmailVerified)
    try await post.database.close()
  }

  @Test func `Signing in by a code is whole or absent after any power cut`() async throws {
    func prepared(_ trial: Trial) async throws -> (Accounts, String) {
      let accounts = try await trial.accounts(in: try await trial.database())
      return (accounts, try await accounts.makeActionCode(.emailSignIn, forEmail: Self.email))
    }
    let first = Trial()
    let (untouched, one) = try await prepared(first)
    let before = first.device.operations
    _ = try await untouched.signIn(withEmail: Self.email, code: one)
    let needed = first.device.operations - before
    for step in 0..<needed {
      let trial = Trial(seed: UInt64(step + 1))
      let (accounts, mailed) = try await prepared(trial)
      trial.device.powerCut(after: step)
      _ = try? await accounts.signIn(withEmail: Self.email, code: mailed)
      trial.device.powerCut()
      let database = try await trial.database()
      let again = try await trial.accounts(in: database)
      let people = try await database.collection("accounts").getDocuments().count
      #expect(
        try await database.collection("accountSessions").getDocuments().count == people, "\(step)")
      // The code is used up if it made an account, and still valid if it did not.
      let found = await code {
        _ = try await again.signIn(withEmail: Self.email, code: mailed)
      }
      #expect(found == (people == 0 ? nil : .invalidActionCode), "\(step)")
      try await database.close()
    }
  }
}
