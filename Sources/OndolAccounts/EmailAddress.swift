// Comparison of addresses. Domains have no case, and each Unicode spelling has one in ASCII. By the
// standards, the part before the @ has case, but no mail service relies on it, and people type it
// as their keyboard does. So the library compares both parts by their compatibility form with case
// folded, as Unicode's NFKC_Casefold and UTS 46 do, and shows them as they were typed.
//
// Foundation provides the compatibility form, and Swift the case of each scalar. Together they
// match the tables of UTS 46 except for the names that these refuse. A label that cannot be mapped
// stays as it is, so every address that earlier versions accepted is still valid.

internal import Foundation

/// An address of e-mail.
package struct EmailAddress: Sendable, Hashable {
  /// The version of the rules that made `key`. It is stored with the accounts. A higher version
  /// gives them new keys.
  package static let form = 2

  /// As it was typed, in composed form and without spaces around it.
  package let text: String
  /// The key that compares addresses.
  package let key: String
  /// The key of version 1: only the domain in lower case.
  package let exactKey: String

  private static let mostBytes = 254
  private static let mostLocalBytes = 64
  private static let mostMappedBytes = 256
  private static let mostLabelBytes = 63
  /// With what says that a label is in Unicode, and a letter for each scalar at least.
  private static let mostLabelScalars = 59
  private static let forbidden: Set<Character> = [
    "(", ")", "<", ">", "[", "]", ",", ";", ":", "\\", "\"", "@",
  ]
  /// Characters that separate labels like a dot.
  private static let dots: Set<Unicode.Scalar> = [".", "\u{3002}", "\u{FF0E}", "\u{FF61}"]
  /// Letters that domains distinguish from their folded form.
  private static let keptInDomains: Set<String> = ["\u{DF}", "\u{3C2}"]

  /// Throws `.invalidEmail` when the text is not an address.
  package init(_ typed: String) throws(AuthError) {
    let text = typed.trimmingCharacters(in: .whitespaces).precomposedStringWithCanonicalMapping
    guard let at = text.lastIndex(of: "@") else {
      throw AuthError(.invalidEmail, "an email address must contain an @")
    }
    let local = text[..<at]
    let domain = text[text.index(after: at)...]
    let labels = domain.unicodeScalars.split(
      omittingEmptySubsequences: false, whereSeparator: Self.dots.contains
    ).map { Self.mapped(label: String($0)) }
    guard Self.isLocalPart(local), labels.allSatisfy(Self.isLabel),
      text.utf8.count <= Self.mostBytes
    else {
      throw AuthError(.invalidEmail, "this is not an email address")
    }
    self.text = text
    key = "\(Self.mapped(local: String(local)))@\(labels.joined(separator: "."))"
    exactKey = "\(local)@\(domain.lowercased().precomposedStringWithCanonicalMapping)"
  }

  // MARK: - Comparing

  /// The key of a local part. The part itself if the mapping leaves nothing or too much of it.
  private static func mapped(local: String) -> String {
    let mapped = CaseFolding.fold(local)
    return (1...mostMappedBytes).contains(mapped.utf8.count) ? mapped : local
  }

  /// The key of a domain's label. The lower case if the mapped text cannot be a label.
  private static func mapped(label: String) -> String {
    let mapped = CaseFolding.fold(label, keeping: keptInDomains)
    if mapped.hasPrefix(Punycode.prefix),
      let decoded = Punycode.decode(mapped.dropFirst(Punycode.prefix.count)), isLabel(decoded),
      // A text that no encoder would produce is no second spelling.
      !decoded.utf8.allSatisfy({ $0 < 0x80 }),
      CaseFolding.fold(decoded, keeping: keptInDomains).utf8.elementsEqual(decoded.utf8)
    {
      return decoded
    }
    return isLabel(mapped) ? mapped : label.lowercased().precomposedStringWithCanonicalMapping
  }

  // MARK: - Checking

  private static func isLocalPart(_ text: Substring) -> Bool {
    (1...mostLocalBytes).contains(text.utf8.count) && !text.hasPrefix(".") && !text.hasSuffix(".")
      && !text.contains("..") && text.allSatisfy(isVisible)
  }

  private static func isLabel(_ label: String) -> Bool {
    let isShort =
      (1...mostLabelBytes).contains(label.utf8.count)
      || (1...mostLabelScalars).contains(label.unicodeScalars.count)
    return isShort && !label.hasPrefix("-") && !label.hasSuffix("-") && !beginsWithMark(label)
      && label.allSatisfy { $0 == "-" || $0.isLetter || $0.isNumber }
  }

  /// Whether the scalar would join the one before it into one letter.
  private static func beginsWithMark(_ label: String) -> Bool {
    switch label.unicodeScalars.first?.properties.generalCategory {
    case .nonspacingMark, .spacingMark, .enclosingMark: true
    default: false
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

/// Unicode's NFKC_Casefold, of Foundation's compatibility form and Swift's case of scalars.
enum CaseFolding {
  /// Rounds after which every text is stable. Two are enough for all known texts.
  private static let mostRounds = 4

  /// The key of a text. Texts that differ only in case or compatibility form have the same key.
  ///
  /// - Parameters:
  ///   - text: any text.
  ///   - kept: scalars in lower case that stay.
  static func fold(_ text: String, keeping kept: Set<String> = []) -> String {
    if text.utf8.allSatisfy({ $0 < 0x80 }) { return text.lowercased() }
    var folded = text
    for _ in 0..<mostRounds {
      let plain = folded.precomposedStringWithCompatibilityMapping
      var next = ""
      for scalar in plain.unicodeScalars where !scalar.properties.isDefaultIgnorableCodePoint {
        next += fold(scalar, keeping: kept)
      }
      next = next.precomposedStringWithCompatibilityMapping
      if next.utf8.elementsEqual(folded.utf8) { break }
      folded = next
    }
    return folded
  }

  /// By way of capitals, which have no sharp s and no final sigma. The dotless i is not an i.
  private static func fold(_ scalar: Unicode.Scalar, keeping kept: Set<String>) -> String {
    let lower = scalar.properties.lowercaseMapping
    if scalar == "\u{131}" || kept.contains(lower) { return lower }
    var folded = ""
    for scalar in lower.unicodeScalars {
      for capital in scalar.properties.uppercaseMapping.unicodeScalars {
        folded += capital.properties.lowercaseMapping
      }
    }
    return folded
  }
}
