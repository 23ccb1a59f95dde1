// Identifies a field of a document. In text form, dots lead into maps, and names that contain dots
// are in backticks. A literal cannot throw, so an invalid path keeps its error and throws it when a
// call uses it.

internal import OndolEngine

/// The path to a field: a name, or names that lead through maps.
///
/// A string literal is split at its dots: `"dimensions.height"` is the field `height` in the map
/// `dimensions`. Put a name with other characters into backticks, within which `\` takes the next
/// character literally. `FieldPath(["a.b"])` never splits. All as in Firestore.
///
/// ```swift
/// let height: FieldPath = "dimensions.height"
/// let size: FieldPath = "sizes.`5.5`"
/// ```
///
/// With an invalid path (empty, with an empty name, one over 1,500 bytes, a reserved `__…__`, or
/// with one of `~ * / [ ]` outside backticks), the call that receives it throws `.invalidArgument`.
public struct FieldPath: Sendable {
  enum Form: Sendable {
    case names([String])
    case documentID
    case invalid(text: String, problem: String)
  }

  let form: Form
  /// The part after a `-` at the beginning of the text, as in a descending field of an index. Here
  /// the `-` is part of the name.
  private(set) var nameBehindMinus: String?

  /// Reads a path in text form.
  public init(_ path: String) {
    if path.utf8.first == UInt8(ascii: "-") { nameBehindMinus = String(path.dropFirst()) }
    if Self.isPlainName(path) {
      form = .names([path])
      return
    }
    if isSame(path, Self.documentIDName) {
      form = .documentID
      return
    }
    do throws(Problem) {
      form = Self.checked(try Self.names(in: path), text: path)
    } catch {
      form = .invalid(text: path, problem: error.text)
    }
  }

  /// A path of `names`, each taken literally.
  public init(_ names: [String]) {
    form =
      names.count == 1 && isSame(names[0], Self.documentIDName)
      ? .documentID : Self.checked(names, text: names.joined(separator: "."))
  }

  /// Refers to the document's id instead of a field.
  public static func documentID() -> FieldPath { FieldPath(documentIDName) }

  /// Firestore's name for the document's id in a query.
  private static let documentIDName = "__name__"

  /// Whether this refers to the document's id.
  package var isDocumentID: Bool { if case .documentID = form { true } else { false } }

  /// The names that lead to the field.
  ///
  /// Throws `.invalidArgument` when the path is wrong or refers to the document's id.
  package func names() throws(DatabaseError) -> [String] {
    switch form {
    case .names(let names): return names
    case .documentID:
      throw DatabaseError(
        .invalidArgument, "the document's id is not a field; name a field here",
        field: Self.documentIDName)
    case .invalid(let text, let problem):
      throw DatabaseError(
        .invalidArgument, "\"\(text)\" is not a field path: \(problem)", field: text)
    }
  }

  /// Throws as `names()` does, but accepts the document's id.
  func validate() throws(DatabaseError) {
    if !isDocumentID { _ = try names() }
  }

  private static func checked(_ names: [String], text: String) -> Form {
    guard !names.isEmpty else { return .invalid(text: text, problem: "it names nothing") }
    var length = names.count - 1
    for name in names {
      if let problem = ResourceName.problem(withField: name) {
        return .invalid(text: text, problem: "\"\(name)\" cannot name a field: \(problem)")
      }
      length += name.utf8.count
    }
    guard length <= ResourceName.maximumLength else {
      return .invalid(
        text: text, problem: "it has \(length) bytes, and may have \(ResourceName.maximumLength)")
    }
    return .names(names)
  }
}

extension FieldPath: ExpressibleByStringLiteral {
  /// Reads a path in text form.
  public init(stringLiteral path: String) {
    self.init(path)
  }
}

extension FieldPath: Hashable {
  /// Whether both lead to the same field.
  public static func == (left: FieldPath, right: FieldPath) -> Bool {
    switch (left.form, right.form) {
    case (.names(let left), .names(let right)): ValueOrder.compareSegments(left, right) == 0
    case (.documentID, .documentID): true
    case (.invalid(let left, _), .invalid(let right, _)): ValueOrder.compare(left, right) == 0
    default: false
    }
  }

  /// Hashes the names.
  public func hash(into hasher: inout Hasher) {
    switch form {
    case .names(let names): hasher.combine(segments: names)
    case .documentID: hasher.combine(Self.documentIDName)
    case .invalid(let text, _): hasher.combine(utf8: text)
    }
  }
}

extension FieldPath: CustomStringConvertible {
  /// The path in text form, backticks only where they are needed.
  public var description: String {
    switch form {
    case .names(let names): names.map(Self.quoted).joined(separator: ".")
    case .documentID: Self.documentIDName
    case .invalid(let text, _): text
    }
  }

  /// Whether `path` is a single name that needs no check scalar by scalar, as most are.
  private static func isPlainName(_ path: String) -> Bool {
    path.utf8.count <= ResourceName.maximumLength && path.utf8.first != UInt8(ascii: "_")
      && isIdentifier(path)
  }

  /// `name`, in backticks unless it is a plain identifier.
  package static func quoted(_ name: String) -> String {
    guard !isIdentifier(name) else { return name }
    var text = "`"
    for scalar in name.unicodeScalars {
      if scalar == "`" || scalar == "\\" { text.unicodeScalars.append("\\") }
      text.unicodeScalars.append(scalar)
    }
    text.unicodeScalars.append("`")
    return text
  }

  /// Whether `name` is a letter or an underscore, then letters, underscores and digits, all of
  /// ASCII.
  static func isIdentifier(_ name: String) -> Bool {
    var isFirst = true
    for byte in name.utf8 {
      let isDigit = byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9")
      let lowered = byte | 0x20
      let isLetter = lowered >= UInt8(ascii: "a") && lowered <= UInt8(ascii: "z")
      guard isLetter || byte == UInt8(ascii: "_") || (isDigit && !isFirst) else { return false }
      isFirst = false
    }
    return !isFirst
  }
}

// MARK: - Reading the text form

extension FieldPath {
  private struct Problem: Error {
    var text: String
  }

  /// Splits at dots outside backticks.
  private static func names(in path: String) throws(Problem) -> [String] {
    guard !path.isEmpty else { throw Problem(text: "it is empty") }
    var names: [String] = []
    var rest = path.unicodeScalars[...]
    while true {
      let isQuoted = rest.first == "`"
      names.append(isQuoted ? try quotedName(&rest) : try plainName(&rest))
      guard let separator = rest.popFirst() else { return names }
      guard separator == "." else {
        throw Problem(text: "a \".\" must follow the closing backtick")
      }
    }
  }

  private static func plainName(_ rest: inout Substring.UnicodeScalarView) throws(Problem) -> String
  {
    let end = rest.firstIndex(of: ".") ?? rest.endIndex
    let name = rest[..<end]
    guard !name.isEmpty else {
      throw Problem(text: "it begins or ends with \".\" or contains \"..\"")
    }
    if let refused = name.first(where: { "~*/[]`".unicodeScalars.contains($0) }) {
      throw Problem(text: "\"\(refused)\" is only possible in a name in backticks")
    }
    rest = rest[end...]
    return String(name)
  }

  private static func quotedName(
    _ rest: inout Substring.UnicodeScalarView
  ) throws(Problem) -> String {
    var name = String.UnicodeScalarView()
    _ = rest.popFirst()
    while let scalar = rest.popFirst() {
      switch scalar {
      case "`": return String(name)
      case "\\":
        guard let literal = rest.popFirst() else { throw Problem(text: "it ends with a backslash") }
        name.append(literal)
      default: name.append(scalar)
      }
    }
    throw Problem(text: "a backtick is not closed")
  }
}

/// The names from a document's root to a field, already checked.
typealias FieldNames = [String]
