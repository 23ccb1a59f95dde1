// Paths and keys as the protocol has them, which are stricter than the database's. Texts are split
// by their UTF-8: in a Swift string a "/" with a combining mark after it is another character, and
// keys that are canonically equivalent are different keys.

#if Server
  import Ondol

  /// A place of the tree that a client names.
  struct TreePlace: Sendable {
    /// The longest key in bytes.
    static let longestKey = 768

    var keys: [String] = []

    static let root = TreePlace()

    private init() {}

    init(keys: [String]) throws(TreeRefusal) {
      for key in keys { try Self.check(key) }
      self.keys = keys
    }

    /// Reads keys with `/` between; empty ones are ignored.
    init(_ text: String) throws(TreeRefusal) {
      try self.init(keys: Self.parts(of: text))
    }

    /// The parts of a text between its slashes, without empty ones.
    static func parts(of text: String) -> [String] {
      text.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }
    }

    /// Throws unless the protocol allows the key.
    static func check(_ key: String) throws(TreeRefusal) {
      guard let problem = problem(with: key) else { return }
      throw TreeRefusal(.invalid, "Invalid path: \(problem)")
    }

    /// What is wrong with a key; nil for a valid one.
    static func problem(with key: String) -> String? {
      guard (1...longestKey).contains(key.utf8.count) else {
        return "keys have 1 to \(longestKey) bytes of UTF-8"
      }
      let isPlain = key.utf8.allSatisfy { octet in
        octet >= 0x20 && octet != 0x7F && !forbidden.contains(octet)
      }
      return isPlain
        ? nil : "keys can't contain \".\", \"#\", \"$\", \"/\", \"[\", \"]\" or control characters"
    }

    private static let forbidden: Set<UInt8> = Set(".#$/[]".utf8)

    func appending(_ more: TreePlace) -> TreePlace {
      var place = self
      place.keys += more.keys
      return place
    }

    /// The path as the protocol's messages have it.
    var text: String { keys.joined(separator: "/") }

    func reference(in database: Database) -> TreeReference {
      keys.reduce(database.tree) { $0.child(key: $1) }
    }
  }

  /// The place of a write: a node, or only its priority.
  struct TreeTarget: Sendable {
    var place: TreePlace
    var isPriority: Bool

    init(_ place: TreePlace) {
      self.place = place
      isPriority = false
    }

    /// Reads a path that may end with `.priority`.
    init(_ text: String) throws(TreeRefusal) {
      var parts = TreePlace.parts(of: text)
      isPriority = parts.last.map { $0.utf8.elementsEqual(".priority".utf8) } ?? false
      if isPriority { parts.removeLast() }
      place = try TreePlace(keys: parts)
    }
  }
#endif
