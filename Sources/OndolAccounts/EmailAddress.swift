// When two addresses are one. Domains have no case, and a spelling in ASCII for each in Unicode;
// what stands before the @ has case by the letter of the standards, and by nobody's practice:
// people type it as their keyboard has it. So both parts are compared by their compatibility form
// with case folded, as Unicode's NFKC_Casefold and UTS 46 do, and shown as they were typed.
//
// Foundation has the compatibility form, and Swift the case of each scalar. That comes to the
// tables of UTS 46 but for what these refuse; a label that cannot be mapped stays as it is, so that
// every address which earlier versions took is one today.

internal import Foundation

/// An address of e-mail.
package struct EmailAddress: Sendable, Hashable {
  /// Which rules made `key`: stored with the accounts, which get other keys where it was raised.
  package static let form = 2

  /// As it was typed, in composed form and without spaces around it.
  package let text: String
  /// What addresses are compared by.
  package let key: String
  /// What version 1 compared by: the domain alone in lower case.
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
  /// What stands for a dot between labels.
  private static let dots: Set<Unicode.Scalar> = [".", "\u{3002}", "\u{FF0E}", "\u{FF61}"]
  /// Letters that domains tell from what folding makes of them.
  private static let keptInDomains: Set<String> = ["\u{DF}", "\u{3C2}"]

  /// Throws `.invalidEmail` when the text is no address.
  package init(_ typed: String) throws(AuthError) {
    let text = typed.trimmingCharacters(in: .whitespaces).precomposedStringWithCanonicalMapping
    guard let at = text.lastIndex(of: "@") else {
      throw AuthError(.invalidEmail, "an address of e-mail has an @ in it")
    }
    let local = text[..<at]
    let domain = text[text.index(after: at)...]
    let labels = domain.unicodeScalars.split(
      omittingEmptySubsequences: false, whereSeparator: Self.dots.contains
    ).map { Self.mapped(label: String($0)) }
    guard Self.isLocalPart(local), labels.allSatisfy(Self.isLabel),
      text.utf8.count <= Self.mostBytes
    else {
      throw AuthError(.invalidEmail, "this is no address of e-mail")
    }
    self.text = text
    key = "\(Self.mapped(local: String(local)))@\(labels.joined(separator: "."))"
    exactKey = "\(local)@\(domain.lowercased().precomposedStringWithCanonicalMapping)"
  }

  // MARK: - Comparing

  /// What a local part is compared by; the part itself where nothing or too much is left of it.
  private static func mapped(local: String) -> String {
    let mapped = CaseFolding.fold(local)
    return (1...mostMappedBytes).contains(mapped.utf8.count) ? mapped : local
  }

  /// What a label of a domain is compared by; in lower case where that cannot be a label.
  private static func mapped(label: String) -> String {
    let mapped = CaseFolding.fold(label, keeping: keptInDomains)
    if mapped.hasPrefix(Punycode.prefix),
      let decoded = Punycode.decode(mapped.dropFirst(Punycode.prefix.count)), isLabel(decoded),
      // What nobody would have encoded is no second spelling of anything.
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

  /// Whether it would become one letter with what stands in front.
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
  /// Rounds after which every text stays what it is; two are enough for all that is known.
  private static let mostRounds = 4

  /// What texts are compared by that people would call the same, whatever their case.
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
