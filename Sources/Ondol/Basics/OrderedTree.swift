// An immutable tree of ordered entries: a copy keeps its state, while the next state shares
// everything except the path to the change. So a listener that has received an older state costs
// only the difference. One entry more or less costs O(log n), however many there are. The
// difference between two states is found without looking at their shared parts.

/// The order of entries. No two entries of a tree have the same key.
protocol EntryOrder: Sendable {
  associatedtype Entry: Sendable
  associatedtype Key

  func key(of entry: Entry) -> Key
  /// Negative when `left` comes first, zero when the two are the same.
  func compare(_ left: Key, _ right: Key) -> Int
}

/// Entries in the order of their keys, which are unique.
struct OrderedTree<Order: EntryOrder>: Sendable {
  typealias Entry = Order.Entry
  typealias Key = Order.Key

  /// The most entries of a leaf, or children of an inner node. Changing a node makes a new one and
  /// retains all of its children, which costs more than an additional level or two. So the number
  /// is small.
  private static var capacity: Int { 16 }

  fileprivate final class Node: Sendable {
    /// The entries of a leaf; empty in an inner node.
    let entries: [Entry]
    let children: [Node]
    let count: Int
    /// Zero for a leaf.
    let height: Int
    /// The least entry. Each node of a tree has one.
    let first: Entry?

    init(entries: [Entry]) {
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

  let order: Order
  private var root: Node

  /// A tree of entries that are in order already.
  init(_ order: Order, sorted entries: [Entry] = []) {
    self.order = order
    var nodes = Self.chunks(of: entries).map { Node(entries: $0) }
    while nodes.count > 1 { nodes = Self.chunks(of: nodes).map { Node(children: $0) } }
    root = nodes.first ?? Node(entries: [])
  }

  private static func chunks<Element>(of elements: [Element]) -> [[Element]] {
    guard elements.count > capacity else { return [elements] }
    // Not full, so that the next insertion does not split each of them.
    let size = capacity * 3 / 4
    return stride(from: 0, to: elements.count, by: size).map {
      Array(elements[$0..<Swift.min($0 + size, elements.count)])
    }
  }

  var count: Int { root.count }
  var isEmpty: Bool { root.count == 0 }
  var first: Entry? { root.first }
  var last: Entry? {
    var node = root
    while let child = node.children.last { node = child }
    return node.entries.last
  }

  // MARK: - Lookup

  /// The number of entries before this key, and the entry with the key.
  ///
  /// - Complexity: O(log n).
  func find(_ key: Key) -> (rank: Int, entry: Entry?) {
    var (node, rank) = (root, 0)
    while node.height > 0 {
      let place = childPlace(of: key, in: node)
      for child in node.children[..<place] { rank += child.count }
      node = node.children[place]
    }
    let place = entryPlace(of: key, in: node)
    return (rank + place, isEntry(at: place, of: key, in: node) ? node.entries[place] : nil)
  }

  /// The first entry at or after a key.
  ///
  /// - Complexity: O(log n).
  func first(atOrAfter key: Key) -> Entry? { first(atOrAfter: key, in: root) }

  private func first(atOrAfter key: Key, in node: Node) -> Entry? {
    guard node.height > 0 else {
      let place = entryPlace(of: key, in: node)
      return place < node.entries.count ? node.entries[place] : nil
    }
    let place = childPlace(of: key, in: node)
    if let found = first(atOrAfter: key, in: node.children[place]) { return found }
    return place + 1 < node.children.count ? node.children[place + 1].first : nil
  }

  /// The last entry before a key.
  ///
  /// - Complexity: O(log n).
  func last(before key: Key) -> Entry? {
    // When a node begins with the key itself, everything before it is in the previous child.
    var (node, before) = (root, nil as Node?)
    while node.height > 0 {
      let place = childPlace(of: key, in: node)
      if place > 0 { before = node.children[place - 1] }
      node = node.children[place]
    }
    let place = entryPlace(of: key, in: node)
    if place > 0 { return node.entries[place - 1] }
    while let child = before?.children.last { before = child }
    return before?.entries.last
  }

  /// The child that has the key, if any has: the last that does not begin after it.
  private func childPlace(of key: Key, in node: Node) -> Int {
    let behind = node.children.partition { child in
      child.first.map { order.compare(order.key(of: $0), key) <= 0 } ?? false
    }
    return Swift.max(0, behind - 1)
  }

  /// The number of entries of a leaf before the key.
  private func entryPlace(of key: Key, in node: Node) -> Int {
    node.entries.partition { order.compare(order.key(of: $0), key) < 0 }
  }

  private func isEntry(at place: Int, of key: Key, in node: Node) -> Bool {
    place < node.entries.count && order.compare(order.key(of: node.entries[place]), key) == 0
  }

  // MARK: - Changes

  /// Inserts the entry, and replaces and returns one with the same key.
  ///
  /// - Complexity: O(log n).
  @discardableResult
  mutating func insert(_ entry: Entry) -> Entry? {
    var replaced: Entry?
    let (node, other) = inserting(entry, order.key(of: entry), into: root, &replaced)
    root = other.map { Node(children: [node, $0]) } ?? node
    return replaced
  }

  /// The node with the entry, split in two halves when it would be too large.
  private func inserting(
    _ entry: Entry, _ key: Key, into node: Node, _ replaced: inout Entry?
  ) -> (Node, Node?) {
    if node.height == 0 {
      var entries = node.entries
      let place = entryPlace(of: key, in: node)
      if isEntry(at: place, of: key, in: node) {
        replaced = entries[place]
        entries[place] = entry
      } else {
        entries.insert(entry, at: place)
      }
      guard entries.count > Self.capacity else { return (Node(entries: entries), nil) }
      let (left, right) = Self.halves(of: entries)
      return (Node(entries: left), Node(entries: right))
    }
    let place = childPlace(of: key, in: node)
    let old = node.children[place]
    let (child, other) = inserting(entry, key, into: old, &replaced)
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

  /// Removes the entry with this key; nil when there is none.
  ///
  /// - Complexity: O(log n).
  @discardableResult
  mutating func remove(_ key: Key) -> Entry? {
    guard let (rest, entry) = removing(key, from: root) else { return nil }
    root = rest
    while root.height > 0, root.children.count == 1 { root = root.children[0] }
    if root.count == 0 { root = Node(entries: []) }
    return entry
  }

  /// The node without the entry, and the entry; nil when it has none with this key.
  private func removing(_ key: Key, from node: Node) -> (rest: Node, entry: Entry)? {
    if node.height == 0 {
      let place = entryPlace(of: key, in: node)
      guard isEntry(at: place, of: key, in: node) else { return nil }
      var entries = node.entries
      let entry = entries.remove(at: place)
      return (Node(entries: entries), entry)
    }
    let place = childPlace(of: key, in: node)
    guard let (child, entry) = removing(key, from: node.children[place]) else { return nil }
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

// MARK: - All entries

extension OrderedTree {
  /// Shows every entry, in order.
  ///
  /// - Complexity: O(n).
  func visit(_ body: (Entry) -> Void) { Self.visit(root, body) }

  private static func visit(_ node: Node, _ body: (Entry) -> Void) {
    for entry in node.entries { body(entry) }
    for child in node.children { visit(child, body) }
  }
}

extension OrderedTree: Sequence {
  /// Every entry, in order.
  func makeIterator() -> Iterator { Iterator(root) }

  var underestimatedCount: Int { count }

  struct Iterator: IteratorProtocol {
    /// The inner nodes from the root, with the place of the next child in each.
    private var way: [(node: Node, next: Int)] = []
    private var leaf: Node?
    private var place = 0

    fileprivate init(_ root: Node) {
      descend(root)
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

extension OrderedTree: Equatable where Order.Entry: Equatable {
  /// Whether both have the same entries; immediate when one is an unchanged copy of the other.
  static func == (left: Self, right: Self) -> Bool {
    left.root === right.root || left.count == right.count && left.elementsEqual(right)
  }
}

extension OrderedTree: Hashable where Order.Entry: Hashable {
  func hash(into hasher: inout Hasher) {
    for entry in self { hasher.combine(entry) }
  }
}

// MARK: - Differences

extension OrderedTree where Order.Entry: AnyObject {
  /// The entries of this tree and of a later one that the other does not have, in order.
  ///
  /// - Complexity: O(c log n) when c changes led from this tree to the later one.
  func difference(to later: OrderedTree) -> (old: [Entry], new: [Entry]) {
    let (old, new) = unshared(with: later)
    return withoutShared(old, new) { $0 }
  }
}

extension OrderedTree {
  /// The entries of this tree and of a later one in those parts that are not the same object in
  /// both, in order. Every entry that differs is among them, and also some that are equal.
  ///
  /// - Complexity: as `difference(to:)`.
  func unshared(with later: OrderedTree) -> (old: [Entry], new: [Entry]) {
    var (old, new) = ([root], [later.root])
    while true {
      (old, new) = withoutShared(old, new) { $0.first }
      let height = Swift.max(old.first?.height ?? 0, new.first?.height ?? 0)
      if height == 0 { break }
      // Level by level: the higher one is expanded first.
      if old.first?.height == height { old = Self.joined(old) { $0.children } }
      if new.first?.height == height { new = Self.joined(new) { $0.children } }
    }
    return (Self.joined(old) { $0.entries }, Self.joined(new) { $0.entries })
  }

  // Uses closures: in generic code, a key path is made each time, which takes some microseconds.
  private static func joined<Part>(_ nodes: [Node], _ parts: (Node) -> [Part]) -> [Part] {
    // A single node already has the array.
    nodes.count == 1 ? parts(nodes[0]) : nodes.flatMap(parts)
  }

  /// The nodes of one level, or entries, that only one of two lists has. Both lists are in order,
  /// and each part has another first entry than the rest of its list. So of two different parts,
  /// the one that begins first is nowhere else in the other list, and of two that begin alike
  /// neither is.
  private func withoutShared<Part: AnyObject>(
    _ old: [Part], _ new: [Part], _ first: (Part) -> Entry?
  ) -> ([Part], [Part]) {
    // Usually everything before and after one place is equal.
    let shorter = Swift.min(old.count, new.count)
    var (front, back) = (0, 0)
    while front < shorter, old[front] === new[front] { front += 1 }
    while back < shorter - front, old[old.count - 1 - back] === new[new.count - 1 - back] {
      back += 1
    }
    let (oldEnd, newEnd) = (old.count - back, new.count - back)
    var (left, right) = (front, front)
    var (ofOld, ofNew): ([Part], [Part]) = ([], [])
    while left < oldEnd, right < newEnd {
      if old[left] === new[right] {
        (left, right) = (left + 1, right + 1)
        continue
      }
      let comparison = compare(first(old[left]), first(new[right]))
      if comparison <= 0 {
        ofOld.append(old[left])
        left += 1
      }
      if comparison >= 0 {
        ofNew.append(new[right])
        right += 1
      }
    }
    ofOld += old[left..<oldEnd]
    ofNew += new[right..<newEnd]
    return (ofOld, ofNew)
  }

  /// In the order of keys; nil, the first entry of an empty tree, comes first.
  private func compare(_ left: Entry?, _ right: Entry?) -> Int {
    guard let left, let right else { return left == nil ? right == nil ? 0 : -1 : 1 }
    return order.compare(order.key(of: left), order.key(of: right))
  }
}
