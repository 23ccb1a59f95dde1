// An account is created whole or not at all, an address has one owner under races and restarts, and
// a session survives a restart.

import Ondol
import OndolAccounts
import OndolTestKit
import Testing

@Suite struct SignUpTests {
  private struct Profile: Codable, Equatable {
    var name: String
    var picture: BlobReference?
  }

  private struct Refused: Encodable {
    func encode(to encoder: any Encoder) throws { throw CancellationError() }
  }

  private static let email = "minji@example.com"

  @Test func `Profile and picture come with the account, and go with it`() async throws {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    let picture: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
    let session = try await accounts.createUser(
      withEmail: Self.email, password: Trial.password, profile: Profile(name: "민지"),
      picture: picture)
    let path = try #require(session.account.profilePath)
    #expect(path == "users/\(session.account.uid)")
    let stored = try await database.document(path).getDocument()
    let account = try await database.collection("accounts").document(session.account.uid)
      .getDocument()
    // One commit wrote them.
    #expect(stored.version == account.version)
    let profile = try stored.data(as: Profile.self)
    #expect(profile.name == "민지")
    let blob = try #require(profile.picture)
    #expect(Array(try await database.storage.data(of: blob)) == picture)

    try await accounts.privateDatabase(for: session).document("notes/one").setData(["a": 1])
    try await accounts.delete(token: session.token)
    #expect(try await !database.document(path).getDocument().exists)
    let notes = database.collection("privateData").document(session.account.uid)
      .collection("notes")
    #expect(try await notes.getDocuments().isEmpty)
    #expect(try await database.storage.statistics().heldBytes == 0)
    #expect(try await database.collection("accountSessions").getDocuments().isEmpty)
    // The address is free again.
    _ = try await accounts.createUser(withEmail: Self.email, password: Trial.password)
    try await database.close()
  }

  @Test func `Nothing is left of a sign-up that is refused`() async throws {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    _ = try await accounts.createUser(withEmail: Self.email, password: Trial.password)
    let before = try await trial.stored(database)
    let taken = await code {
      _ = try await accounts.createUser(
        withEmail: Self.email, password: Trial.password, profile: Profile(name: "하준"),
        picture: [1, 2, 3] as [UInt8])
    }
    #expect(taken == .emailAlreadyInUse)
    // A profile that cannot be stored, after all checks.
    let refused = await code {
      _ = try await accounts.createUser(
        withEmail: "hajun@example.com", password: Trial.password, profile: Refused(),
        picture: [4, 5, 6] as [UInt8])
    }
    #expect(refused == .internalError)
    #expect(try await trial.stored(database) == before)
    #expect(try await database.collection("users").getDocuments().isEmpty)
    #expect(try await database.storage.statistics().heldBytes == 0)
    try await database.close()
  }

  @Test func `Of sign-ups that race for an address one wins, with its profile alone`() async throws
  {
    for seed in Seeds.first(5) {
      let trial = Trial(seed: seed)
      let database = try await trial.database()
      let accounts = try await trial.accounts(in: database)
      // All spellings are one address.
      let spellings = ["race@example.com", "race@EXAMPLE.com", " race@Example.Com "]
      let results = await withTaskGroup(of: Result<Session, AuthError>.self) { group in
        for number in 0..<12 {
          group.addTask {
            do throws(AuthError) {
              return .success(
                try await accounts.createUser(
                  withEmail: spellings[number % spellings.count], password: Trial.password,
                  profile: Profile(name: "\(number)"), picture: [UInt8(number)]))
            } catch {
              return .failure(error)
            }
          }
        }
        return await group.reduce(into: []) { $0.append($1) }
      }
      let winners = results.compactMap { try? $0.get() }
      let codes = results.compactMap { result -> AuthErrorCode? in
        if case .failure(let error) = result { error.code } else { nil }
      }
      #expect(winners.count == 1, "seed \(seed)")
      #expect(codes == Array(repeating: .emailAlreadyInUse, count: 11), "seed \(seed)")
      let users = try await database.collection("users").getDocuments().documents
      #expect(users.map(\.documentID) == winners.map(\.account.uid))
      #expect(try await database.collection("accounts").getDocuments().count == 1)
      #expect(try await database.storage.statistics().heldBytes == 1)
      try await database.close()
    }
  }

  @Test func `A change of address races with a sign-up for it`() async throws {
    for seed in Seeds.first(5) {
      let trial = Trial(seed: seed)
      let database = try await trial.database()
      let accounts = try await trial.accounts(in: database)
      let session = try await accounts.createUser(withEmail: "a@b.kr", password: Trial.password)
      async let change = code {
        _ = try await accounts.updateEmail(token: session.token, to: "new@b.kr")
      }
      async let signUp = code {
        _ = try await accounts.createUser(withEmail: "new@B.KR", password: Trial.password)
      }
      let codes = await [change, signUp]
      #expect(codes.count { $0 == nil } == 1, "seed \(seed)")
      #expect(codes.contains(.emailAlreadyInUse), "seed \(seed)")
      try await database.close()
    }
  }

  @Test func `A new account survives a power cut, and its address stays taken`() async throws {
    for seed in Seeds.first(10) {
      let trial = Trial(seed: seed)
      var database = try await trial.database()
      var accounts = try await trial.accounts(in: database)
      let session = try await accounts.createUser(withEmail: Self.email, password: Trial.password)
      trial.device.powerCut()
      database = try await trial.database()
      accounts = try await trial.accounts(in: database)
      let found = try await accounts.session(forToken: session.token)
      #expect(found.account == session.account, "seed \(seed)")
      let taken = await code {
        _ = try await accounts.createUser(withEmail: Self.email, password: Trial.password)
      }
      #expect(taken == .emailAlreadyInUse, "seed \(seed)")
      _ = try await accounts.signIn(withEmail: Self.email, password: Trial.password)
      try await database.close()
    }
  }

  @Test func `A sign-up is whole or absent after any power cut`() async throws {
    // The number of its operations.
    let first = Trial()
    let untouched = try await first.accounts(in: try await first.database())
    let before = first.device.operations
    _ = try await untouched.createUser(
      withEmail: Self.email, password: Trial.password, profile: Profile(name: "민지"),
      picture: [1, 2, 3] as [UInt8])
    let needed = first.device.operations - before
    #expect(needed > 0)
    for step in 0..<needed {
      let trial = Trial(seed: UInt64(step + 1))
      var database = try await trial.database()
      let accounts = try await trial.accounts(in: database)
      trial.device.powerCut(after: step)
      _ = try? await accounts.createUser(
        withEmail: Self.email, password: Trial.password, profile: Profile(name: "민지"),
        picture: [1, 2, 3] as [UInt8])
      trial.device.powerCut()
      database = try await trial.database()
      let people = try await database.collection("accounts").getDocuments().count
      #expect(try await database.collection("users").getDocuments().count == people, "\(step)")
      let sessions = try await database.collection("accountSessions").getDocuments().count
      #expect(sessions == people, "\(step)")
      #expect(try await database.storage.statistics().heldBytes == people * 3, "\(step)")
      try await database.close()
    }
  }
}
