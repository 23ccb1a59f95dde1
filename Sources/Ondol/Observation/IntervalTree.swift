// Finds which of many ranges of keys contain a key. With it, a changed document finds the listeners
// with a range condition that may concern it, without looking at the others. It is a treap ordered
// by the beginnings of ranges, in which each node knows the furthest end of the ranges below it.
// PredicateIndex uses it.

internal import OndolEngine

/// Elements, each with a range of keys.
struct IntervalTree<Element: Sendable>: Sendable {
  private struct Node: Sendable {
    var range: KeyRange
    var elements: [Element]
    /// The furthest end of a range in this node or below.
    var reach: [UInt8]
    var priority: UInt64
    var left: Int?
    var right: Int?
  }

  private var nodes: [Node] = []
  private var free: [Int] = []
  private var root: Int?
  private var nextPriority: UInt64 = 0

  var isEmpty: Bool { root == nil }

  // MARK: - Lookup

  /// Every element whose range contains `key`.
  ///
  /// - Complexity: O(log n) and the number of these elements.
  func elements(containing key: [UInt8]) -> [Element] {
    var found: [Element] = []
    collect(root, key, &found)
    return found
  }

  private func collect(_ place: Int?, _ key: [UInt8], _ found: inout [Element]) {
    guard let place, Self.isBefore(key, nodes[place].reach) else { return }
    collect(nodes[place].left, key, &found)
    guard !Self.isBefore(key, nodes[place].range.lower) else { return }
    if Self.isBefore(key, nodes[place].range.upper) { found += nodes[place].elements }
    collect(nodes[place].right, key, &found)
  }

  /// Shows every element.
  func visit(_ body: (Element) -> Void) {
    visit(root, body)
  }

  private func visit(_ place: Int?, _ body: (Element) -> Void) {
    guard let place else { return }
    visit(nodes[place].left, body)
    for element in nodes[place].elements { body(element) }
    visit(nodes[place].right, body)
  }

  private static func isBefore(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    left.bytes.compare(right.bytes) < 0
  }

  private static func compare(_ left: KeyRange, _ right: KeyRange) -> Int {
    let order = left.lower.bytes.compare(right.lower.bytes)
    return order != 0 ? order : left.upper.bytes.compare(right.upper.bytes)
  }

  // MARK: - Changes

  /// Adds an element.
  ///
  /// - Complexity: O(log n).
  mutating func insert(_ element: Element, _ range: KeyRange) {
    root = inserting(element, range, at: root)
  }

  private mutating func inserting(_ element: Element, _ range: KeyRange, at place: Int?) -> Int {
    guard let place else { return makeNode(element, range) }
    let order = Self.compare(range, nodes[place].range)
    if order == 0 {
      nodes[place].elements.append(element)
      return place
    }
    if order < 0 {
      let child = inserting(element, range, at: nodes[place].left)
      nodes[place].left = child
      if nodes[child].priority > nodes[place].priority { return lift(child, over: place) }
    } else {
      let child = inserting(element, range, at: nodes[place].right)
      nodes[place].right = child
      if nodes[child].priority > nodes[place].priority { return lift(child, over: place) }
    }
    findReach(of: place)
    return place
  }

  private mutating func makeNode(_ element: Element, _ range: KeyRange) -> Int {
    nextPriority &+= 0x9E37_79B9_7F4A_7C15
    let mixed = (nextPriority ^ (nextPriority >> 30)) &* 0xBF58_476D_1CE4_E5B9
    let node = Node(
      range: range, elements: [element], reach: range.upper, priority: mixed ^ (mixed >> 31))
    if let place = free.popLast() {
      nodes[place] = node
      return place
    }
    nodes.append(node)
    return nodes.count - 1
  }

  /// Replaces the parent by the child and makes it the child's child.
  private mutating func lift(_ child: Int, over place: Int) -> Int {
    if nodes[place].left == child {
      nodes[place].left = nodes[child].right
      nodes[child].right = place
    } else {
      nodes[place].right = nodes[child].left
      nodes[child].left = place
    }
    findReach(of: place)
    findReach(of: child)
    return child
  }

  private mutating func findReach(of place: Int) {
    var reach = nodes[place].range.upper
    for child in [nodes[place].left, nodes[place].right] {
      if let child, Self.isBefore(reach, nodes[child].reach) { reach = nodes[child].reach }
    }
    nodes[place].reach = reach
  }

  /// Removes the elements of a range for which `isOne` returns true.
  ///
  /// - Complexity: O(log n) and the number of elements with the same range.
  mutating func remove(_ range: KeyRange, where isOne: (Element) -> Bool) {
    root = removing(range, isOne, at: root)
  }

  private mutating func removing(
    _ range: KeyRange, _ isOne: (Element) -> Bool, at place: Int?
  ) -> Int? {
    guard let place else { return nil }
    let order = Self.compare(range, nodes[place].range)
    if order == 0 {
      nodes[place].elements.removeAll(where: isOne)
      if !nodes[place].elements.isEmpty { return place }
      let joined = joining(nodes[place].left, nodes[place].right)
      free.append(place)
      return joined
    }
    if order < 0 {
      nodes[place].left = removing(range, isOne, at: nodes[place].left)
    } else {
      nodes[place].right = removing(range, isOne, at: nodes[place].right)
    }
    findReach(of: place)
    return place
  }

  /// Joins two trees into one, all of the left before all of the right.
  private mutating func joining(_ left: Int?, _ right: Int?) -> Int? {
    guard let left else { return right }
    guard let right else { return left }
    if nodes[left].priority > nodes[right].priority {
      nodes[left].right = joining(nodes[left].right, right)
      findReach(of: left)
      return left
    }
    nodes[right].left = joining(left, nodes[right].left)
    findReach(of: right)
    return right
  }
}
