// Codes that people read elsewhere and type here: written recovery codes and mailed codes. Both are
// random and too long to guess. The database keeps digests made with its own secret, so a thief of
// the digests cannot search for the codes.

internal import Crypto
internal import Foundation

/// A code of 16 letters and digits, 80 random bits.
struct TypedCode: Sendable {
  /// Without the lookalikes I, L, O and U.
  private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ")
  private static let length = 16
  private static let group = 4
  /// The number of letters that identify a mailed code. The others are compared, and guesses at
  /// them are counted.
  private static let nameLength = 6

  private let letters: String

  init(_ random: () -> UInt64) {
    letters = String(
      Randomness.bytes(Self.length, random).map { Self.alphabet[Int($0) % Self.alphabet.count] })
  }

  /// Nil for a text that cannot be a code.
  init?(typed: String) {
    let letters = typed.uppercased().filter { $0 != "-" && !$0.isWhitespace }
      .map { $0 == "O" ? "0" : $0 == "I" || $0 == "L" ? "1" : $0 }
    guard letters.count == Self.length, letters.allSatisfy(Self.alphabet.contains) else {
      return nil
    }
    self.letters = String(letters)
  }

  /// The displayed form.
  var text: String {
    letters.enumerated().map { place, letter in
      place > 0 && place.isMultiple(of: Self.group) ? "-\(letter)" : "\(letter)"
    }.joined()
  }

  /// The stored digest of a written recovery code.
  func recoveryDigest(_ settings: SettingsRecord, _ uid: String) -> Data {
    settings.digest("recovery code", "\(uid)\0\(letters)")
  }

  /// The part that identifies a mailed code.
  var name: String { String(letters.prefix(Self.nameLength)) }

  /// The stored digest of a mailed code.
  func mailedDigest(_ settings: SettingsRecord, _ operation: ActionCodeOperation) -> Data {
    settings.digest("mailed code", "\(operation.rawValue)\0\(letters)")
  }
}
