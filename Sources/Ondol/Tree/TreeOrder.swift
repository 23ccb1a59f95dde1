// The orders in which the children of a node can be requested, as bytes. A child's *position* is
// the value that orders it, then the component of its key. So positions compare in the order of the
// children, and a query's bounds are two positions. In the order of keys, a position is the key
// alone.
//
//   10 no value   18 false   19 true   21…25 numbers (KeyCoding)   38 text   68 a node
//
// Texts are in the order of UTF-16, like keys.

internal import OndolEngine

/// What the children of a node are ordered by.
enum TreeOrder: Sendable, Hashable {
  /// Children without a priority, then by priority. The default order.
  case priority
  case key
  /// By the children's own values.
  case value
  /// By the value at the end of a path below each child: components of keys.
  case child([UInt8])

  /// The ordering bytes of a value; nil means no value.
  static func bytes(_ value: Value?, isObject: Bool = false) -> [UInt8] {
    if isObject { return [KeyCoding.Tag.map] }
    switch value {
    case .string(let text)?:
      var bytes = [KeyCoding.Tag.string]
      TreeKey.append(text: text, to: &bytes)
      return bytes
    case let value?:
      var writer = KeyWriter()
      writer.append(value)
      return writer.bytes
    case nil:
      return [KeyCoding.Tag.null]
    }
  }

  /// The length of the ordering part at the beginning of a position's bytes; nil when they are not
  /// a position's.
  static func length(of position: RawSpan, from start: Int = 0) -> Int? {
    let octets = position.octets
    switch octets.octet(at: start) {
    case KeyCoding.Tag.string?:
      return TreeKey.end(of: position, from: start).map { $0 - start }
    case KeyCoding.Tag.null?, KeyCoding.Tag.map?: return 1
    case let tag?:
      guard tag < KeyCoding.Tag.string else { return nil }
      var reader = KeyReader(position.extracting(start...))
      guard (try? reader.skip()) != nil else { return nil }
      return reader.offset
    case nil: return nil
    }
  }

  /// The key of the row that places a child with a priority after those without.
  static func priorityKey(
    _ priority: Value, of component: [UInt8], in node: [UInt8]
  ) -> [UInt8] {
    node + [TreeKey.Tag.priorities] + bytes(priority) + component
  }
}

/// A child's position in an order.
struct TreePosition: Sendable, Hashable, KeyedEntry {
  /// The value that orders it, and its key.
  var bytes: [UInt8]
  /// Bytes of the first of the two.
  var orderLength: Int

  init(order: [UInt8], component: [UInt8]) {
    bytes = order + component
    orderLength = order.count
  }

  /// The position in the bytes of an ordering row; nil when there is none.
  init?(_ bytes: [UInt8]) {
    guard let length = TreeOrder.length(of: bytes.bytes),
      TreeKey.end(of: bytes.bytes, from: length) == bytes.count
    else { return nil }
    self.bytes = bytes
    orderLength = length
  }

  var orderedBy: [UInt8] { bytes }
  /// The child's key.
  var component: [UInt8] { Array(bytes[orderLength...]) }
  /// The bytes of the value that orders it.
  var order: ArraySlice<UInt8> { bytes[..<orderLength] }
}

/// Which children of a node are selected, and in what order.
struct TreeSelection: Sendable, Hashable {
  struct Limit: Sendable, Hashable {
    var count: Int
    var isFromEnd: Bool
  }

  var order = TreeOrder.priority
  /// The first position, and the first after the last.
  var lower: [UInt8]?
  var upper: [UInt8]?
  var limit: Limit?

  /// Whether all children are selected.
  var isWhole: Bool { lower == nil && upper == nil && limit == nil }

  func contains(_ position: TreePosition) -> Bool {
    if let lower, TreeKey.compare(position.bytes, lower) < 0 { return false }
    if let upper, TreeKey.compare(position.bytes, upper) >= 0 { return false }
    return true
  }
}

/// An index of a node's children by the value at the end of a path below each. A row of a separate
/// keyspace declares it, because it outlives the contents of the node. Its own rows come before the
/// node's children.
struct TreeIndexDefinition: Sendable, Hashable {
  /// The key of the node's row.
  var node: [UInt8]
  /// The components of the path.
  var way: [UInt8]

  /// The rows that declare indexes.
  static let range = KeyRange(prefix: Keyspace.treeIndexes.prefix)

  private static let separator: UInt8 = 0x12

  /// The key of the row that declares it.
  var declarationKey: [UInt8] {
    Keyspace.treeIndexes.prefix + node.dropFirst(TreeKey.root.count) + [Self.separator] + way
  }

  init(node: [UInt8], way: [UInt8]) {
    self.node = node
    self.way = way
  }

  /// Reads the key of a row that declares an index.
  init(declarationKey key: RawSpan) throws(MalformedBytes) {
    var offset = Keyspace.treeIndexes.prefix.count
    while offset < key.byteCount, key.byte(at: offset) != Self.separator {
      guard let end = TreeKey.end(of: key, from: offset) else {
        throw MalformedBytes(at: offset, "an index of the tree is declared in an unknown form")
      }
      offset = end
    }
    guard offset < key.byteCount else {
      throw MalformedBytes(at: offset, "an index of the tree is declared for no way")
    }
    node = TreeKey.root + key.extracting(Keyspace.treeIndexes.prefix.count..<offset).array
    way = key.extracting((offset + 1)...).array
  }

  /// The rows that declare the indexes of one node's children.
  static func declarations(of node: [UInt8]) -> KeyRange {
    KeyRange(prefix: declarations + node.dropFirst(TreeKey.root.count) + [separator])
  }

  /// The rows that declare indexes at a node or below it.
  static func declarations(within node: [UInt8]) -> KeyRange {
    KeyRange(prefix: declarations + node.dropFirst(TreeKey.root.count))
  }

  private static let declarations = Keyspace.treeIndexes.prefix

  /// All declared indexes.
  static func all(in rows: Rows) throws(DatabaseError) -> [TreeIndexDefinition] {
    try all(declaredIn: range, rows)
  }

  /// The indexes whose declarations are in a range, in the order of their keys.
  static func all(
    declaredIn range: KeyRange, _ rows: Rows
  ) throws(DatabaseError) -> [TreeIndexDefinition] {
    var found: [TreeIndexDefinition] = []
    try rows.forEachRow(in: range) { (key, _) throws(DatabaseError) in
      do throws(MalformedBytes) {
        found.append(try TreeIndexDefinition(declarationKey: key))
      } catch {
        throw DatabaseError(tree: error)
      }
      return true
    }
    return found
  }

  /// The prefix of its rows' keys.
  var prefix: [UInt8] {
    node + [TreeKey.Tag.index] + way + [KeyCoding.Tag.end]
  }

  /// The key of a child's row.
  func key(of component: [UInt8], _ value: Value?, isObject: Bool) -> [UInt8] {
    prefix + TreeOrder.bytes(value, isObject: isObject) + component
  }

  /// The keys of all rows that content written at `path` produces, if the index's node is that
  /// place or below it.
  func keys(of content: TreeContent, at path: TreePath, now: Int64) -> [[UInt8]] {
    guard node.starts(with: path.rowKey) else { return [] }
    let inner = Array(node[path.rowKey.count...])
    var found: [[UInt8]] = []
    var child: (component: [UInt8], value: Value?, isObject: Bool)?
    for entry in content.rows
    where entry.suffix.count > inner.count && entry.suffix.starts(with: inner) {
      let suffix = entry.suffix
      guard let end = TreeKey.end(of: suffix.bytes, from: inner.count) else { continue }
      let component = Array(suffix[inner.count..<end])
      if child?.component != component {
        if let child {
          found.append(key(of: child.component, child.value, isObject: child.isObject))
        }
        child = (component, nil, false)
      }
      let rest = suffix[end...]
      guard rest.starts(with: way) else { continue }
      if rest.count == way.count, let leaf = entry.row.leaf {
        child?.value = leaf.value(now: now)
      } else {
        child?.isObject = true
      }
    }
    if let child { found.append(key(of: child.component, child.value, isObject: child.isObject)) }
    return found
  }
}
