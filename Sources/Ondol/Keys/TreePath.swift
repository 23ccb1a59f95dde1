// The location of a node in the tree. An app writes a path as its keys with "/" between. A key may
// have any other character, so an e-mail address is a key.

internal import OndolEngine

/// A place in the tree: the keys from the root. Compared by their UTF-8.
struct TreePath: Sendable, Hashable {
  private(set) var keys: [String]
  /// The key of the node's row.
  private(set) var rowKey: [UInt8]

  /// The deepest nesting of nodes.
  static let maximumDepth = 100

  static let root = TreePath(keys: [], rowKey: TreeKey.root)

  private init(keys: [String], rowKey: [UInt8]) {
    self.keys = keys
    self.rowKey = rowKey
  }

  /// The path below the root. Empty keys are ignored, as in the Realtime Database.
  init(_ path: String) throws(DatabaseError) {
    self = try TreePath.root.appending(path: path)
  }

  var depth: Int { keys.count }

  /// The place one key up; nil for the root.
  var parent: TreePath? {
    guard !keys.isEmpty else { return nil }
    var keys = keys
    let last = TreeKey.component(keys.removeLast()).count
    return TreePath(keys: keys, rowKey: Array(rowKey.dropLast(last)))
  }

  /// The component of its last key; empty for the root.
  var lastComponent: [UInt8] { keys.last.map { TreeKey.component($0) } ?? [] }

  /// The rows of the node and everything below it.
  var range: KeyRange { KeyRange(prefix: rowKey) }

  /// The keys of the rows of all nodes above it, the root's first.
  var ancestorKeys: [[UInt8]] {
    var found: [[UInt8]] = []
    var key = TreeKey.root
    for name in keys {
      found.append(key)
      TreeKey.append(name, to: &key)
    }
    return found
  }

  func appending(key: String) throws(DatabaseError) -> TreePath {
    if let problem = Self.problem(withKey: key) {
      throw DatabaseError(
        .invalidArgument, "\"\(key)\" cannot be a key of the tree: \(problem)", path: "\(self)")
    }
    guard depth < Self.maximumDepth else {
      throw DatabaseError(
        .invalidArgument, "nodes of the tree may be nested \(Self.maximumDepth) deep",
        path: "\(self)")
    }
    var path = self
    path.keys.append(key)
    TreeKey.append(key, to: &path.rowKey)
    return path
  }

  /// The place of a child whose key is known, and also its component.
  func appending(key: String, component: [UInt8]) -> TreePath {
    var path = self
    path.keys.append(key)
    path.rowKey += component
    return path
  }

  func appending(path other: String) throws(DatabaseError) -> TreePath {
    var path = self
    for part in other.utf8.split(separator: UInt8(ascii: "/")) {
      path = try path.appending(key: String(Substring(part)))
    }
    return path
  }

  /// Whether this is `other` or a node above it.
  func contains(_ other: TreePath) -> Bool {
    other.rowKey.count >= rowKey.count && other.rowKey.starts(with: rowKey)
  }

  /// Why `key` is not a valid key; nil when it is.
  static func problem(withKey key: String) -> String? {
    if key.isEmpty { return "it is empty" }
    if key.utf8.count > ResourceName.maximumLength {
      return "it has \(key.utf8.count) bytes of UTF-8, and may have \(ResourceName.maximumLength)"
    }
    if key.utf8.contains(UInt8(ascii: "/")) { return "it contains \"/\"" }
    if reservedKeys.contains(key) { return "it is reserved" }
    return nil
  }

  /// Keys for properties of the node that they are in.
  static let reservedKeys: Set<String> = [".value", ".priority", ".sv"]

  static func == (left: TreePath, right: TreePath) -> Bool { left.rowKey == right.rowKey }

  func hash(into hasher: inout Hasher) { hasher.combine(rowKey) }
}

extension TreePath: CustomStringConvertible {
  var description: String { "/" + keys.joined(separator: "/") }
}
