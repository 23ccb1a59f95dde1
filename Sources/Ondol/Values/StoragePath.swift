// The rules for storage paths, which are Firebase Storage's: "/" separates, a leading, trailing or
// repeated one is ignored, and folders exist only as parts of paths. Firebase does not allow line
// breaks; here no control character is allowed. All code that takes a path uses these checks, so
// that each path has one form, which is the id of its row.

internal import OndolEngine

/// Storage paths as texts.
enum StoragePath {
  /// The most bytes of UTF-8 in a path, the same limit as Google Cloud Storage's.
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

  /// Why `path` cannot be the path of an object; nil when it can and is in its normal form.
  static func problem(with path: String) -> String? {
    let bytes = path.utf8
    if bytes.isEmpty { return "the root is a folder; append a name" }
    if bytes.count > maximumLength {
      return "it has \(bytes.count) bytes of UTF-8, and may have \(maximumLength)"
    }
    if path == "." || path == ".." { return "\".\" and \"..\" are not valid names" }
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

  /// The prefix of all paths below `folder`; empty for the root.
  static func prefix(ofFolder folder: String) -> String { folder.isEmpty ? "" : folder + "/" }
}
