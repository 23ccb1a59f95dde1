// Codes that people read somewhere and type here: those that they wrote down, and those that came
// by mail. Both are random and long enough that nobody guesses one. The database has digests that
// only its own secret makes, so that who steals it cannot look for the codes either.

internal import Crypto
internal import Foundation

/// A code of 16 letters and digits, 80 random bits.
struct TypedCode: Sendable {
  /// Without those that look alike: I, L, O and U.
  private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ")
  private static let length = 16
  private static let group = 4
  /// Letters by which a code that was mailed is found. The others are compared, and guesses at
  /// these are counted.
  private static let nameLength = 6

  private let letters: String

  init(_ random: () -> UInt64) {
    letters = String(
      Randomness.bytes(Self.length, random).map { Self.alphabet[Int($0) % Self.alphabet.count] })
  }

  /// Nil for what cannot be one.
  init?(typed: String) {
    let letters = typed.uppercased().filter { $0 != "-" && !$0.isWhitespace }
      .map { $0 == "O" ? "0" : $0 == "I" || $0 == "L" ? "1" : $0 }
    guard letters.count == Self.length, letters.allSatisfy(Self.alphabet.contains) else {
      return nil
    }
    self.letters = String(letters)
  }

  /// As it is shown.
  var text: String {
    letters.enumerated().map { place, letter in
      place > 0 && place.isMultiple(of: Self.group) ? "-\(letter)" : "\(letter)"
    }.joined()
  }

  /// What is stored of one that the owner of an account wrote down.
  func recoveryDigest(_ settings: SettingsRecord, _ uid: String) -> Data {
    settings.digest("recovery code", "\(uid)\0\(letters)")
  }

  /// The part that one that was mailed is found by.
  var name: String { String(letters.prefix(Self.nameLength)) }

  /// What is stored of one that was mailed.
  func mailedDigest(_ settings: SettingsRecord, _ operation: ActionCodeOperation) -> Data {
    settings.digest("mailed code", "\(operation.rawValue)\0\(letters)")
  }
}
