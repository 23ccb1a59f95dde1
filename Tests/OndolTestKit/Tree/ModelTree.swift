// The tree as plain values in memory, by the rules alone and without rows: the results of reads,
// and the events of listeners between two states. It compares keys and values by the rules, not as
// bytes.

package import Ondol

/// A node: a leaf, or children.
package struct ModelTree: Sendable, Equatable {
  package var leaf: Value?
  package var priority: Value?
  package var children: [String: ModelTree] = [:]

  package init(leaf: Value? = nil, priority: Value? = nil, children: [String: ModelTree] = [:]) {
    self.leaf = leaf
    self.priority = priority
    self.children = children
  }

  package var exists: Bool { leaf != nil || !children.isEmpty }

  package func descendant(_ path: ArraySlice<String>) -> ModelTree {
    guard let first = path.first else { return self }
    return children[first]?.descendant(path.dropFirst()) ?? ModelTree()
  }

  /// Replaces the node at a path.
  package mutating func set(_ path: ArraySlice<String>, _ node: ModelTree) {
    guard let first = path.first else {
      self = node.exists ? node : ModelTree()
      return
    }
    if !node.exists, leaf != nil { return }
    var child = children[first] ?? ModelTree()
    child.set(path.dropFirst(), node)
    children[first] = child.exists ? child : nil
    if !children.isEmpty { leaf = nil }
    if !exists { priority = nil }
  }

  package mutating func prioritize(_ path: ArraySlice<String>, _ new: Value?) {
    guard let first = path.first else {
      if exists { priority = new }
      return
    }
    children[first]?.prioritize(path.dropFirst(), new)
  }

  /// In the form that includes priorities.
  package var exported: Value {
    var fields = children.mapValues(\.exported)
    if let priority {
      if let leaf { fields[".value"] = leaf }
      fields[".priority"] = priority
      return .map(fields)
    }
    return leaf ?? (fields.isEmpty ? .null : .map(fields))
  }
}

// MARK: - Orders

/// The orders of children.
package enum ModelOrder: Sendable {
  case priority
  case key
  case value
  case child([String])

  /// The value that a node is ordered by, if it is the one that others are ordered by; nil for a
  /// node with children.
  private func scalar(_ node: ModelTree) -> Value? {
    if node.children.isEmpty { return node.leaf ?? .null }
    return Optional.none
  }

  func value(of node: ModelTree) -> Value? {
    switch self {
    case .priority: node.priority ?? .null
    case .key: .null
    case .value: scalar(node)
    case .child(let way): scalar(node.descendant(way[...]))
    }
  }
}

package enum ModelRules {
  private static func integer(_ key: String) -> Int32? {
    let digits = key.hasPrefix("-") ? key.dropFirst() : key[...]
    guard !digits.isEmpty, key.utf16.count <= 11, digits.allSatisfy({ "0123456789".contains($0) })
    else { return nil }
    return Int32(key)
  }

  static func isBefore(text left: String, _ right: String) -> Bool {
    left.utf16.lexicographicallyPrecedes(right.utf16)
  }

  /// Integers first, by value and then the shorter; then texts.
  static func compare(keys left: String, _ right: String) -> Int {
    switch (integer(left), integer(right)) {
    case (let first?, let second?):
      if first != second { return first < second ? -1 : 1 }
      if left.count != right.count { return left.count < right.count ? -1 : 1 }
    case (.some, nil): return -1
    case (nil, .some): return 1
    case (nil, nil): break
    }
    return isBefore(text: left, right) ? -1 : (isBefore(text: right, left) ? 1 : 0)
  }

  private static func rank(_ value: Value?) -> Int {
    switch value {
    case .null?: 0
    case .boolean(let truth)?: truth ? 2 : 1
    case .integer?, .double?: 3
    case .string?: 4
    default: 5
    }
  }

  private static func number(_ value: Value?) -> Double {
    value?.double ?? value?.integer.map { Double($0) } ?? 0
  }

  /// Nothing, false, true, numbers, texts, nodes.
  static func compare(values left: Value?, _ right: Value?) -> Int {
    let ranks = (rank(left), rank(right))
    if ranks.0 != ranks.1 { return ranks.0 - ranks.1 }
    if ranks.0 == 3 {
      let numbers = (number(left), number(right))
      return numbers.0 == numbers.1 ? 0 : (numbers.0 < numbers.1 ? -1 : 1)
    }
    guard let first = left?.string, let second = right?.string else { return 0 }
    return isBefore(text: first, second) ? -1 : (isBefore(text: second, first) ? 1 : 0)
  }
}

// MARK: - Queries

/// A query, by the rules.
package struct ModelTreeQuery: Sendable {
  package struct Bound: Sendable {
    package var value: Value
    package var key: String?
    package var isIncluded: Bool

    package init(value: Value, key: String?, isIncluded: Bool) {
      self.value = value
      self.key = key
      self.isIncluded = isIncluded
    }
  }

  package var path: [String]
  package var order = ModelOrder.priority
  package var start: Bound?
  package var end: Bound?
  package var limit: Int?
  package var isFromEnd = false

  package init(path: [String]) {
    self.path = path
  }

  var isWhole: Bool { start == nil && end == nil && limit == nil }

  /// The order of a child relative to a bound.
  private func compare(_ child: ModelTreeResult.Child, _ bound: Bound) -> Int {
    if case .key = order {
      return ModelRules.compare(keys: child.key, bound.value.string ?? "")
    }
    let values = ModelRules.compare(values: child.order, bound.value)
    if values != 0 { return values }
    guard let key = bound.key else { return 0 }
    return ModelRules.compare(keys: child.key, key)
  }

  /// Returns the query's result.
  package func result(in tree: ModelTree) -> ModelTreeResult {
    let node = tree.descendant(path[...])
    var children = node.children.map { key, child in
      ModelTreeResult.Child(key: key, order: order.value(of: child), node: child)
    }
    children.sort { left, right in
      let values = ModelRules.compare(values: left.order, right.order)
      return values != 0 ? values < 0 : ModelRules.compare(keys: left.key, right.key) < 0
    }
    if let start {
      children.removeAll { start.isIncluded ? compare($0, start) < 0 : compare($0, start) <= 0 }
    }
    if let end {
      children.removeAll { end.isIncluded ? compare($0, end) > 0 : compare($0, end) >= 0 }
    }
    if let limit { children = isFromEnd ? children.suffix(limit) : Array(children.prefix(limit)) }
    guard !isWhole else { return ModelTreeResult(children: children, value: node.exported) }
    let selected = ModelTree(
      children: Dictionary(uniqueKeysWithValues: children.map { ($0.key, $0.node) }))
    return ModelTreeResult(children: children, value: selected.exported)
  }
}

/// A query's result: the children in order, and the node.
package struct ModelTreeResult: Sendable {
  package struct Child: Sendable {
    package var key: String
    package var order: Value?
    package var node: ModelTree
  }

  package var children: [Child]
  package var value: Value

  package init(children: [Child], value: Value) {
    self.children = children
    self.value = value
  }

  package func isSame(as other: ModelTreeResult) -> Bool {
    value.description == other.value.description && children.map(\.key) == other.children.map(\.key)
  }

  /// Returns the events for a listener that has seen this and then sees `later`.
  package func events(to later: ModelTreeResult) -> [String] {
    let old = Dictionary(uniqueKeysWithValues: children.map { ($0.key, $0) })
    let new = Dictionary(uniqueKeysWithValues: later.children.map { ($0.key, $0) })
    var events = children.filter { new[$0.key] == nil }.map {
      Self.event("childRemoved", $0, after: nil)
    }
    var added: [String] = []
    var moved: [String] = []
    /// The children that move, and those that were added after one of these.
    var displaced: Set<String> = []
    var changed: [String] = []
    for (index, child) in later.children.enumerated() {
      let previous = index > 0 ? later.children[index - 1].key : nil
      guard let before = old[child.key] else {
        added.append(Self.event("childAdded", child, after: previous))
        if let previous, displaced.contains(previous) {
          moved.append(Self.event("childMoved", child, after: previous))
          displaced.insert(child.key)
        }
        continue
      }
      guard before.node.exported.description != child.node.exported.description else { continue }
      if ModelRules.compare(values: before.order, child.order) != 0 {
        moved.append(Self.event("childMoved", child, after: previous))
        displaced.insert(child.key)
      }
      changed.append(Self.event("childChanged", child, after: previous))
    }
    events += added + moved + changed
    return events + ["value \(later.value)"]
  }

  private static func event(_ kind: String, _ child: Child, after previous: String?) -> String {
    "\(kind) \(child.key) after \(previous ?? "-"): \(child.node.exported)"
  }

  /// The events of a listener that begins here.
  package var firstEvents: [String] {
    ModelTreeResult(children: [], value: .null).events(to: self)
  }
}

extension TreeEvent {
  /// The event in the words of the model.
  package var told: String {
    if kind == .value { return "value \(snapshot.exportedValue)" }
    return
      "\(kind) \(snapshot.key ?? "") after \(previousSiblingKey ?? "-"): \(snapshot.exportedValue)"
  }
}
