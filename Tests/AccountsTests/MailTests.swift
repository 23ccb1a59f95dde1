// A mailed code does its work once, for a limited time, for the person it was sent to. A request
// for one reveals to nobody who has an account.

import Ondol
import OndolAccounts
import OndolEngine
import OndolTestKit
import Testing

@Suite struct MailTests {
  private static let email = "minji@example.com"

  /// The sent letters. Tests wait for them, because some are sent after the answer.
  private struct Mailbox: Sendable {
    struct Letter: Sendable, Equatable {
      var operation: ActionCodeOperation
      var address: String
      var code: String
    }

    private let letters: AsyncStream<Letter>
    private let continuation: AsyncStream<Letter>.Continuation

    init() {
      (letters, continuation) = AsyncStream.makeStream(of: Letter.self)
    }

    /// The next letter.
    func next() async throws -> Letter {
      var iterator = letters.makeAsyncIterator()
      return try #require(await iterator.next())
    }

    /// All earlier letters, after none is under way.
    func rest() async -> [Letter] {
      continuation.finish()
      return await letters.reduce(into: []) { $0.append($1) }
    }

    var send: Accounts.Options.CodeSender {
      { [continuation] operation, address, code in
        continuation.yield(Letter(operation: operation, address: address, code: code))
      }
    }
  }

  private struct Post {
    let trial = Trial()
    let mailbox = Mailbox()
    let database: Database
    let accounts: Accounts

    init() async throws {
      database = try await trial.database()
      accounts = try await trial.accounts(in: database) { [mailbox] in
        $0.sendCode = mailbox.send
      }
    }

    /// Returns a code that was just requested.
    func code(_ operation: ActionCodeOperation = .passwordReset) async throws -> String {
      let letter = try await mailbox.next()
      #expect(letter.operation == operation)
      return letter.code
    }
  }

  @Test func `A code shows that the address is its owner's, until there is another address`()
    async throws
  {
    let post = try await Post()
    let accounts = post.accounts
    let session = try await accounts.createUser(
      withEmail: "Minji@Example.com", password: Trial.password)
    #expect(!session.account.isEmailVerified)
    try await accounts.sendEmailVerification(token: session.token)
    let letter = try await post.mailbox.next()
    #expect(letter.address == "Minji@Example.com")
    #expect(letter.operation == .verifyEmail)
    let account = try await accounts.applyActionCode(
      letter.code.lowercased().replacing("-", with: " "))
    #expect(account.isEmailVerified)
    #expect(account.uid == session.account.uid)
    #expect(try await accounts.session(forToken: session.token).account == account)
    // Once.
    #expect(await code { try await accounts.applyActionCode(letter.code) } == .invalidActionCode)
    // The same address stays verified, another is not.
    var changed = try await accounts.updateEmail(token: session.token, to: "Minji@Example.com")
    #expect(changed.account.isEmailVerified)
    changed = try await accounts.updateEmail(token: session.token, to: "minji@example.org")
    #expect(!changed.account.isEmailVerified)
    try await post.database.close()
  }

  @Test func `A code that went to an address says nothing of the next one`() async throws {
    let post = try await Post()
    let accounts = post.accounts
    let session = try await accounts.createUser(withEmail: Self.email, password: Trial.password)
    try await accounts.sendEmailVerification(token: session.token)
    let verification = try await post.code(.verifyEmail)
    try await accounts.sendPasswordReset(withEmail: Self.email)
    let reset = try await post.code()
    _ = try await accounts.updateEmail(token: session.token, to: "other@example.com")
    #expect(
      await code { try await accounts.applyActionCode(verification) } == .invalidActionCode)
    #expect(
      await code {
        _ = try await accounts.confirmPasswordReset(withCode: reset, newPassword: "another lamp")
      } == .invalidActionCode)
    try await post.database.close()
  }

  @Test func `A code that was mailed gives another password, and ends all that was before`()
    async throws
  {
    let post = try await Post()
    let accounts = post.accounts
    let before = try await accounts.createUser(withEmail: Self.email, password: Trial.password)
    _ = try await accounts.generateRecoveryCodes(token: before.token)
    // Sent to the account's own spelling, whatever was requested.
    try await accounts.sendPasswordReset(withEmail: "MINJI@example.com")
    let letter = try await post.mailbox.next()
    #expect(letter.address == Self.email)
    try await accounts.sendPasswordReset(withEmail: Self.email)
    let second = try await post.code()
    #expect(second != letter.code)
    // A weak password does not use it up.
    #expect(
      await code {
        _ = try await accounts.confirmPasswordReset(
          withCode: letter.code, newPassword: Self.email)
      } == .weakPassword)
    let session = try await accounts.confirmPasswordReset(
      withCode: letter.code, newPassword: "another lamp")
    #expect(session.account.uid == before.account.uid)
    #expect(session.account.isEmailVerified)
    #expect(session.account.recoveryCodeCount == 0)
    #expect(
      await code { _ = try await accounts.session(forToken: before.token) } == .userTokenExpired)
    _ = try await accounts.signIn(withEmail: Self.email, password: "another lamp")
    // Neither the same code again, nor one from before the password.
    for used in [letter.code, second] {
      #expect(
        await code {
          _ = try await accounts.confirmPasswordReset(withCode: used, newPassword: "third lamp")
        } == .invalidActionCode)
    }
    try await post.database.close()
  }

  @Test func `Codes end, and are for one purpose`() async throws {
    let post = try await Post()
    let accounts = post.accounts
    let session = try await accounts.createUser(withEmail: Self.email, password: Trial.password)
    try await accounts.sendPasswordReset(withEmail: Self.email)
    let reset = try await post.code()
    try await accounts.sendEmailVerification(token: session.token)
    let verification = try await post.code(.verifyEmail)
    #expect(await code { try await accounts.applyActionCode(reset) } == .invalidActionCode)
    #expect(
      await code {
        _ = try await accounts.confirmPasswordReset(
          withCode: verification, newPassword: "another lamp")
      } == .invalidActionCode)
    await post.trial.clock.advance(by: .seconds(3_599))
    try await accounts.applyActionCode(verification)
    await post.trial.clock.advance(by: .seconds(1))
    #expect(
      await code {
        _ = try await accounts.confirmPasswordReset(withCode: reset, newPassword: "another lamp")
      } == .invalidActionCode)
    #expect(try await post.database.collection("accountCodes").getDocuments().isEmpty)
    try await post.database.close()
  }

  @Test func `Guesses at a code are counted, and afterwards the right one is refused`() async throws
  {
    let post = try await Post()
    let accounts = post.accounts
    _ = try await accounts.createUser(withEmail: Self.email, password: Trial.password)
    try await accounts.sendPasswordReset(withEmail: Self.email)
    let right = try await post.code()
    _ = post.trial.runs.take()
    // Its public part is known, and it differs in one letter.
    let last = try #require(right.last)
    let wrong = right.dropLast() + (last == "0" ? "1" : "0")
    var codes: [AuthErrorCode?] = []
    for _ in 0..<12 {
      codes.append(
        await code {
          _ = try await accounts.confirmPasswordReset(
            withCode: String(wrong), newPassword: "another lamp")
        })
    }
    #expect(codes[..<10].allSatisfy { $0 == .invalidActionCode })
    #expect(codes[10...].allSatisfy { $0 == .tooManyRequests })
    #expect(
      await code {
        _ = try await accounts.confirmPasswordReset(withCode: right, newPassword: "another lamp")
      } == .tooManyRequests)
    // Invalid codes do not make the hasher work.
    #expect(post.trial.runs.take().isEmpty)
    for text in ["", "lamp", "0000-0000-0000-000U", String(repeating: "0", count: 1 << 20)] {
      #expect(await code { try await accounts.applyActionCode(text) } == .invalidActionCode)
    }
    try await post.database.close()
  }

  @Test func `A request for a code does not reveal who has an account`() async throws {
    let post = try await Post()
    let accounts = post.accounts
    _ = try await accounts.createUser(withEmail: Self.email, password: Trial.password)
    var written: [Int] = []
    var answers: [[AuthErrorCode?]] = []
    for email in [Self.email, "nobody@example.com"] {
      let before = try await post.database.collection("accountCodes").getDocuments().count
      var codes: [AuthErrorCode?] = []
      for _ in 0..<7 {
        codes.append(await code { try await accounts.sendPasswordReset(withEmail: email) })
      }
      answers.append(codes)
      written.append(
        try await post.database.collection("accountCodes").getDocuments().count - before)
    }
    #expect(answers[0] == [nil, nil, nil, nil, nil, .tooManyRequests, .tooManyRequests])
    #expect(answers[0] == answers[1])
    #expect(written == [5, 5])
    var sent: [String] = []
    for _ in 0..<5 { sent.append(try await post.mailbox.next().address) }
    #expect(sent == Array(repeating: Self.email, count: 5))
    #expect(await post.mailbox.rest().isEmpty)
    // The stored codes contain no address either.
    let stored = try await post.database.collection("accountCodes").getDocuments().documents
      .map { "\($0.documentID) \($0.data())" }.joined()
    #expect(!stored.contains("@"))
    try await post.database.close()
  }

  @Test func `Only one of two concurrent uses of a code succeeds`() async throws {
    for _ in 0..<5 {
      let post = try await Post()
      let accounts = post.accounts
      _ = try await accounts.createUser(withEmail: Self.email, password: Trial.password)
      try await accounts.sendPasswordReset(withEmail: Self.email)
      let reset = try await post.code()
      let codes = await withTaskGroup(of: AuthErrorCode?.self) { group in
        for number in 0..<4 {
          group.addTask {
            await code {
              _ = try await accounts.confirmPasswordReset(
                withCode: reset, newPassword: "another lamp \(number)")
            }
          }
        }
        return await group.reduce(into: [AuthErrorCode?]()) { $0.append($1) }
      }
      #expect(codes.count { $0 == nil } == 1)
      #expect(codes.count { $0 == .invalidActionCode } == 3)
      try await post.database.close()
    }
  }

  @Test func `Without a mailer the calls fail, and a failed mail is reported to its caller`()
    async throws
  {
    let trial = Trial()
    let database = try await trial.database()
    var accounts = try await trial.accounts(in: database)
    let session = try await accounts.createUser(withEmail: Self.email, password: Trial.password)
    let codes = await [
      code { try await accounts.sendEmailVerification(token: session.token) },
      code { try await accounts.sendPasswordReset(withEmail: Self.email) },
    ]
    #expect(codes == [.operationNotAllowed, .operationNotAllowed])
    accounts = try await trial.accounts(in: database) {
      $0.sendCode = { _, _, _ in throw CancellationError() }
    }
    let failing = accounts
    #expect(
      await code { try await failing.sendEmailVerification(token: session.token) }
        == .internalError)
    #expect(await code { try await failing.sendPasswordReset(withEmail: Self.email) } == nil)
    try await database.close()
  }

  @Test func `Sending sees the task-local values of its caller`() async throws {
    let trial = Trial()
    let database = try await trial.database()
    let (places, continuation) = AsyncStream.makeStream(of: String.self)
    let accounts = try await trial.accounts(in: database) {
      $0.sendCode = { operation, _, _ in continuation.yield("\(operation) \(Asker.place)") }
    }
    let session = try await accounts.createUser(withEmail: Self.email, password: Trial.password)
    try await Asker.$place.withValue("seoul") {
      try await accounts.sendEmailVerification(token: session.token)
      // This also happens after the answer.
      try await accounts.sendPasswordReset(withEmail: Self.email)
    }
    var iterator = places.makeAsyncIterator()
    #expect(await iterator.next() == "verifyEmail seoul")
    #expect(await iterator.next() == "passwordReset seoul")
    try await database.close()
  }

  @Test func `A device sees its user verified, here and elsewhere`() async throws {
    let post = try await Post()
    let auth = try await Auth.open(post.accounts, tokens: MemoryTokenStore())
    var states = auth.authStateChanges.makeAsyncIterator()
    #expect(await states.next() == .some(nil))
    let user = try await auth.createUser(withEmail: Self.email, password: Trial.password)
    #expect(await states.next() == .some(user))
    try await user.sendEmailVerification()
    try await auth.applyActionCode(try await post.code(.verifyEmail))
    #expect(auth.currentUser?.isEmailVerified == true)
    #expect(await states.next()??.isEmailVerified == true)
    // It is verified already, so nothing is sent.
    try await user.sendEmailVerification()

    try await user.updateEmail(to: "other@example.com")
    try await auth.currentUser?.sendEmailVerification()
    try await post.accounts.applyActionCode(try await post.code(.verifyEmail))
    #expect(auth.currentUser?.isEmailVerified == false)
    #expect(try await auth.currentUser?.reload().isEmailVerified == true)
    #expect(auth.currentUser?.isEmailVerified == true)

    try await auth.sendPasswordReset(withEmail: "other@example.com")
    let again = try await auth.confirmPasswordReset(
      withCode: try await post.code(), newPassword: "another lamp")
    #expect(auth.currentUser == again)
    #expect(await post.mailbox.rest().isEmpty)
    try await post.database.close()
  }
}

/// The caller that requests a code.
private enum Asker {
  @TaskLocal static var place = "nowhere"
}
