// Accounts, sessions and settings of versions before anonymous accounts are read unchanged, and an
// account without new features is still written as such a version would write it.

import Foundation
import Ondol
import OndolAccounts
import OndolTestKit
import Testing

@Suite struct EarlierRecordTests {
  private static let uid = "AbCdEfGhIjKlMnOpQrSt"
  private static let email = "Minji@Example.com"
  /// Thirty-two bytes, each of them seven, as a token and as its digest.
  private static let token = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc"
  private static let digest = "4bb06f8e4e3a7715d201d573d0aa423762e55dabd61a2c02278fa56cc6d294e0"

  private static func time(_ seconds: Int64) throws -> Timestamp {
    try Timestamp(microsecondsSince1970: seconds * 1_000_000)
  }

  /// What those versions stored of "rattan lamp", with cheap scrypt parameters.
  private static func password() throws -> Value {
    let key = try #require(Data(base64Encoded: "Z0/GhScWhxuJzio53VHP/3X8K4mguM08TchCajARUzw="))
    return .map([
      "hashing": .map([
        "rounds": .integer(2), "blockSize": .integer(1), "parallelism": .integer(1),
      ]),
      "salt": .bytes(Array(0..<16)), "key": .bytes(Array(key)),
    ])
  }

  /// Writes the documents of a database of such a version.
  private static func write(_ database: Database) async throws {
    try await database.collection("accounts").createIndex(on: ["emailKey"], unique: true)
    try await database.document("accountSettings/current").setData([
      "secret": Value.bytes([UInt8](repeating: 3, count: 32)),
      "hashings": Value.array([
        .map(["rounds": .integer(2), "blockSize": .integer(1), "parallelism": .integer(1)])
      ]),
      "addressForm": Value.integer(2),
    ])
    try await database.collection("accounts").document(uid).setData([
      "email": Value.string(email), "emailKey": .string("minji@example.com"),
      "password": try password(), "passwordVersion": .integer(3),
      "recoveryCodes": .array([.bytes([UInt8](repeating: 1, count: 32))]),
      "isEmailVerified": .boolean(true), "createdAt": .timestamp(try time(1_000)),
      "lastSignInAt": .timestamp(try time(2_000)),
    ])
    try await database.collection("accountSessions").document(digest).setData([
      "uid": Value.string(uid), "passwordVersion": .integer(3),
      "createdAt": .timestamp(try time(2_000)), "authenticatedAt": .timestamp(try time(3_000)),
    ])
  }

  @Test func `An account and a session of an earlier version are unchanged`() async throws {
    let trial = Trial()
    let database = try await trial.database()
    try await Self.write(database)
    let accounts = try await trial.accounts(in: database)
    let session = try await accounts.session(forToken: Self.token)
    let account = session.account
    #expect(account.uid == Self.uid)
    #expect(account.email == Self.email)
    #expect(account.isEmailVerified && account.hasPassword)
    #expect(!account.isAnonymous && !account.isDisabled)
    #expect(account.displayName == nil && account.phoneNumber == nil && account.photoURL == nil)
    #expect(account.customClaims.isEmpty)
    #expect(account.creationTime == (try Self.time(1_000)))
    #expect(account.lastSignInTime == (try Self.time(2_000)))
    #expect(account.tokensValidAfterTime == account.creationTime)
    #expect(account.recoveryCodeCount == 1)
    #expect(session.provider == .password)
    #expect(session.authenticationTime == (try Self.time(3_000)))
    #expect(session.claims.isEmpty)
    #expect(try await accounts.findAccount(.email("minji@example.com")) == account)
    #expect(try await accounts.listAccounts().accounts == [account])
    #expect(trial.runs.take().isEmpty)
    let again = try await accounts.signIn(withEmail: Self.email, password: Trial.password)
    #expect(again.account.uid == Self.uid)
    #expect(trial.runs.take() == [Trial.cheap])
    // All new features work on it.
    var changes = AccountChanges()
    changes.phoneNumber = .set("+8210")
    changes.isDisabled = true
    changes.customClaims = .set(try CustomClaims(["admin": true]))
    try await accounts.updateAccount(Self.uid, changes)
    #expect(
      await code { _ = try await accounts.session(forToken: Self.token) } == .userDisabled)
    changes.isDisabled = false
    try await accounts.updateAccount(Self.uid, changes)
    #expect(
      await code { _ = try await accounts.session(forToken: Self.token) } == .userTokenExpired)
    try await database.close()
  }

  @Test func `An account that uses nothing new is written as earlier versions wrote it`()
    async throws
  {
    let trial = Trial()
    let database = try await trial.database()
    try await Self.write(database)
    let accounts = try await trial.accounts(in: database)
    let before = try await database.collection("accounts").document(Self.uid).getDocument().data()
    _ = try await accounts.signIn(withEmail: Self.email, password: Trial.password)
    let after = try await database.collection("accounts").document(Self.uid).getDocument().data()
    #expect(Set(after.keys) == Set(before.keys))
    for (name, value) in before where name != "lastSignInAt" {
      #expect(after[name] == value, "\(name)")
    }
    let sessions = try await database.collection("accountSessions").getDocuments().documents
    let old = try #require(sessions.first { $0.documentID == Self.digest }).data()
    let new = try #require(sessions.first { $0.documentID != Self.digest }).data()
    #expect(Set(new.keys) == Set(old.keys))
    // A new account has the members of an old one, except for later additions.
    let made = try await accounts.createUser(withEmail: "a@b.kr", password: Trial.password)
    let document = try await database.collection("accounts").document(made.account.uid)
      .getDocument()
    #expect(Set(document.data().keys).union(["isEmailVerified"]) == Set(before.keys))
    try await database.close()
  }

  @Test func `A record that is damaged is an error and no account`() async throws {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    let damages: [(String, Value)] = [
      ("passwordVersion", .integer(.max)), ("passwordVersion", .string("1")),
      ("revocation", .integer(.max)), ("revocation", .double(0.5)),
      ("customClaims", .string("{\"sub\":1}")), ("customClaims", .string("[")),
      ("isDisabled", .integer(1)), ("createdAt", .null), ("phoneNumber", .integer(1)),
    ]
    for (number, (name, value)) in damages.enumerated() {
      let uid = "\(number)"
      var new = NewAccount(uid: uid)
      new.email = "\(number)@b.kr"
      new.password = Trial.password
      _ = try await accounts.createAccount(new)
      try await database.collection("accounts").document(uid).updateData([name: value])
      var changes = AccountChanges()
      changes.password = .set("bamboo lamp")
      let change = changes
      let codes = await [
        code { _ = try await accounts.findAccount(.uid(uid)) },
        code { try await accounts.revokeSessions(of: uid) },
        code { try await accounts.updateAccount(uid, change) },
      ]
      #expect(codes.allSatisfy { $0 == nil || $0 == .internalError }, "\(name) \(value)")
      if name == "customClaims" {
        #expect(try await accounts.findAccount(.uid(uid))?.customClaims.isEmpty == true)
      } else {
        #expect(codes.contains(.internalError), "\(name) \(value)")
      }
    }
    try await database.close()
  }
}
