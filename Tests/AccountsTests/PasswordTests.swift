// Which passwords are refused: those that everybody tries first, those on the app's list, and those
// that the app itself rejects, wherever a password is set.

import Foundation
import Ondol
import OndolAccounts
import OndolTestKit
import Testing

@Suite struct PasswordTests {
  private static let email = "minji.kim@b\u{FC}cher.example"

  private static func isWeak(
    _ password: String, _ change: (inout Accounts.Options) -> Void = { _ in }
  ) async throws -> Bool {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database, Trial.cheap, change)
    let found = await code {
      _ = try await accounts.createUser(withEmail: email, password: password)
    }
    #expect(found == nil || found == .weakPassword)
    // A refused password is not hashed.
    #expect(trial.runs.take().isEmpty == (found != nil))
    try await database.close()
    return found == .weakPassword
  }

  @Test(arguments: [
    "", "short12", "password", "PASSWORD", "\u{FF50}assword", "P@ssw0rd",
    String(repeating: "ab cd", count: 300),
    // The address, in any spelling, and the name in it.
    email, "MINJI.KIM@xn--bcher-kva.example", "Minji.Kim",
    // One letter, or two.
    "aaaaaaaaaa", "abababababab",
    // Rows, up and down, alone and together.
    "12345678", "87654321", "1234567890", "abcdefgh", "ABCDEFGH", "zyxwvuts", "qwertyuiop",
    "poiuytrewq", "asdfghjkl", "abcd1234", "qwer1234", "123123123", "aaabbbccc", "abc123abc",
    "qwertzuiop", "azertyuiop", "йцукенгш", "ㅂㅈㄷㄱㅅㅛㅕㅑ", "가나다라마바사아",
  ])
  func `Passwords that everybody tries first are refused`(_ password: String) async throws {
    #expect(try await Self.isWeak(password))
  }

  @Test(arguments: ["password", "123456", email, "Minji.Kim", "aaaaaa"])
  func `If simple passwords are allowed, only the length counts`(_ password: String) async throws {
    let isWeak = try await Self.isWeak(password) {
      $0.refusesSimplePasswords = false
      $0.minimumPasswordLength = 6
    }
    #expect(!isWeak)
    #expect(
      try await Self.isWeak(String(password.prefix(5))) {
        $0.refusesSimplePasswords = false
        $0.minimumPasswordLength = 6
      })
    // A password that the app itself refuses stays refused.
    #expect(
      try await Self.isWeak(password) {
        $0.refusesSimplePasswords = false
        $0.commonPasswords = CommonPasswords([password])
      })
  }

  @Test(arguments: [
    "rattan lamp 7", "minji.kim7", "abcdefgh lamp", "lamp12345678", "라탄 조명 일곱",
    "correct horse battery staple", "12lamp34",
  ])
  func `More complex passwords are accepted`(_ password: String) async throws {
    #expect(try await !Self.isWeak(password))
  }

  @Test func `A list of the app's is a file with a password a line`() async throws {
    let place = FileManager.default.temporaryDirectory
      .appending(path: "ondol-common-\(UInt64.random(in: 0 ... .max)).txt")
    defer { try? FileManager.default.removeItem(at: place) }
    let long = String(repeating: "lamp ", count: 300)
    let text = "bamboo lamp\r\nOLD BOOT\n\n\(long)\nbamboo lamp\nlast of all"
    try Data(text.utf8).write(to: place)
    let common = try CommonPasswords(contentsOf: place.path)
    #expect(common.count == 3)
    for password in ["bamboo lamp", "Bamboo Lamp", "old boot", "\u{FF4F}ld boot", "last of all"] {
      #expect(common.contains(password), "\(password)")
    }
    for password in ["", "bamboo lam", "bamboo lamp\r", "lamp", long] {
      #expect(!common.contains(password), "\(password)")
    }
    #expect(try await Self.isWeak("Bamboo Lamp") { $0.commonPasswords = common })
    #expect(try await !Self.isWeak("bamboo lamps") { $0.commonPasswords = common })
    let missing = #expect(throws: AuthError.self) {
      _ = try CommonPasswords(contentsOf: place.path + ".missing")
    }
    #expect(missing?.code == .internalError)
  }

  @Test func `Every one of many is found, and no other`() {
    let common = CommonPasswords((0..<20_000).map { "password \($0)" } + ["", "password 7"])
    #expect(common.count == 20_000)
    #expect((0..<20_000).allSatisfy { common.contains("Password \($0)") })
    #expect((20_000..<40_000).allSatisfy { !common.contains("password \($0)") })
    #expect(!CommonPasswords([String]()).contains("password"))
  }

  @Test func `The app's own policy is asked wherever a password is set`() async throws {
    let trial = Trial()
    let database = try await trial.database()
    let accounts = try await trial.accounts(in: database) { options in
      options.passwordPolicy = { password, email in
        !password.contains("forbidden") && email == "Minji@b.kr"
      }
    }
    #expect(
      await code {
        _ = try await accounts.createUser(withEmail: "Minji@b.kr", password: "forbidden lamp")
      } == .weakPassword)
    let session = try await accounts.createUser(withEmail: "Minji@b.kr", password: Trial.password)
    let recovery = try #require(
      try await accounts.generateRecoveryCodes(token: session.token).first)
    #expect(
      await code {
        _ = try await accounts.updatePassword(token: session.token, to: "forbidden lamp")
      } == .weakPassword)
    #expect(
      await code {
        _ = try await accounts.resetPassword(
          withEmail: "Minji@b.kr", recoveryCode: recovery, newPassword: "forbidden lamp")
      } == .weakPassword)
    // Sign-in checks no rules.
    _ = try await accounts.signIn(withEmail: "Minji@b.kr", password: Trial.password)
    _ = try await accounts.resetPassword(
      withEmail: "Minji@b.kr", recoveryCode: recovery, newPassword: "another lamp")
    try await database.close()
  }
}
