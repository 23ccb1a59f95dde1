// A result kept in order, as an immutable tree: whoever holds one keeps it as it was, while the
// next one shares all but the way to what changed. So a listener that has seen an older result
// costs only the difference, one document more or less costs O(log n) however large the result is,
// and what two results do not share is found without looking at what they do. Used by ResultView.

/// A document in a result, with what it is sorted by.
final class RankedDocument: Sendable {
  let keys: [Value?]
  let document: DocumentSnapshot

  init(keys: [Value?], document: DocumentSnapshot) {
    self.keys = keys
    self.document = document
  }
}

/// Documents in the order of their keys, which are unique.
struct RankedTree: Sendable {
  /// Entries of a leaf, and children of an inner node, at most. Whoever changes a node makes a new
  /// one and touches all of its children to count them as held once more, which costs more than a
  /// level or two: so few.
  private static let capacity = 16

  fileprivate final class Node: Sendable {
    /// Of a leaf; empty in an inner node.
    let entries: [RankedDocument]
    let children: [Node]
    let count: Int
    /// Zero for a leaf.
    let height: Int
    /// The least entry. A node that is part of a tree has one.
    let first: RankedDocument?

    init(entries: [RankedDocument]) {
      self.entries = entries
      children = []
      count = entries.count
      height = 0
      first = entries.first
    }

    /// - Parameter count: the entries in the children.
    init(children: [Node], count: Int) {
      entries = []
      self.children = children
      self.count = count
      height = (children.first?.height ?? 0) + 1
      first = children.first?.first
    }

    convenience init(children: [Node]) {
      self.init(children: children, count: children.reduce(0) { $0 + $1.count })
    }

    var size: Int { height == 0 ? entries.count : children.count }
  }

  let orders: [SortOrder]
  private var root: Node

  /// No documents.
  init(_ orders: [SortOrder]) {
    self.orders = orders
    root = Node(entries: [])
  }

  /// Documents that are in order already.
  init(_ orders: [SortOrder], sorted entries: [RankedDocument]) {
    self.orders = orders
    var nodes = Self.chunks(of: entries).map { Node(entries: $0) }
    while nodes.count > 1 { nodes = Self.chunks(of: nodes).map { Node(children: $0) } }
    root = nodes.first ?? Node(entries: [])
  }

  private static func chunks<Element>(of elements: [Element]) -> [[Element]] {
    // Not full, so that the next insertion does not split each of them.
    let size = capacity * 3 / 4
    return stride(from: 0, to: elements.count, by: size).map {
      Array(elements[$0..<min($0 + size, elements.count)])
    }
  }

  var count: Int { root.count }
  var isEmpty: Bool { root.count == 0 }
  var first: RankedDocument? { root.first }
  var last: RankedDocument? {
    var node = root
    while let child = node.children.last { node = child }
    return node.entries.last
  }

  /// How many entries come before these keys, and the entry that has them.
  func find(_ keys: [Value?]) -> (rank: Int, entry: RankedDocument?) {
    var (node, rank) = (root, 0)
    while node.height > 0 {
      let place = childPlace(of: keys, in: node)
      for child in node.children[..<place] { rank += child.count }
      node = node.children[place]
    }
    let place = entryPlace(of: keys, in: node)
    let isFound =
      place < node.entries.count && orders.compare(node.entries[place].keys, keys) == 0
    return (rank + place, isFound ? node.entries[place] : nil)
  }

  /// The child that has the keys, if any has.
  private func childPlace(of keys: [Value?], in node: Node) -> Int {
    var (low, high) = (0, node.children.count)
    // Behind the last child whose first entry is not behind the keys.
    while low < high {
      let middle = (low + high) / 2
      if let first = node.children[middle].first, orders.compare(first.keys, keys) <= 0 {
        low = middle + 1
      } else {
        high = middle
      }
    }
    return max(0, low - 1)
  }

  /// How many entries of a leaf come before the keys.
  private func entryPlace(of keys: [Value?], in node: Node) -> Int {
    var (low, high) = (0, node.entries.count)
    while low < high {
      let middle = (low + high) / 2
      if orders.compare(node.entries[middle].keys, keys) < 0 {
        low = middle + 1
      } else {
        high = middle
      }
    }
    return low
  }

  // MARK: - Changing

  /// Puts the entry in its place, instead of one with the same keys.
  mutating func insert(_ entry: RankedDocument) {
    let (node, other) = inserting(entry, into: root)
    root = other.map { Node(children: [node, $0]) } ?? node
  }

  /// The node with the entry, in two halves when it would be too large.
  private func inserting(_ entry: RankedDocument, into node: Node) -> (Node, Node?) {
    if node.height == 0 {
      var entries = node.entries
      let place = entryPlace(of: entry.keys, in: node)
      if place < entries.count, orders.compare(entries[place].keys, entry.keys) == 0 {
        entries[place] = entry
      } else {
        entries.insert(entry, at: place)
      }
      guard entries.count > Self.capacity else { return (Node(entries: entries), nil) }
      let (left, right) = Self.halves(of: entries)
      return (Node(entries: left), Node(entries: right))
    }
    let place = childPlace(of: entry.keys, in: node)
    let old = node.children[place]
    let (child, other) = inserting(entry, into: old)
    var children = node.children
    children[place] = child
    guard let other else {
      return (Node(children: children, count: node.count + child.count - old.count), nil)
    }
    children.insert(other, at: place + 1)
    guard children.count > Self.capacity else { return (Node(children: children), nil) }
    let (left, right) = Self.halves(of: children)
    return (Node(children: left), Node(children: right))
  }

  private static func halves<Element>(of elements: [Element]) -> ([Element], [Element]) {
    let middle = elements.count / 2
    return (Array(elements[..<middle]), Array(elements[middle...]))
  }

  /// Takes out the entry with these keys; nil when there is none.
  @discardableResult
  mutating func remove(_ keys: [Value?]) -> RankedDocument? {
    guard let (rest, entry) = removing(keys, from: root) else { return nil }
    root = rest
    while root.height > 0, root.children.count == 1 { root = root.children[0] }
    if root.count == 0 { root = Node(entries: []) }
    return entry
  }

  /// The node without the entry, and the entry; nil when it has none with these keys.
  private func removing(
    _ keys: [Value?], from node: Node
  ) -> (rest: Node, entry: RankedDocument)? {
    if node.height == 0 {
      let place = entryPlace(of: keys, in: node)
      guard place < node.entries.count, orders.compare(node.entries[place].keys, keys) == 0 else {
        return nil
      }
      var entries = node.entries
      let entry = entries.remove(at: place)
      return (Node(entries: entries), entry)
    }
    let place = childPlace(of: keys, in: node)
    guard let (child, entry) = removing(keys, from: node.children[place]) else { return nil }
    var children = node.children
    if child.count == 0 {
      children.remove(at: place)
    } else {
      children[place] = child
      if child.size < Self.capacity / 4 { Self.join(&children, at: place) }
    }
    return (Node(children: children, count: node.count - 1), entry)
  }

  /// Joins a small node with a neighbour when the two fit into one.
  private static func join(_ nodes: inout [Node], at place: Int) {
    for other in [place - 1, place] where other >= 0 && other + 1 < nodes.count {
      let (left, right) = (nodes[other], nodes[other + 1])
      guard left.size + right.size <= capacity else { continue }
      let joined =
        left.height == 0
        ? Node(entries: left.entries + right.entries)
        : Node(children: left.children + right.children)
      nodes.replaceSubrange(other...(other + 1), with: [joined])
      return
    }
  }
}

// MARK: - All of it, and what is different

extension RankedTree {
  /// Every entry, in order.
  ///
  /// - Complexity: O(n).
  var entries: [RankedDocument] {
    var entries: [RankedDocument] = []
    entries.reserveCapacity(count)
    Self.visit(root) { entries.append($0) }
    return entries
  }

  /// Every document, in order.
  ///
  /// - Complexity: O(n).
  var documents: [DocumentSnapshot] {
    var documents: [DocumentSnapshot] = []
    documents.reserveCapacity(count)
    Self.visit(root) { documents.append($0.document) }
    return documents
  }

  private static func visit(_ node: Node, _ body: (RankedDocument) -> Void) {
    for entry in node.entries { body(entry) }
    for child in node.children { visit(child, body) }
  }

  /// The entries of this tree and of a later one that the other does not have, in order.
  ///
  /// - Complexity: O(c log n) where the later tree came of this one by c changes.
  func difference(
    to later: RankedTree
  ) -> (old: [RankedDocument], new: [RankedDocument]) {
    var (old, new) = ([root], [later.root])
    while true {
      (old, new) = Self.withoutShared(old, new)
      let height = max(old.first?.height ?? 0, new.first?.height ?? 0)
      if height == 0 { break }
      // Level by level: what is higher is taken apart first.
      if old.first?.height == height { old = Self.joined(old, \.children) }
      if new.first?.height == height { new = Self.joined(new, \.children) }
    }
    return Self.withoutShared(Self.joined(old, \.entries), Self.joined(new, \.entries))
  }

  private static func joined<Part>(_ nodes: [Node], _ parts: (Node) -> [Part]) -> [Part] {
    // Of a single node the array is there.
    nodes.count == 1 ? parts(nodes[0]) : nodes.flatMap(parts)
  }

  private static func withoutShared<Element: AnyObject>(
    _ old: [Element], _ new: [Element]
  ) -> ([Element], [Element]) {
    // Mostly all is the same before and behind one place.
    let shorter = min(old.count, new.count)
    var (front, back) = (0, 0)
    while front < shorter, old[front] === new[front] { front += 1 }
    while back < shorter - front, old[old.count - 1 - back] === new[new.count - 1 - back] {
      back += 1
    }
    let old = Array(old[front..<(old.count - back)])
    let new = Array(new[front..<(new.count - back)])
    guard old.count + new.count > 2, !old.isEmpty, !new.isEmpty else { return (old, new) }
    let inOld = Set(old.map { ObjectIdentifier($0) })
    let shared = inOld.intersection(new.map { ObjectIdentifier($0) })
    if shared.isEmpty { return (old, new) }
    return (
      old.filter { !shared.contains(ObjectIdentifier($0)) },
      new.filter { !shared.contains(ObjectIdentifier($0)) }
    )
  }
}
