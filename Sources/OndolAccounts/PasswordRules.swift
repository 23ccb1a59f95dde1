// Rules for passwords. They refuse the passwords that attackers try first: the person's own
// address, adjacent keys, and the entries of the app's list. They do not require capitals, digits
// or signs: such rules produce `Password1!`, which is no harder to guess.

internal import Foundation

/// Passwords that the library refuses in every app.
enum PasswordRules {
  private static let mostBytes = 1_024
  /// Common passwords that follow no simple order.
  private static let commonest = CommonPasswords([
    "password", "password1", "passw0rd", "p@ssw0rd", "qwerty123", "1q2w3e4r", "1q2w3e4r5t",
    "1qaz2wsx", "q1w2e3r4", "zxcvbnm1", "iloveyou", "sunshine", "princess", "football", "baseball",
    "superman", "trustno1", "letmein1",
  ])

  /// The bytes to hash, in composed form, so that all keyboards give the same ones.
  static func bytes(of password: String) -> [UInt8] {
    Array(password.precomposedStringWithCanonicalMapping.utf8)
  }

  /// Whether an account could have this password at all.
  static func isPossible(_ bytes: [UInt8]) -> Bool { (1...mostBytes).contains(bytes.count) }

  /// Throws `.weakPassword` for a password that is too easy to guess.
  ///
  /// - Parameters:
  ///   - address: the account's address; nil if it has none.
  ///   - refusesSimple: whether rules other than the length apply.
  static func check(
    _ password: String, for address: EmailAddress?, leastLength: Int, refusesSimple: Bool
  ) throws(AuthError) {
    guard password.count >= max(1, leastLength) else {
      throw AuthError(.weakPassword, "a password must have at least \(leastLength) characters")
    }
    guard isPossible(bytes(of: password)) else {
      throw AuthError(.weakPassword, "a password must have at most \(mostBytes) bytes")
    }
    guard refusesSimple else { return }
    let plain = CaseFolding.fold(password)
    guard address.map({ !isAddress(password, plain, $0) }) ?? true else {
      throw AuthError(.weakPassword, "a password must not be the address or the name in it")
    }
    // Also checks the typed form: in the other form, single letters of Korean join.
    guard Set(plain).count > 2, !SimpleRuns.make(plain), !SimpleRuns.make(password.lowercased())
    else {
      throw AuthError(.weakPassword, "this password is a simple row of letters or digits")
    }
    guard !commonest.contains(password) else { throw .commonPassword }
  }

  /// Whether a password is the address, in any spelling, or the name in it.
  private static func isAddress(
    _ password: String, _ plain: String, _ address: EmailAddress
  ) -> Bool {
    let local = address.key.prefix(upTo: address.key.lastIndex(of: "@") ?? address.key.endIndex)
    return plain == address.key || plain == local
      || (try? EmailAddress(password))?.key == address.key
  }
}

extension AuthError {
  static var commonPassword: AuthError {
    AuthError(.weakPassword, "this password is one of the first that others would try")
  }
}

extension Accounts {
  /// Throws `.weakPassword` for a password that an account may not have.
  func check(_ password: String, for address: EmailAddress?) async throws(AuthError) {
    try PasswordRules.check(
      password, for: address, leastLength: options.minimumPasswordLength,
      refusesSimple: options.refusesSimplePasswords)
    if options.commonPasswords?.contains(password) == true { throw .commonPassword }
    guard let policy = options.passwordPolicy else { return }
    guard await policy(password, address?.text ?? "") else {
      throw AuthError(.weakPassword, "the app does not take this password; choose another")
    }
  }
}

/// Rows of letters, digits and keys that people use as passwords.
enum SimpleRuns {
  /// A shorter piece is chance.
  private static let leastLength = 3

  /// The successor of each character in alphabets, digits and keyboard rows.
  private static let rows: [[Character: Int]] = [
    "abcdefghijklmnopqrstuvwxyz", "01234567890", "1234567890", "qwertyuiopasdfghjklzxcvbnm",
    "qwertzuiopasdfghjklyxcvbnm", "azertyuiopqsdfghjklmwxcvbn", "йцукенгшщзхъфывапролджэячсмитьбю",
    "абвгдеёжзийклмнопрстуфхцчшщъыьэюя", "ㅂㅈㄷㄱㅅㅛㅕㅑㅐㅔㅁㄴㅇㄹㅎㅗㅓㅏㅣㅋㅌㅊㅍㅠㅜㅡ", "ㄱㄴㄷㄹㅁㅂㅅㅇㅈㅊㅋㅌㅍㅎ",
    "가나다라마바사아자차카타파하",
  ].map { row in
    Dictionary(row.enumerated().map { ($1, $0) }) { first, _ in first }
  }

  /// Whether the password consists only of runs: ascending, descending or one repeated letter.
  ///
  /// - Complexity: O(letters).
  static func make(_ text: String) -> Bool {
    var rest = Array(text)[...]
    while !rest.isEmpty {
      let length = longestRun(rest)
      guard length >= leastLength else { return false }
      rest = rest.dropFirst(length)
    }
    return true
  }

  /// The letters at the front that form one run.
  private static func longestRun(_ letters: ArraySlice<Character>) -> Int {
    guard let first = letters.first else { return 0 }
    var longest = letters.prefix { $0 == first }.count
    for row in rows {
      for step in [1, -1] {
        guard var place = row[first] else { continue }
        var length = 1
        for letter in letters.dropFirst() {
          guard let next = row[letter], next == place + step else { break }
          place = next
          length += 1
        }
        longest = max(longest, length)
      }
    }
    return longest
  }
}
