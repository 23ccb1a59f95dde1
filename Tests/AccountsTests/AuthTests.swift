// A device knows which user is signed in: over restarts, after changes, and when a session ends
// elsewhere.

import Foundation
import Ondol
import OndolAccounts
import OndolEngine
import OndolTestKit
import Testing

@Suite struct AuthTests {
  private static let email = "minji@example.com"

  @Test func `The story as an app has it`() async throws {
    let trial = Trial()
    let tokens = MemoryTokenStore()
    var database = try await trial.database()
    var auth = try await Auth.open(try await trial.accounts(in: database), tokens: tokens)
    var changes = auth.authStateChanges.makeAsyncIterator()
    #expect(await changes.next() == .some(nil))
    #expect(auth.currentUser == nil)
    let user = try await auth.createUser(withEmail: Self.email, password: Trial.password)
    #expect(await changes.next() == user)
    #expect(auth.currentUser == user)

    // A restart.
    try await database.close()
    database = try await trial.database()
    auth = try await Auth.open(try await trial.accounts(in: database), tokens: tokens)
    #expect(auth.currentUser?.uid == user.uid)
    changes = auth.authStateChanges.makeAsyncIterator()
    #expect(await changes.next()??.uid == user.uid)

    try await auth.currentUser?.updateEmail(to: "minji@example.org")
    #expect(await changes.next()??.email == "minji@example.org")
    let before = tokens.load()
    try await auth.currentUser?.updatePassword(to: "another lamp")
    #expect(await changes.next()??.uid == user.uid)
    #expect(tokens.load() != before)

    try await auth.signOut()
    #expect(await changes.next() == .some(nil))
    #expect(tokens.load() == nil)
    #expect(try await database.collection("accountSessions").getDocuments().isEmpty)
    try await auth.signIn(withEmail: "minji@example.org", password: "another lamp")
    #expect(await changes.next()??.uid == user.uid)
    try await auth.currentUser?.delete()
    #expect(await changes.next() == .some(nil))
    #expect(
      await code {
        try await auth.signIn(withEmail: "minji@example.org", password: "another lamp")
      } == .invalidCredential)
    try await database.close()
  }

  @Test func `A session that ends on one device ends on the other`() async throws {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    let phone = try await Auth.open(accounts, tokens: MemoryTokenStore())
    let tablet = try await Auth.open(accounts, tokens: MemoryTokenStore())
    let user = try await phone.createUser(withEmail: Self.email, password: Trial.password)
    let other = try await tablet.signIn(withEmail: Self.email, password: Trial.password)
    var changes = tablet.authStateChanges.makeAsyncIterator()
    #expect(await changes.next()??.uid == user.uid)
    try await user.updatePassword(to: "another lamp")
    #expect(await changes.next() == .some(nil))
    #expect(tablet.currentUser == nil)
    #expect(phone.currentUser?.uid == user.uid)
    #expect(await code { try await other.updateEmail(to: "a@b.kr") } == .userTokenExpired)
    try await database.close()
  }

  @Test func `A user who changes the password is never signed out on the way`() async throws {
    let trial = Trial()
    let database = try await Database.inMemory()
    let auth = try await Auth.open(
      try await trial.accounts(in: database), tokens: MemoryTokenStore())
    try await auth.createUser(withEmail: Self.email, password: Trial.password)
    let changes = auth.authStateChanges
    let signOuts = Task {
      var count = 0
      for await user in changes where user == nil { count += 1 }
      return count
    }
    for number in 0..<50 {
      try await auth.currentUser?.updatePassword(to: "rattan lamp \(number)")
      // A refused call leaves the session unchanged and watched.
      #expect(
        await code { try await auth.currentUser?.updatePassword(to: "short") } == .weakPassword)
      #expect(auth.currentUser != nil)
    }
    signOuts.cancel()
    #expect(await signOuts.value == 0)
    // The session is still watched.
    var later = changes.makeAsyncIterator()
    #expect(await later.next()??.email == Self.email)
    try await database.collection("accountSessions").deleteDocuments()
    #expect(await later.next() == .some(nil))
    try await database.close()
  }

  @Test func `A token that is over or damaged is forgotten at the start`() async throws {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    let session = try await accounts.createUser(withEmail: Self.email, password: Trial.password)
    try await accounts.signOut(token: session.token)
    for token in [session.token, "not a token"] {
      let tokens = MemoryTokenStore()
      tokens.save(token)
      let auth = try await Auth.open(accounts, tokens: tokens)
      #expect(auth.currentUser == nil)
      #expect(tokens.load() == nil)
    }
    try await database.close()
  }

  @Test func `An unreferenced Auth is released, and its listeners with it`() async throws {
    let trial = Trial()
    let database = try await trial.database()
    var auth: Auth? = try await Auth.open(
      try await trial.accounts(in: database), tokens: MemoryTokenStore())
    try await auth?.createUser(withEmail: Self.email, password: Trial.password)
    let changes = try #require(auth?.authStateChanges)
    var listener = changes.makeAsyncIterator()
    weak let seen = auth
    auth = nil
    #expect(seen == nil)
    // First the existing state, with no user; then the end.
    #expect(await listener.next() == .some(nil))
    #expect(await listener.next() == nil)
    try await database.close()
  }

  @Test func `A failing store leaves no user signed in, and no session after a sign-out`()
    async throws
  {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    let tokens = FailingTokenStore()
    let auth = try await Auth.open(accounts, tokens: tokens)
    tokens.fails.withLock { $0 = true }
    #expect(
      await code { try await auth.createUser(withEmail: Self.email, password: Trial.password) }
        == .keychainError)
    #expect(auth.currentUser == nil)
    tokens.fails.withLock { $0 = false }
    try await auth.signIn(withEmail: Self.email, password: Trial.password)
    let before = try await database.collection("accountSessions").getDocuments().count
    tokens.fails.withLock { $0 = true }
    #expect(await code { try await auth.signOut() } == .keychainError)
    #expect(auth.currentUser == nil)
    let after = try await database.collection("accountSessions").getDocuments().count
    #expect(after == before - 1)
    try await database.close()
  }

  @Test func `A token's file is its owner's alone`() throws {
    let folder = FileManager.default.temporaryDirectory
      .appending(path: "ondol-accounts-\(UInt64.random(in: 0...UInt64.max))")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let store = FileTokenStore(path: folder.appending(path: "token").path(percentEncoded: false))
    #expect(try store.load() == nil)
    for token in ["one", "two"] {
      try store.save(token)
      #expect(try store.load() == token)
      let mode = try FileManager.default.attributesOfItem(atPath: store.path)[.posixPermissions]
      #expect((mode as? NSNumber)?.intValue == 0o600)
    }
    try store.save(nil)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path()).isEmpty)
  }
}

/// Stores nothing if it is told so.
private final class FailingTokenStore: TokenStore {
  struct Failure: Error {}

  let fails = Guarded(false)

  func load() -> String? { nil }

  func save(_ token: String?) throws {
    if fails.withLock({ $0 }) { throw Failure() }
  }
}
