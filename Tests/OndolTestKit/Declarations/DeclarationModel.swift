// The naive model of documents whose collections have schemas, expiry and unique values, and are
// dropped. It keeps every document with the schema of its write, and upgrades it at every read.

internal import Ondol

/// A collection of the histories.
struct DeclaredCollection: Sendable, Hashable {
  let path: String
  /// The pattern of its declarations, shared with the collections of the same names.
  let pattern: String

  static let all = [
    DeclaredCollection(path: "c", pattern: "c"),
    DeclaredCollection(path: "c/x/c", pattern: "c/c"),
    DeclaredCollection(path: "c/y/c", pattern: "c/c"),
  ]

  static let ids = (0..<8).map { "d\($0)" }

  /// The pattern of the document's collection.
  static func pattern(of document: String) -> String {
    document.split(separator: "/").count == 2 ? "c" : "c/c"
  }
}

/// Everything that is known at one moment.
struct DeclarationModel: Sendable {
  struct Stored: Sendable {
    var fields: [String: Value]
    var version: Int
  }

  /// A document's appearance to readers.
  enum Sight {
    case absent
    case there([String: Value])
    case unreadable
  }

  /// By path.
  var documents: [String: Stored] = [:]
  /// By pattern.
  var versions: [String: Int] = [:]
  /// Patterns whose documents expire when their field says.
  var ending: Set<String> = []
  /// Patterns in whose collections no two documents have the same `u`.
  var unique: Set<String> = []
  var now: Int64

  init(now: Int64) {
    self.now = now
  }

  func sight(of path: String) -> Sight {
    guard let stored = documents[path] else { return .absent }
    let pattern = DeclaredCollection.pattern(of: path)
    var fields = stored.fields
    do {
      try TrialSchema.upgrade(&fields, from: stored.version, to: versions[pattern] ?? 0)
    } catch {
      return isOver(stored.fields, pattern) ? .absent : .unreadable
    }
    return isOver(fields, pattern) ? .absent : .there(fields)
  }

  private func isOver(_ fields: [String: Value], _ pattern: String) -> Bool {
    guard ending.contains(pattern), case .timestamp(let end) = fields["end"] else { return false }
    return end.microsecondsSince1970 <= now
  }

  mutating func put(_ fields: [String: Value], at path: String) {
    let version = versions[DeclaredCollection.pattern(of: path)] ?? 0
    documents[path] = Stored(fields: fields, version: version)
  }

  /// Forgets expired documents after their removal.
  mutating func forgetEnded() {
    for path in documents.keys {
      if case .absent = sight(of: path) { documents[path] = nil }
    }
  }

  /// All documents that queries find.
  var readable: [ModelDocument] {
    documents.keys.sorted().compactMap { path in
      guard case .there(let fields) = sight(of: path) else { return nil }
      return ModelDocument(path: path.split(separator: "/").map(String.init), fields: fields)
    }
  }

  /// The paths of documents that cannot be upgraded, in order.
  var unreadable: [String] {
    documents.keys.sorted().filter { if case .unreadable = sight(of: $0) { true } else { false } }
  }

  /// Another document of the collection with the same value in the unique field.
  func holder(of fields: [String: Value], for path: String) -> String? {
    guard unique.contains(DeclaredCollection.pattern(of: path)), let value = fields["u"] else {
      return nil
    }
    let collection = path.split(separator: "/").dropLast()
    return documents.keys.first { other in
      guard other != path, other.split(separator: "/").dropLast() == collection else {
        return false
      }
      if case .absent = sight(of: other) { return false }
      return documents[other]?.fields["u"] == value
    }
  }

  /// Whether two documents of a collection of the pattern have the same value in the future unique
  /// field.
  func hasDuplicates(in pattern: String) -> Bool {
    var copy = self
    copy.unique.insert(pattern)
    return documents.contains { path, stored in
      guard DeclaredCollection.pattern(of: path) == pattern else { return false }
      if case .absent = sight(of: path) { return false }
      return copy.holder(of: stored.fields, for: path) != nil
    }
  }
}
