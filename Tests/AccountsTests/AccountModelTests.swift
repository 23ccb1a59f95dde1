// Compares administration with a model: a dictionary of accounts, over random calls in random
// order, with power cuts between them, in databases with and without encryption.

import Ondol
import OndolAccounts
import OndolTestKit
import Testing

@Suite struct AccountModelTests {
  /// An account in the model.
  private struct Entry: Equatable {
    var email: String?
    var isEmailVerified = false
    var phoneNumber: String?
    var password: String?
    var displayName: String?
    var isDisabled = false
    var isAnonymous = false
    var claims = "{}"
    /// Its identity at one other service.
    var identity: String?
    /// The tokens of sessions that are valid while the account is not disabled.
    var sessions: [String] = []

    func isSame(as account: Account) -> Bool {
      email == account.email && isEmailVerified == account.isEmailVerified
        && phoneNumber == account.phoneNumber && (password != nil) == account.hasPassword
        && displayName == account.displayName && isDisabled == account.isDisabled
        && isAnonymous == account.isAnonymous && claims == account.customClaims.json
        && identity.map { [$0] } ?? [] == account.identities.map(\.uid)
    }
  }

  private struct Model {
    var entries: [String: Entry] = [:]
    /// Tokens that are no longer valid.
    var ended: Set<String> = []

    func holder(email: String) -> String? { entries.first { $0.value.email == email }?.key }
    func holder(phone: String) -> String? { entries.first { $0.value.phoneNumber == phone }?.key }
    func holder(identity: String) -> String? {
      entries.first { $0.value.identity == identity }?.key
    }

    mutating func endSessions(_ uid: String) {
      ended.formUnion(entries[uid]?.sessions ?? [])
      entries[uid]?.sessions = []
    }
  }

  private static let uids = ["a", "b", "c", "d"]
  private static let emails = ["one@b.kr", "two@b.kr", "three@b.kr"]
  private static let phones = ["+8210", "+8211", "+8212"]
  private static let names = ["민지", "하준"]
  private static let service = "one.example"
  private static let identities = ["x", "y"]

  @Test func `Administration does what a model does, over power cuts and with encryption`()
    async throws
  {
    for seed in Seeds.first(12) {
      let trial = Trial(seed: seed)
      var options = Database.Options()
      if seed % 2 == 0 { options.encryption = .key([UInt8](repeating: 7, count: 32)) }
      var database = try await Database.open(at: Trial.path, options: options, on: trial.device)
      var accounts = try await trial.accounts(in: database)
      var random = SeededRandom(seed: seed)
      var model = Model()
      for step in 0..<160 {
        let found = await Self.act(accounts, &model, &random)
        #expect(found.actual == found.expected, "seed \(seed), step \(step): \(found.name)")
        if random.chance(1, in: 40) {
          trial.device.powerCut()
          database = try await Database.open(at: Trial.path, options: options, on: trial.device)
          accounts = try await trial.accounts(in: database)
        }
        try await Self.compare(accounts, model, "seed \(seed), step \(step): \(found.name)")
      }
      try await database.close()
    }
  }

  private struct Outcome {
    var name: String
    var expected: AuthErrorCode?
    var actual: AuthErrorCode?
  }

  /// Makes one random call on both.
  private static func act(
    _ accounts: Accounts, _ model: inout Model, _ random: inout SeededRandom
  ) async -> Outcome {
    let uid = random.pick(uids)
    switch random.below(8) {
    case 0: return await create(accounts, &model, uid, &random)
    case 1, 2, 3: return await update(accounts, &model, uid, &random)
    case 4: return await signIn(accounts, &model, random.pick(emails))
    case 5:
      let expected: AuthErrorCode? = model.entries[uid] == nil ? .userNotFound : nil
      model.endSessions(uid)
      return Outcome(
        name: "revoke", expected: expected,
        actual: await code { try await accounts.revokeSessions(of: uid) })
    case 6:
      let expected: AuthErrorCode? = model.entries[uid] == nil ? .userNotFound : nil
      model.endSessions(uid)
      model.entries[uid] = nil
      return Outcome(
        name: "delete", expected: expected,
        actual: await code { try await accounts.deleteAccount(uid) })
    default: return await link(accounts, &model, random.pick(emails))
    }
  }

  private static func create(
    _ accounts: Accounts, _ model: inout Model, _ uid: String, _ random: inout SeededRandom
  ) async -> Outcome {
    var new = NewAccount(uid: uid)
    new.email = random.chance(1, in: 2) ? random.pick(emails) : nil
    new.isEmailVerified = random.chance(1, in: 2)
    new.phoneNumber = random.chance(1, in: 3) ? random.pick(phones) : nil
    new.password = random.chance(1, in: 2) ? "rattan lamp \(random.below(3))" : nil
    new.isDisabled = random.chance(1, in: 6)
    let made = new
    var expected: AuthErrorCode?
    if model.entries[uid] != nil {
      expected = .uidAlreadyInUse
    } else if let email = new.email, model.holder(email: email) != nil {
      expected = .emailAlreadyInUse
    } else if let phone = new.phoneNumber, model.holder(phone: phone) != nil {
      expected = .credentialAlreadyInUse
    } else {
      model.entries[uid] = Entry(
        email: new.email, isEmailVerified: new.email != nil && new.isEmailVerified,
        phoneNumber: new.phoneNumber, password: new.password, isDisabled: new.isDisabled)
    }
    return Outcome(
      name: "create", expected: expected,
      actual: await code { _ = try await accounts.createAccount(made) })
  }

  private static func change(
    _ values: [String], _ random: inout SeededRandom
  ) -> PropertyChange<String> {
    switch random.below(4) {
    case 0: .set(random.pick(values))
    case 1: .remove
    default: .keep
    }
  }

  private static func update(
    _ accounts: Accounts, _ model: inout Model, _ uid: String, _ random: inout SeededRandom
  ) async -> Outcome {
    var changes = AccountChanges()
    changes.email = change(emails, &random)
    changes.phoneNumber = change(phones, &random)
    changes.displayName = change(names, &random)
    if random.chance(1, in: 5) { changes.password = change(["bamboo lamp 1"], &random) }
    if random.chance(1, in: 4) { changes.isDisabled = random.chance(1, in: 2) }
    if random.chance(1, in: 4) { changes.isEmailVerified = random.chance(1, in: 2) }
    if random.chance(1, in: 4) { changes.customClaims = .set(.none) }
    if random.chance(1, in: 4), let claims = try? CustomClaims(["level": random.below(3)]) {
      changes.customClaims = .set(claims)
    }
    if random.chance(1, in: 6) { changes.unlinkedProviders = [service] }
    if random.chance(1, in: 5) {
      changes.linkedIdentities = [
        LinkedIdentity(provider: service, uid: random.pick(identities))
      ]
    }
    let asked = changes
    return Outcome(
      name: "update", expected: apply(changes, &model, uid),
      actual: await code { try await accounts.updateAccount(uid, asked) })
  }

  private static func apply(
    _ changes: AccountChanges, _ model: inout Model, _ uid: String
  ) -> AuthErrorCode? {
    guard var entry = model.entries[uid] else { return .userNotFound }
    if case .set(let email) = changes.email {
      guard [nil, uid].contains(model.holder(email: email)) else { return .emailAlreadyInUse }
      if entry.email != email { entry.isEmailVerified = false }
      entry.email = email
      entry.isAnonymous = false
    }
    if changes.email == .remove { (entry.email, entry.isEmailVerified) = (nil, false) }
    if let isVerified = changes.isEmailVerified, entry.email != nil {
      entry.isEmailVerified = isVerified
    }
    if case .set(let phone) = changes.phoneNumber {
      guard [nil, uid].contains(model.holder(phone: phone)) else { return .credentialAlreadyInUse }
      entry.phoneNumber = phone
      entry.isAnonymous = false
    }
    if changes.phoneNumber == .remove { entry.phoneNumber = nil }
    if !changes.unlinkedProviders.isEmpty { entry.identity = nil }
    if let identity = changes.linkedIdentities.first?.uid {
      guard [nil, uid].contains(model.holder(identity: identity)) else {
        return .credentialAlreadyInUse
      }
      (entry.identity, entry.isAnonymous) = (identity, false)
    }
    if case .set(let name) = changes.displayName { entry.displayName = name }
    if changes.displayName == .remove { entry.displayName = nil }
    if case .set(let claims) = changes.customClaims { entry.claims = claims.json }
    var ends = false
    if case .set(let password) = changes.password {
      (entry.password, entry.isAnonymous, ends) = (password, false, true)
    }
    if changes.password == .remove { (entry.password, ends) = (nil, true) }
    if let isDisabled = changes.isDisabled {
      if entry.isDisabled, !isDisabled { ends = true }
      entry.isDisabled = isDisabled
    }
    model.entries[uid] = entry
    if ends { model.endSessions(uid) }
    return nil
  }

  private static func signIn(
    _ accounts: Accounts, _ model: inout Model, _ email: String
  ) async -> Outcome {
    let uid = model.holder(email: email)
    let entry = uid.flatMap { model.entries[$0] }
    let expected: AuthErrorCode? =
      entry?.password == nil ? .invalidCredential : entry?.isDisabled == true ? .userDisabled : nil
    // Enough failures would lock the address.
    guard expected != .invalidCredential else { return Outcome(name: "no sign-in") }
    var session: Session?
    let actual = await code {
      session = try await accounts.signIn(withEmail: email, password: entry?.password ?? "")
    }
    if let uid, let session { model.entries[uid]?.sessions.append(session.token) }
    return Outcome(name: "sign in", expected: expected, actual: actual)
  }

  /// Signs in anonymously, and links an address.
  private static func link(
    _ accounts: Accounts, _ model: inout Model, _ email: String
  ) async -> Outcome {
    guard model.entries.count < 8, let guest = try? await accounts.signInAnonymously() else {
      return Outcome(name: "no link")
    }
    let uid = guest.account.uid
    model.entries[uid] = Entry(isAnonymous: true, sessions: [guest.token])
    let expected: AuthErrorCode? = model.holder(email: email) == nil ? nil : .emailAlreadyInUse
    let actual = await code {
      _ = try await accounts.link(
        token: guest.token, withEmail: email, password: Trial.password)
    }
    if expected == nil {
      model.entries[uid] = Entry(email: email, password: Trial.password, sessions: [guest.token])
    }
    return Outcome(name: "link", expected: expected, actual: actual)
  }

  private static func compare(
    _ accounts: Accounts, _ model: Model, _ place: String
  ) async throws {
    let listed = try await accounts.listAccounts().accounts
    #expect(listed.map(\.uid) == model.entries.keys.sorted(), "\(place)")
    for account in listed {
      #expect(model.entries[account.uid]?.isSame(as: account) == true, "\(place): \(account)")
    }
    for email in emails {
      let found = try await accounts.findAccount(.email(email))?.uid
      #expect(found == model.holder(email: email), "\(place)")
    }
    for phone in phones {
      let found = try await accounts.findAccount(.phoneNumber(phone))?.uid
      #expect(found == model.holder(phone: phone), "\(place)")
    }
    for identity in identities {
      let found = try await accounts.findAccount(.identity(provider: service, uid: identity))?.uid
      #expect(found == model.holder(identity: identity), "\(place)")
    }
    for (_, entry) in model.entries {
      for token in entry.sessions {
        let found = await code { _ = try await accounts.session(forToken: token) }
        #expect(found == (entry.isDisabled ? .userDisabled : nil), "\(place)")
      }
    }
    for token in model.ended {
      #expect(
        await code { _ = try await accounts.session(forToken: token) } == .userTokenExpired,
        "\(place)")
    }
  }
}
