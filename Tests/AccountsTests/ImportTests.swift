// People from another system sign in with their passwords: by Firebase's variant of scrypt and by
// scrypt itself, compared with published vectors. The first sign-in converts the password to this
// store's form. Parameters out of bounds are refused.

import Foundation
import Ondol
import OndolAccounts
import OndolTestKit
import Testing

@Suite struct ImportTests {
  private static func bytes(_ base64: String) throws -> [UInt8] {
    Array(try #require(Data(base64Encoded: base64)))
  }

  /// Firebase's variant with cheap scrypt parameters, and its result for "rattan lamp".
  private static func cheapFirebase() throws -> (PasswordHashFormat, hash: [UInt8]) {
    let format = try PasswordHashFormat.firebaseScrypt(
      signerKey: Array(0..<64), saltSeparator: [7], rounds: 1, memoryCost: 1)
    let hash = try bytes(
      "+wEz68Qi2BR8juJ1TIdWFoZAye7TaLZ43VSokJw15ld8lbelu4kgWVHv2sVJmcJttHLoSHz12jZ9764/OF5dig==")
    return (format, hash)
  }

  private static func person(_ uid: String, _ email: String? = nil) throws -> ImportedAccount {
    var account = ImportedAccount(uid: uid)
    account.email = email
    account.passwordHash = try cheapFirebase().hash
    account.passwordSalt = Array("salt one".utf8)
    return account
  }

  private static func changed(
    _ uid: String, _ change: (inout ImportedAccount) -> Void
  ) throws -> ImportedAccount {
    var account = try person(uid)
    change(&account)
    return account
  }

  // The example of github.com/firebase/scrypt.
  @Test func `Firebase's own example signs in, and only with its password`() async throws {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    let format = try PasswordHashFormat.firebaseScrypt(
      signerKey: try Self.bytes(
        "jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA=="),
      saltSeparator: try Self.bytes("Bw=="), rounds: 8, memoryCost: 14)
    var account = ImportedAccount(uid: "one")
    account.email = "user1@example.com"
    account.passwordSalt = try Self.bytes("42xEC+ixf3L2lw==")
    account.passwordHash = try Self.bytes(
      "lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ==")
    let result = try await accounts.importAccounts([account], passwords: format)
    #expect(result.successCount == 1 && result.failures.isEmpty)
    for password in ["user1passwore", "", "user1password "] {
      #expect(
        await code {
          _ = try await accounts.signIn(withEmail: "user1@example.com", password: password)
        } == .invalidCredential, "\(password)")
    }
    let session = try await accounts.signIn(
      withEmail: "user1@example.com", password: "user1password")
    #expect(session.account.uid == "one")
    try await database.close()
  }

  // The second example of RFC 7914's section 12.
  @Test func `Scrypt's own example signs in`() async throws {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    let hash =
      "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2"
      + "d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887"
    let bytes = stride(from: 0, to: hash.count, by: 2).compactMap {
      UInt8(hash.dropFirst($0).prefix(2), radix: 16)
    }
    #expect(bytes.count == 64)
    var account = ImportedAccount(uid: "one")
    account.email = "a@b.kr"
    account.passwordSalt = Array("SodiumChloride".utf8)
    let format = try PasswordHashFormat.scrypt(
      memoryCost: 16_384, blockSize: 8, parallelization: 1)
    // A shorter key of the same password begins with the same bytes.
    for length in [32, 48, 64] {
      account.passwordHash = Array(bytes.prefix(length))
      let result = try await accounts.importAccounts([account], passwords: format)
      #expect(result.successCount == 1)
      _ = try await accounts.signIn(withEmail: "a@b.kr", password: "pleaseletmein")
    }
    try await database.close()
  }

  @Test func `The first sign-in makes an imported password one of this store`() async throws {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    let (format, hash) = try Self.cheapFirebase()
    let account = try Self.person("one", "a@b.kr")
    _ = try await accounts.importAccounts([account], passwords: format)
    #expect(trial.runs.take().isEmpty)
    // Neither their hash nor their key is in the database.
    let imported = try await database.document("accounts/one").getDocument().data()
    guard case .map(let before) = imported["password"] else {
      Issue.record("no password")
      return
    }
    #expect(before["form"] == .string("firebase"))
    #expect(before["key"] != .bytes(hash) && before["key"] != .bytes(Array(hash.prefix(32))))
    #expect(!"\(imported)".contains("\(Array(0..<64 as Range<UInt8>))"))
    #expect(
      await code { _ = try await accounts.signIn(withEmail: "a@b.kr", password: "wrong lamp") }
        == .invalidCredential)
    #expect(trial.runs.take() == [Trial.cheap])
    _ = try await accounts.signIn(withEmail: "a@b.kr", password: Trial.password)
    #expect(trial.runs.take() == [Trial.cheap, Trial.cheap])
    let after = try await database.document("accounts/one").getDocument().data()["password"]
    guard case .map(let stored) = after else {
      Issue.record("no password")
      return
    }
    #expect(stored["form"] == nil && stored["salt"] != before["salt"])
    _ = try await accounts.signIn(withEmail: "a@b.kr", password: Trial.password)
    #expect(trial.runs.take() == [Trial.cheap])
    try await database.close()
  }

  @Test func `An unknown address costs as much as imported passwords`() async throws {
    let trial = Trial()
    let database = try await trial.database()
    for round in 0..<2 {
      // At once, and after a restart.
      let accounts = try await trial.accounts(in: database)
      if round == 0 {
        let format = try PasswordHashFormat.firebaseScrypt(
          signerKey: Array(0..<64), saltSeparator: [7], rounds: 2, memoryCost: 3)
        _ = try await accounts.importAccounts([try Self.person("one")], passwords: format)
      }
      var runs: Set<PasswordHashing> = []
      for number in 0..<64 {
        _ = await code {
          _ = try await accounts.signIn(
            withEmail: "\(round)-\(number)@b.kr", password: "wrong lamp")
        }
        runs.formUnion(trial.runs.take())
      }
      #expect(runs == [Trial.cheap, PasswordHashing(unchecked: 8, 2, 1)])
    }
    try await database.close()
  }

  @Test func `Parameters out of bounds are refused`() throws {
    func firebase(
      _ key: Int = 64, _ separator: Int = 1, rounds: Int = 8, memory: Int = 14
    ) -> AuthErrorCode? {
      do throws(AuthError) {
        _ = try PasswordHashFormat.firebaseScrypt(
          signerKey: Array(repeating: 0, count: key),
          saltSeparator: Array(repeating: 0, count: separator), rounds: rounds,
          memoryCost: memory)
        return nil
      } catch {
        return error.code
      }
    }
    #expect(
      firebase() == nil && firebase(32) == nil && firebase(64, 0, rounds: 1, memory: 1) == nil)
    for wrong in [
      firebase(31), firebase(1_025), firebase(64, 65), firebase(rounds: 0), firebase(rounds: 9),
      firebase(rounds: .min), firebase(memory: 0), firebase(memory: 15), firebase(memory: .max),
    ] {
      #expect(wrong == .invalidHashParameters)
    }
    func scrypt(_ cost: Int, _ block: Int, _ parallel: Int) -> AuthErrorCode? {
      do throws(AuthError) {
        _ = try PasswordHashFormat.scrypt(
          memoryCost: cost, blockSize: block, parallelization: parallel)
        return nil
      } catch {
        return error.code
      }
    }
    #expect(scrypt(1_024, 8, 16) == nil && scrypt(2, 1, 1) == nil && scrypt(1 << 20, 8, 1) == nil)
    for (cost, block, parallel) in [
      (0, 8, 1), (1, 8, 1), (3, 8, 1), (-2, 8, 1), (Int.max, 8, 1), (Int.min, 8, 1), (2, 0, 1),
      (2, 65, 1), (2, .max, 1), (2, 1, 0), (2, 1, .max), (1 << 24, 8, 1), (1 << 20, 64, 64),
    ] {
      #expect(scrypt(cost, block, parallel) == .invalidHashParameters, "\(cost) \(block)")
    }
  }

  @Test func `One that cannot be taken stops none of the others, and says why`() async throws {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    var taken = NewAccount(uid: "taken")
    taken.email = "taken@b.kr"
    taken.phoneNumber = "+8210"
    _ = try await accounts.createAccount(taken)
    let (format, hash) = try Self.cheapFirebase()
    let person = Self.changed
    let people = try [
      person("a") { $0.email = "a@b.kr" },
      person("b") { $0.email = "TAKEN@b.kr" },
      person("c") { $0.email = "A@b.kr" },
      person("d") { $0.phoneNumber = "+82 10" },
      person("e") { $0.email = "nobody" },
      person("f") { $0.phoneNumber = "1" },
      person("g") { $0.displayName = "" },
      person("h") { $0.photoURL = "x" },
      person("i") { $0.passwordHash = Array(hash.prefix(63)) },
      person("j") { $0.passwordHash = [] },
      person("a") { $0.email = "other@b.kr" },
      person("") { $0.email = nil },
      person("k") { $0.passwordHash = nil },
    ]
    let result = try await accounts.importAccounts(people, passwords: format)
    #expect(result.successCount == 2)
    #expect(result.failures.map(\.index) == Array(1...11))
    #expect(
      result.failures.map(\.error.code) == [
        .emailAlreadyInUse, .emailAlreadyInUse, .credentialAlreadyInUse, .invalidEmail,
        .invalidPhoneNumber, .invalidDisplayName, .invalidPhotoURL, .invalidPasswordHash,
        .invalidPasswordHash, .uidAlreadyInUse, .invalidUID,
      ])
    #expect(try await accounts.listAccounts().accounts.map(\.uid) == ["a", "k", "taken"])
    // A hash needs its parameters.
    let without = try await accounts.importAccounts([try Self.person("z")])
    #expect(without.failures.map(\.error.code) == [.invalidPasswordHash])
    let many = Array(repeating: ImportedAccount(uid: "a"), count: 1_001)
    #expect(await code { _ = try await accounts.importAccounts(many) } == .invalidCount)
    try await database.close()
  }

  @Test func `An import that is refused leaves the account as it was, session and all`()
    async throws
  {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    var taken = NewAccount(uid: "taken")
    taken.email = "taken@b.kr"
    taken.phoneNumber = "+8210"
    _ = try await accounts.createAccount(taken)
    let format = try Self.cheapFirebase().0
    let session = try await accounts.createUser(withEmail: "x@b.kr", password: "bamboo lamp")
    for change in [
      { (account: inout ImportedAccount) in account.email = "taken@b.kr" },
      { $0.phoneNumber = "+8210" },
    ] {
      let replaced = try Self.changed(session.account.uid, change)
      let refused = try await accounts.importAccounts([replaced], passwords: format)
      #expect(refused.successCount == 0 && refused.failures.count == 1)
      #expect(try await accounts.session(forToken: session.token).account == session.account)
    }
    _ = try await accounts.signIn(withEmail: "x@b.kr", password: "bamboo lamp")
    try await database.close()
  }

  @Test func `An account with the uid is replaced, and its earlier sessions and codes end`()
    async throws
  {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database)
    let session = try await accounts.createUser(
      withEmail: "old@b.kr", password: "bamboo lamp", profile: ["name": "민지"])
    let uid = session.account.uid
    _ = try await accounts.generateRecoveryCodes(token: session.token)
    var changes = AccountChanges()
    changes.phoneNumber = .set("+8210")
    changes.isDisabled = true
    try await accounts.updateAccount(uid, changes)
    let reset = try await accounts.makeActionCode(.emailSignIn, forEmail: "old@b.kr")
    var account = try Self.person(uid, "new@b.kr")
    account.isEmailVerified = true
    account.displayName = "김민지"
    account.customClaims = try CustomClaims(["admin": true])
    account.creationTime = try Timestamp(microsecondsSince1970: 1_000_000)
    account.lastSignInTime = try Timestamp(microsecondsSince1970: 2_000_000)
    let format = try Self.cheapFirebase().0
    for _ in 0..<2 {
      let result = try await accounts.importAccounts([account], passwords: format)
      #expect(result.successCount == 1)
      let found = try #require(try await accounts.findAccount(.uid(uid)))
      #expect(found.email == "new@b.kr" && found.isEmailVerified && found.hasPassword)
      #expect(found.displayName == "김민지" && found.phoneNumber == nil && !found.isDisabled)
      #expect(found.customClaims == account.customClaims)
      #expect(found.creationTime == account.creationTime)
      #expect(found.lastSignInTime == account.lastSignInTime)
      #expect(found.recoveryCodeCount == 0)
      #expect(found.profilePath == session.account.profilePath)
    }
    #expect(
      await code { _ = try await accounts.session(forToken: session.token) } == .userTokenExpired)
    #expect(try await accounts.findAccount(.email("old@b.kr")) == nil)
    // The code went to an address that no longer belongs to an account.
    let other = try await accounts.signIn(withEmail: "old@b.kr", code: reset)
    #expect(other.account.uid != uid)
    let again = try await accounts.signIn(withEmail: "new@b.kr", password: Trial.password)
    #expect(again.account.uid == uid)
    #expect(again.account.profilePath == session.account.profilePath)
    try await database.close()
  }

  @Test func `Hundreds are imported in hundreds, and a repeat completes it after any power cut`()
    async throws
  {
    let format = try Self.cheapFirebase().0
    let people = try (0..<250).map { try Self.person("\($0)", "\($0)@b.kr") }
    let first = Trial()
    var database = try await first.database()
    var accounts = try await first.accounts(in: database)
    let before = first.device.operations
    #expect(try await accounts.importAccounts(people, passwords: format).successCount == 250)
    let needed = first.device.operations - before
    #expect(needed > 0)
    for step in stride(from: 0, to: needed, by: max(1, needed / 5)) {
      let trial = Trial(seed: UInt64(step + 1))
      database = try await trial.database()
      accounts = try await trial.accounts(in: database)
      trial.device.powerCut(after: step)
      _ = try? await accounts.importAccounts(people, passwords: format)
      trial.device.powerCut()
      database = try await trial.database()
      accounts = try await trial.accounts(in: database)
      let count = try await database.collection("accounts").getDocuments().count
      #expect([0, 100, 200, 250].contains(count), "\(step)")
      #expect(try await accounts.importAccounts(people, passwords: format).successCount == 250)
      #expect(try await accounts.listAccounts().accounts.count == 250, "\(step)")
      _ = try await accounts.signIn(withEmail: "249@b.kr", password: Trial.password)
      try await database.close()
    }
  }
}
