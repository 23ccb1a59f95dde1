// When two addresses are one. Mail systems compare domains without regard to case, and leave what
// stands before the @ to the domain's own server; so case counts there. Accents typed on one
// keyboard as one character and on another as two are the same: both parts are in Unicode's
// composed form.

internal import Foundation

/// An address of e-mail.
package struct EmailAddress: Sendable, Hashable {
  /// As it was typed, in composed form and without spaces around it.
  package let text: String
  /// What addresses are compared by: the domain in lower case.
  package let key: String

  private static let mostBytes = 254
  private static let mostLocalBytes = 64
  private static let mostLabelBytes = 63
  private static let forbidden: Set<Character> = [
    "(", ")", "<", ">", "[", "]", ",", ";", ":", "\\", "\"", "@",
  ]

  /// Throws `.invalidEmail` when the text is no address.
  package init(_ typed: String) throws(AuthError) {
    let text = typed.trimmingCharacters(in: .whitespaces).precomposedStringWithCanonicalMapping
    guard let at = text.lastIndex(of: "@") else {
      throw AuthError(.invalidEmail, "an address of e-mail has an @ in it")
    }
    let local = text[..<at]
    let domain = text[text.index(after: at)...].lowercased().precomposedStringWithCanonicalMapping
    guard Self.isLocalPart(local), Self.isDomain(domain), text.utf8.count <= Self.mostBytes else {
      throw AuthError(.invalidEmail, "this is no address of e-mail")
    }
    self.text = text
    key = "\(local)@\(domain)"
  }

  private static func isLocalPart(_ text: Substring) -> Bool {
    (1...mostLocalBytes).contains(text.utf8.count) && !text.hasPrefix(".") && !text.hasSuffix(".")
      && !text.contains("..") && text.allSatisfy(isVisible)
  }

  private static func isDomain(_ text: String) -> Bool {
    text.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { label in
      (1...mostLabelBytes).contains(label.utf8.count) && !label.hasPrefix("-")
        && !label.hasSuffix("-")
        && label.allSatisfy { $0 == "-" || $0.isLetter || $0.isNumber }
    }
  }

  private static func isVisible(_ character: Character) -> Bool {
    !forbidden.contains(character) && !character.isWhitespace
      && character.unicodeScalars.allSatisfy { scalar in
        switch scalar.properties.generalCategory {
        case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator,
          .paragraphSeparator:
          false
        default: true
        }
      }
  }
}
