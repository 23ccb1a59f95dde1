// Checks of an account's properties. They come from forms and from other systems, and go to pages
// and into tokens, so the library checks them once, when they come in.

internal import Foundation

/// Rules for uids, names, URLs and phone numbers.
enum AccountProperties {
  private static let mostUIDCharacters = 128
  private static let mostUIDBytes = 1_500
  private static let mostNameBytes = 1_024
  private static let mostURLBytes = 2_048
  private static let phoneDigits = 2...15

  /// Throws `.invalidUID` for a text that cannot be a uid. A uid has 1 to 128 characters,
  /// Firebase's limit, and is a document's id. It is in composed form, because two spellings of one
  /// text would be one string to Swift and two documents.
  static func check(uid: String) throws(AuthError) {
    let isReserved = uid == "." || uid == ".." || uid.hasPrefix("__") && uid.hasSuffix("__")
    guard (1...mostUIDCharacters).contains(uid.count), uid.utf8.count <= mostUIDBytes,
      !isReserved, !uid.utf8.contains(where: { $0 == UInt8(ascii: "/") || $0 == 0 }),
      uid.precomposedStringWithCanonicalMapping.utf8.elementsEqual(uid.utf8)
    else {
      throw AuthError(
        .invalidUID,
        "a uid must have 1 to \(mostUIDCharacters) characters in composed form and no /")
    }
  }

  /// The name as it is stored; throws `.invalidDisplayName`.
  static func displayName(_ typed: String) throws(AuthError) -> String {
    let isVisible = typed.unicodeScalars.allSatisfy { scalar in
      switch scalar.properties.generalCategory {
      case .control, .surrogate, .lineSeparator, .paragraphSeparator: false
      default: true
      }
    }
    guard (1...mostNameBytes).contains(typed.utf8.count), isVisible else {
      throw AuthError(
        .invalidDisplayName, "a name must have 1 to \(mostNameBytes) bytes, all on one line")
    }
    return typed
  }

  /// Returns the URL as it is stored; throws `.invalidPhotoURL`. Only http and https are allowed,
  /// so a page that shows the URL cannot run code from it.
  static func photoURL(_ typed: String) throws(AuthError) -> String {
    guard typed.utf8.count <= mostURLBytes, let url = URL(string: typed),
      let scheme = url.scheme?.lowercased(), ["http", "https"].contains(scheme),
      url.host()?.isEmpty == false
    else {
      throw AuthError(
        .invalidPhotoURL, "a picture has a URL of http or https, of \(mostURLBytes) bytes at most")
    }
    return typed
  }

  /// The phone number in the form of E.164, without separators; throws `.invalidPhoneNumber`.
  static func phoneNumber(_ typed: String) throws(AuthError) -> String {
    let separators: Set<Character> = [" ", "-", "(", ")", ".", "\u{A0}"]
    let plain = typed.filter { !separators.contains($0) }
    let digits = plain.dropFirst()
    guard typed.utf8.count <= 64, plain.first == "+", phoneDigits.contains(digits.count),
      digits.first != "0", digits.utf8.allSatisfy({ (0x30...0x39).contains($0) })
    else {
      throw AuthError(
        .invalidPhoneNumber, "a phone number has a +, the country's code and 15 digits at most")
    }
    return plain
  }
}
