// Several servers with one store keep one set of accounts. Of two calls that make an account with
// one address one wins, wherever they run. After one server disables or revokes, no call on another
// server outlives that.

import Ondol
import OndolAccounts
import OndolEngine
import OndolTestKit
import Testing

@Suite struct AccountStoreTests {
  private static let email = "minji@example.com"

  /// Two servers and their store.
  private struct Servers {
    let world: SimulatedWorld
    let first: Accounts
    let second: Accounts

    init(seed: UInt64) async throws {
      world = SimulatedWorld(seed: seed)
      let store = SimulatedStore(seed: seed, environment: world.environment)
      var accounts: [Accounts] = []
      for _ in 0..<2 {
        let database = try await Database.open(
          at: "store", environment: world.environment, on: store)
        var options = Accounts.Options()
        options.hashing = Trial.cheap
        accounts.append(
          try await Accounts.open(in: database, options: options, derivation: Runs().counted))
      }
      (first, second) = (accounts[0], accounts[1])
    }

    func close() async throws {
      try await first.database.close()
      try await second.database.close()
    }
  }

  @Test func `Of accounts made on two servers with one address or number one is made`()
    async throws
  {
    for seed in Seeds.first(6) {
      let servers = try await Servers(seed: seed)
      let codes = await withTaskGroup(of: AuthErrorCode?.self) { group in
        for number in 0..<8 {
          let accounts = number.isMultiple(of: 2) ? servers.first : servers.second
          group.addTask {
            await code {
              var new = NewAccount()
              if number < 4 { new.email = Self.email } else { new.phoneNumber = "+8210" }
              _ = try await accounts.createAccount(new)
            }
          }
        }
        return await group.reduce(into: [AuthErrorCode?]()) { $0.append($1) }
      }
      #expect(codes.count { $0 == nil } == 2, "seed \(seed)")
      #expect(codes.count { $0 == .emailAlreadyInUse } == 3, "seed \(seed)")
      #expect(codes.count { $0 == .credentialAlreadyInUse } == 3, "seed \(seed)")
      for accounts in [servers.first, servers.second] {
        try await accounts.database.refresh()
        #expect(try await accounts.listAccounts().accounts.count == 2, "seed \(seed)")
      }
      try await servers.close()
    }
  }

  @Test func `After one server disables or revokes, another server's calls fail`() async throws {
    for revokes in [false, true] {
      let servers = try await Servers(seed: 1)
      let (first, second) = (servers.first, servers.second)
      let session = try await first.createUser(withEmail: Self.email, password: Trial.password)
      try await second.database.refresh()
      let mine = second.privateDatabase(for: session)
      try await mine.document("notes/one").setData(["a": 1])
      if revokes {
        try await first.revokeSessions(of: session.account.uid)
      } else {
        var changes = AccountChanges()
        changes.isDisabled = true
        try await first.updateAccount(session.account.uid, changes)
      }
      // A write reads in its own transaction, so it does not matter whether the second server has
      // heard of it.
      #expect(
        await databaseCode { try await mine.document("notes/one").setData(["a": 2]) }
          == .unauthenticated)
      #expect(
        await code { _ = try await second.updateEmail(token: session.token, to: "a@b.kr") }
          == (revokes ? .userTokenExpired : .userDisabled))
      try await second.database.refresh()
      #expect(
        await code { _ = try await second.session(forToken: session.token) }
          == (revokes ? .userTokenExpired : .userDisabled))
      try await servers.close()
    }
  }
}
