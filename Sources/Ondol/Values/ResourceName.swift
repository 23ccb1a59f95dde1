// The rules for names: of collections and documents (the segments of a path) and of fields. All
// code that takes a name from an app uses these checks, so that messages are the same everywhere.

internal import OndolEngine

/// Checks of names and paths. The limits are Firestore's.
enum ResourceName {
  /// The most bytes in the name of a collection, a document or a field.
  static let maximumLength = 1_500
  /// The deepest nesting of documents.
  static let maximumDepth = 100

  /// Why `id` cannot be the name of a collection or a document; nil when it can.
  static func problem(withID id: String) -> String? {
    if id.isEmpty { return "it is empty" }
    if id.utf8.count > maximumLength {
      return "it has \(id.utf8.count) bytes of UTF-8, and may have \(maximumLength)"
    }
    if id.utf8.contains(UInt8(ascii: "/")) { return "it contains \"/\"" }
    if id == "." || id == ".." { return "\".\" and \"..\" are not valid names" }
    if isReserved(id) { return "names that begin and end with \"__\" are reserved" }
    return nil
  }

  /// Whether `id` is a name of one segment that needs no further check, as most ids are: short, of
  /// ASCII, without "/" and "." and not beginning with "_".
  static func isPlainID(_ id: String) -> Bool {
    id.withUTF8Bytes { bytes in
      let octets = bytes.octets
      guard octets.count > 0, octets.count <= 64, octets[0] != UInt8(ascii: "_")
      else { return false }
      for index in octets.indices {
        let byte = octets[index]
        if byte >= 0x80 || byte == UInt8(ascii: "/") || byte == UInt8(ascii: ".") { return false }
      }
      return true
    }
  }

  /// Why `name` cannot be the name of a field; nil when it can.
  static func problem(withField name: String) -> String? {
    if name.isEmpty { return "it is empty" }
    if name.utf8.count > maximumLength {
      return "it has \(name.utf8.count) bytes of UTF-8, and may have \(maximumLength)"
    }
    if isReserved(name) { return "names that begin and end with \"__\" are reserved" }
    return nil
  }

  /// Whether `name` has the form `__…__`, which takes at least four bytes.
  private static func isReserved(_ name: String) -> Bool {
    let bytes = name.utf8
    let underscore = UInt8(ascii: "_")
    return bytes.count >= 4 && bytes.first == underscore && bytes.dropFirst().first == underscore
      && bytes.last == underscore && bytes.dropLast().last == underscore
  }

  /// The segments of a path as an app writes it: one leading and one trailing "/" are allowed.
  static func segments(of path: String) throws(DatabaseError) -> [String] {
    // Usually it is one segment.
    if !path.isEmpty, !path.utf8.contains(UInt8(ascii: "/")) { return [path] }
    // By code unit: a "/" followed by a combining mark is one `Character`, and still a separator.
    let separator = UInt8(ascii: "/")
    var inner = path.utf8[...]
    if inner.first == separator { inner = inner.dropFirst() }
    if inner.last == separator { inner = inner.dropLast() }
    guard !inner.isEmpty else {
      throw DatabaseError(.invalidArgument, "a path must not be empty", path: path)
    }
    let parts = inner.split(separator: separator, omittingEmptySubsequences: false)
    guard parts.allSatisfy({ !$0.isEmpty }) else {
      throw DatabaseError(
        .invalidArgument, "a path must not contain \"//\", and \"\(path)\" does", path: path)
    }
    return parts.map { String(Substring($0)) }
  }

  /// Throws unless every segment can name a collection or a document and the path is not too deep.
  static func check(_ segments: [String]) throws(DatabaseError) {
    for segment in segments {
      if let problem = problem(withID: segment) {
        throw DatabaseError(
          .invalidArgument, "\"\(segment)\" cannot name a collection or a document: \(problem)",
          path: segments.joined(separator: "/"))
      }
    }
    guard segments.count <= 2 * maximumDepth else {
      throw DatabaseError(
        .invalidArgument, "documents may be nested \(maximumDepth) deep",
        path: segments.joined(separator: "/"))
    }
  }
}
