// Entries in the order of bytes that each has, as an immutable tree: whoever holds one keeps it as
// it was, while the next one shares all but the way to what changed. So a listener keeps the node
// it told last, and where children stand, at O(log n) a change, and hands either out at no cost.

internal import OndolEngine

/// What can be in a `KeyedTree`.
protocol KeyedEntry: Sendable, Equatable {
  /// What the entry is ordered by; no two entries of a tree have the same.
  var orderedBy: [UInt8] { get }
}

/// Entries in the order of their bytes, which are unique.
struct KeyedTree<Entry: KeyedEntry>: Sendable {
  /// Entries of a leaf, and children of an inner node, at most. A change copies those of each node
  /// on its way, so they are few.
  private static var capacity: Int { 16 }

  fileprivate final class Node: Sendable {
    /// Of a leaf; empty in an inner node.
    let entries: [Entry]
    let children: [Node]
    /// Entries here and below, never none.
    let count: Int
    /// What the least entry is ordered by.
    let first: [UInt8]

    init?(entries: [Entry]) {
      guard let least = entries.first else { return nil }
      self.entries = entries
      children = []
      count = entries.count
      first = least.orderedBy
    }

    init?(children: [Node]) {
      guard let least = children.first else { return nil }
      entries = []
      self.children = children
      count = children.reduce(0) { $0 + $1.count }
      first = least.first
    }

    var isLeaf: Bool { children.isEmpty }
    var size: Int { isLeaf ? entries.count : children.count }
  }

  private var root: Node?

  /// No entries.
  init() {}

  /// Entries that are in order already.
  init(sorted entries: [Entry]) {
    var nodes = Self.chunks(of: entries).compactMap { Node(entries: $0) }
    while nodes.count > 1 { nodes = Self.chunks(of: nodes).compactMap { Node(children: $0) } }
    root = nodes.first
  }

  private static func chunks<Element>(of elements: [Element]) -> [[Element]] {
    guard elements.count > capacity else { return [elements] }
    // Not full, so that the next insertion does not split each of them.
    let size = capacity * 3 / 4
    return stride(from: 0, to: elements.count, by: size).map {
      Array(elements[$0..<Swift.min($0 + size, elements.count)])
    }
  }

  var count: Int { root?.count ?? 0 }
  var isEmpty: Bool { root == nil }

  // MARK: - Finding

  /// The entry with these bytes.
  ///
  /// - Complexity: O(log n).
  func entry(_ bytes: [UInt8]) -> Entry? {
    guard let found = first(atOrAfter: bytes), found.orderedBy == bytes else { return nil }
    return found
  }

  /// The first entry at or behind a bound.
  ///
  /// - Complexity: O(log n).
  func first(atOrAfter bound: [UInt8]) -> Entry? {
    root.flatMap { Self.first(atOrAfter: bound, in: $0) }
  }

  private static func first(atOrAfter bound: [UInt8], in node: Node) -> Entry? {
    guard !node.isLeaf else {
      let place = entryPlace(of: bound, in: node)
      return place < node.entries.count ? node.entries[place] : nil
    }
    let place = childPlace(of: bound, in: node)
    if let found = first(atOrAfter: bound, in: node.children[place]) { return found }
    return place + 1 < node.children.count
      ? first(atOrAfter: bound, in: node.children[place + 1]) : nil
  }

  /// The last entry before a bound.
  ///
  /// - Complexity: O(log n).
  func last(before bound: [UInt8]) -> Entry? {
    root.flatMap { Self.last(before: bound, in: $0) }
  }

  private static func last(before bound: [UInt8], in node: Node) -> Entry? {
    guard !node.isLeaf else {
      let place = entryPlace(of: bound, in: node)
      return place > 0 ? node.entries[place - 1] : nil
    }
    let place = childPlace(of: bound, in: node)
    if let found = last(before: bound, in: node.children[place]) { return found }
    return place > 0 ? last(before: bound, in: node.children[place - 1]) : nil
  }

  /// The child that has the bytes, if any has: the last that does not begin behind them.
  private static func childPlace(of bytes: [UInt8], in node: Node) -> Int {
    var (low, high) = (0, node.children.count)
    while low < high {
      let middle = (low + high) / 2
      if TreeKey.compare(node.children[middle].first, bytes) <= 0 {
        low = middle + 1
      } else {
        high = middle
      }
    }
    return Swift.max(0, low - 1)
  }

  /// How many entries of a leaf come before the bytes.
  private static func entryPlace(of bytes: [UInt8], in node: Node) -> Int {
    var (low, high) = (0, node.entries.count)
    while low < high {
      let middle = (low + high) / 2
      if TreeKey.compare(node.entries[middle].orderedBy, bytes) < 0 {
        low = middle + 1
      } else {
        high = middle
      }
    }
    return low
  }

  // MARK: - Changing

  /// Puts the entry in its place, instead of one with the same bytes.
  ///
  /// - Complexity: O(log n).
  mutating func insert(_ entry: Entry) {
    guard let old = root else {
      root = Node(entries: [entry])
      return
    }
    let nodes = Self.inserting(entry, entry.orderedBy, into: old)
    root = nodes.count == 1 ? nodes[0] : Node(children: nodes)
  }

  /// The node with the entry, in two halves when it would be too large.
  private static func inserting(_ entry: Entry, _ bytes: [UInt8], into node: Node) -> [Node] {
    if node.isLeaf {
      var entries = node.entries
      let place = entryPlace(of: bytes, in: node)
      if place < entries.count, entries[place].orderedBy == bytes {
        entries[place] = entry
      } else {
        entries.insert(entry, at: place)
      }
      return parts(of: entries).compactMap { Node(entries: $0) }
    }
    let place = childPlace(of: bytes, in: node)
    var children = node.children
    children.replaceSubrange(
      place...place, with: inserting(entry, bytes, into: children[place]))
    return parts(of: children).compactMap { Node(children: $0) }
  }

  private static func parts<Element>(of elements: [Element]) -> [[Element]] {
    guard elements.count > capacity else { return [elements] }
    let middle = elements.count / 2
    return [Array(elements[..<middle]), Array(elements[middle...])]
  }

  /// Takes out the entry with these bytes, if there is one.
  ///
  /// - Complexity: O(log n).
  mutating func remove(_ bytes: [UInt8]) {
    guard let old = root, entry(bytes) != nil else { return }
    root = Self.removing(bytes, from: old)
    while let node = root, node.children.count == 1 { root = node.children[0] }
  }

  /// The node without the entry that it has; nil when nothing is left.
  private static func removing(_ bytes: [UInt8], from node: Node) -> Node? {
    if node.isLeaf {
      var entries = node.entries
      entries.remove(at: entryPlace(of: bytes, in: node))
      return Node(entries: entries)
    }
    let place = childPlace(of: bytes, in: node)
    var children = node.children
    if let child = removing(bytes, from: children[place]) {
      children[place] = child
      if child.size < capacity / 4 { join(&children, at: place) }
    } else {
      children.remove(at: place)
    }
    return Node(children: children)
  }

  /// Joins a small node with a neighbour when the two fit into one.
  private static func join(_ nodes: inout [Node], at place: Int) {
    for other in [place - 1, place] where other >= 0 && other + 1 < nodes.count {
      let (left, right) = (nodes[other], nodes[other + 1])
      guard left.size + right.size <= capacity else { continue }
      let joined =
        left.isLeaf
        ? Node(entries: left.entries + right.entries)
        : Node(children: left.children + right.children)
      nodes.replaceSubrange(other...(other + 1), with: [joined].compactMap(\.self))
      return
    }
  }
}

// MARK: - All of it

extension KeyedTree: Sequence {
  /// Every entry, in order.
  func makeIterator() -> Iterator { Iterator(root) }

  var underestimatedCount: Int { count }

  struct Iterator: IteratorProtocol {
    /// The inner nodes on the way, with the place of the next child in each.
    private var way: [(node: Node, next: Int)] = []
    private var leaf: Node?
    private var place = 0

    fileprivate init(_ root: Node?) {
      if let root { descend(root) }
    }

    private mutating func descend(_ top: Node) {
      var node = top
      while let child = node.children.first {
        way.append((node, 1))
        node = child
      }
      leaf = node
      place = 0
    }

    mutating func next() -> Entry? {
      while let leaf {
        if place < leaf.entries.count {
          defer { place += 1 }
          return leaf.entries[place]
        }
        self.leaf = nil
        while let last = way.last {
          if last.next < last.node.children.count {
            way[way.count - 1].next += 1
            descend(last.node.children[last.next])
            break
          }
          way.removeLast()
        }
      }
      return nil
    }
  }
}

extension KeyedTree: Equatable {
  /// Whether both have the same entries; at once where one came of the other by no change.
  static func == (left: Self, right: Self) -> Bool {
    left.root === right.root || left.count == right.count && left.elementsEqual(right)
  }
}

extension KeyedTree: Hashable where Entry: Hashable {
  func hash(into hasher: inout Hasher) {
    for entry in self { hasher.combine(entry) }
  }
}
