// Texts compared by their bytes. Swift's `==` on texts is Unicode's canonical equivalence, and its
// dictionaries and sets follow it: "é" as one scalar and as two are one text there. Here they are
// two, because keys on disk, index rows and every comparison of values use UTF-8. So all code that
// compares names or texts of documents uses this file or ValueOrder.
//
// A map of fields is nevertheless a Swift dictionary, which cannot hold two spellings of one name.
// A write that would need both is refused.

#if canImport(Darwin)
  internal import Foundation
#else
  // The normal form that the standard library uses to compare texts. This avoids Foundation's,
  // which would bring in ICU's tables.
  @_spi(_Unicode) internal import Swift
#endif
internal import OndolEngine

/// Whether two texts have the same bytes.
func isSame(_ left: String, _ right: String) -> Bool { ValueOrder.compare(left, right) == 0 }

/// Whether a Swift dictionary treats two names as one: the same, or spellings of one.
func isOneName(_ left: String, _ right: String) -> Bool { left == right }

/// A text that equals another only when the bytes do.
package struct ExactText: Hashable, Sendable {
  package let text: String

  package init(_ text: String) {
    self.text = text
  }

  package static func == (left: ExactText, right: ExactText) -> Bool {
    isSame(left.text, right.text)
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(utf8: text)
  }
}

extension String {
  /// The text with each letter and its marks composed when Unicode has a character for both: its
  /// normal form C.
  ///
  /// Ondol compares texts by their bytes, and never changes them. Texts from elsewhere may be
  /// spelled in another way than typed texts: file names on macOS have Hangul and accents
  /// decomposed. Compose such texts when they enter, wherever they become ids, names or values:
  ///
  /// ```swift
  /// let name = url.lastPathComponent.composed()
  /// try await files.document(name).setData(["name": name])
  /// ```
  ///
  /// - Complexity: O(n); next to nothing for ASCII.
  public func composed() -> String {
    if utf8.allSatisfy({ $0 < 0x80 }) { return self }
    #if canImport(Darwin)
      return precomposedStringWithCanonicalMapping
    #else
      var scalars = String.UnicodeScalarView()
      scalars.append(contentsOf: _nfc)
      return String(scalars)
    #endif
  }
}

extension Dictionary where Key == String {
  /// The place of the name with exactly these bytes; nil when there is none, even if there is
  /// another spelling of it.
  func index(exactly name: String) -> Index? {
    guard let index = index(forKey: name), isSame(keys[index], name) else {
      return nil
    }
    return index
  }

  /// The value of the name with exactly these bytes.
  subscript(exactly name: String) -> Value? {
    index(exactly: name).map { values[$0] }
  }

  /// Sets the value of a name, and returns the previous one.
  ///
  /// Throws `.invalidArgument` when another spelling of the name exists. The dictionary must not be
  /// used then.
  @discardableResult
  mutating func put(_ value: Value, at name: String) throws(DatabaseError) -> Value? {
    guard let former = updateValue(value, forKey: name) else { return nil }
    guard let index = index(forKey: name), isSame(keys[index], name) else {
      throw DatabaseError(
        .invalidArgument,
        "the name \"\(name)\" is there in two spellings that Unicode takes for one, and a map"
          + " cannot hold both; use one of them, as composed() makes it",
        field: FieldPath.quoted(name))
    }
    return former
  }

  /// Removes the name with exactly these bytes.
  mutating func remove(exactly name: String) {
    if let index = index(exactly: name) { remove(at: index) }
  }
}

/// Names, and whether two of them are spellings of one.
struct Spellings: Sendable {
  /// All names from the first that is not ASCII on: names of ASCII alone have one spelling each.
  private var names: Set<String> = []
  /// Whether two names are spellings of one, so that no map may have both.
  private(set) var hasTwoOfOne = false

  /// Whether all names are of ASCII.
  var areASCII: Bool { names.isEmpty }

  /// Adds a name that follows those in `before`.
  mutating func note(_ name: String, behind before: [String]) {
    if names.isEmpty {
      if name.utf8.allSatisfy({ $0 < 0x80 }) { return }
      names = Set(before)
    }
    if !names.insert(name).inserted { hasTwoOfOne = true }
  }
}
