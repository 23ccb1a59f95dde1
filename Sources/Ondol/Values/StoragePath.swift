// The rules for storage paths, Firebase Storage's: "/" separates, a leading, trailing or repeated
// one means nothing, and there are no folders but those that paths spell. Line breaks are not
// allowed there; here no control character is. Everything that takes a path asks here, so that one
// path has one form, which is the id its row has.

internal import OndolEngine

/// Storage paths as texts.
enum StoragePath {
  /// Bytes of UTF-8 in a path, as Google Cloud Storage has it.
  static let maximumLength = 1_024

  private static let separator = UInt8(ascii: "/")

  /// The path without leading, trailing and repeated separators. Empty for the root.
  static func normal(_ path: String) -> String {
    // By code unit: a "/" followed by a combining mark is one `Character`, and still a separator.
    let parts = path.utf8.split(separator: separator)
    // Most paths are in their normal form.
    if parts.count == 1, parts[0].count == path.utf8.count { return path }
    return parts.map { String(Substring($0)) }.joined(separator: "/")
  }

  /// Why `path` cannot be the path of an object, or nil when it can and is in its normal form.
  static func problem(with path: String) -> String? {
    let bytes = path.utf8
    if bytes.isEmpty { return "the root is a folder; append a name" }
    if bytes.count > maximumLength {
      return "it has \(bytes.count) bytes of UTF-8, and may have \(maximumLength)"
    }
    if path == "." || path == ".." { return "\".\" and \"..\" are no names" }
    var previous = separator
    for byte in bytes {
      if byte == separator, previous == separator { return "a name in it is empty" }
      if byte < 0x20 { return "it has a control character" }
      previous = byte
    }
    return previous == separator ? "a name in it is empty" : nil
  }

  /// The last name; empty for the root.
  static func name(of path: String) -> String {
    guard let end = path.utf8.lastIndex(of: separator) else { return path }
    return String(Substring(path.utf8[end...].dropFirst()))
  }

  /// The folder that the path is in; empty for the root's, nil for the root itself.
  static func parent(of path: String) -> String? {
    if path.isEmpty { return nil }
    guard let end = path.utf8.lastIndex(of: separator) else { return "" }
    return String(Substring(path.utf8[..<end]))
  }

  /// A path below `folder`.
  static func child(_ path: String, of folder: String) -> String {
    let child = normal(path)
    if folder.isEmpty || child.isEmpty { return folder + child }
    return "\(folder)/\(child)"
  }

  /// What all paths below `folder` begin with; empty for the root.
  static func prefix(ofFolder folder: String) -> String { folder.isEmpty ? "" : folder + "/" }
}
