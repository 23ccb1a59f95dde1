// The realtime tree's bytes. Keys and the orders of children compare by the tree's rules, which
// this target implements a second time. Rows and keys of any bytes are read or refused. An app's
// write becomes exactly the rows of its leaves.

import OndolEngine

@testable import Ondol

enum TreeTarget: FuzzTarget {
  static let name = "tree"

  static func run(_ bytes: [UInt8]) {
    var input = FuzzInput(bytes)
    switch input.below(5) {
    case 0: readRow(input.rest())
    case 1: readKey(input.rest())
    case 2: compareKeys(&input)
    case 3: compareValues(&input)
    default: write(&input)
    }
  }

  // MARK: - Hostile rows and keys

  private static func readRow(_ bytes: [UInt8]) {
    guard let row = try? TreeRow(bytes.bytes) else { return }
    let written = row.bytes.row
    guard let again = try? TreeRow(written.bytes) else {
      return demand(false, "\(row) cannot be read back")
    }
    demand(again.bytes.row == written, "\(row) comes back as \(again)")
  }

  private static func readKey(_ bytes: [UInt8]) {
    let key = TreeKey.root + bytes
    if let keys = try? TreeKey.path(of: key.bytes) {
      var again = TreeKey.root
      for name in keys { TreeKey.append(name, to: &again) }
      let found = try? TreeKey.path(of: again.bytes)
      demand(found == keys, "\(keys) comes back as \(found as Any)")
    }
    let isNode = TreeKey.isNode(key.bytes)
    demand(isNode == (TreeKey.orderedNode(of: key.bytes) == nil), "a row is a node's or not")
    if let position = TreePosition(bytes) {
      demand(Array(position.order) + position.component == bytes, "a position has lost bytes")
      demand(!position.component.isEmpty, "a position without a child")
    }
    let declaration = Keyspace.treeIndexes.prefix + bytes
    if let index = try? TreeIndexDefinition(declarationKey: declaration.bytes) {
      demand(index.declarationKey == declaration, "an index is declared under another key")
    }
  }

  // MARK: - Order

  private static func compareKeys(_ input: inout FuzzInput) {
    let left = key(&input)
    let right = key(&input)
    let found = TreeKey.compare(TreeKey.component(left), TreeKey.component(right)).signum()
    demand(
      found == order(left, right),
      "\(left.debugDescription) and \(right.debugDescription): \(found)")
    let component = TreeKey.component(left)
    let again = try? TreeKey.key(component.bytes)
    demand(
      again?.utf8.elementsEqual(left.utf8) == true,
      "\(left.debugDescription) comes back as \(again as Any)")
  }

  private static func key(_ input: inout FuzzInput) -> String {
    guard input.flag() else { return String(decoding: input.take(input.below(9)), as: UTF8.self) }
    return (0..<(1 + input.below(12))).map { _ in
      String(input.pick(Array("0123456789-1200a")))
    }.joined()
  }

  /// Integers by value, then the shorter one, then "-0…"; after them texts, as UTF-16.
  private static func order(_ left: String, _ right: String) -> Int {
    switch (integer(left), integer(right)) {
    case (let one?, let other?):
      let first = [one, left.utf8.count, left.hasPrefix("-") ? 0 : 1]
      let second = [other, right.utf8.count, right.hasPrefix("-") ? 0 : 1]
      return first == second ? 0 : first.lexicographicallyPrecedes(second) ? -1 : 1
    case (_?, nil): return -1
    case (nil, _?): return 1
    case (nil, nil): return textOrder(left, right)
    }
  }

  private static func textOrder(_ left: String, _ right: String) -> Int {
    let (left, right) = (Array(left.utf16), Array(right.utf16))
    return left == right ? 0 : left.lexicographicallyPrecedes(right) ? -1 : 1
  }

  private static func integer(_ key: String) -> Int? {
    let digits =
      key.unicodeScalars.first == "-" ? key.unicodeScalars.dropFirst() : key.unicodeScalars[...]
    guard key.utf8.count <= 11, !digits.isEmpty,
      digits.allSatisfy({ $0 >= "0" && $0 <= "9" }), let number = Int(key),
      Int32(exactly: number) != nil
    else { return nil }
    return number
  }

  private static func compareValues(_ input: inout FuzzInput) {
    let left = scalar(&input)
    let right = scalar(&input)
    let (one, other) = (TreeOrder.bytes(left), TreeOrder.bytes(right))
    demand(TreeOrder.length(of: one.bytes) == one.count, "\(left as Any) has another length")
    let found = one.bytes.compare(other.bytes).signum()
    demand(
      found == order(left, right), "\(left as Any) and \(right as Any): \(found)")
  }

  private static func scalar(_ input: inout FuzzInput) -> Value? {
    switch input.below(6) {
    case 0: return nil
    case 1: return .boolean(input.flag())
    case 2: return .integer(Int64(bitPattern: input.edge()))
    case 3:
      let number = Double(bitPattern: input.word())
      return .double(number.isFinite ? number : 0.5)
    case 4: return .double(Double(Int64(bitPattern: input.edge())))
    default: return .string(input.text())
    }
  }

  /// Nothing, false, true, numbers, texts.
  private static func order(_ left: Value?, _ right: Value?) -> Int {
    let ranks = [left, right].map { value in
      switch value {
      case nil: 0
      case .boolean(let value)?: value ? 2 : 1
      case .integer?, .double?: 3
      default: 4
      }
    }
    guard ranks[0] == ranks[1], let left, let right else { return (ranks[0] - ranks[1]).signum() }
    if case (.string(let one), .string(let other)) = (left, right) { return textOrder(one, other) }
    return ranks[0] == 3 ? ValueOrder.compare(left, right).signum() : 0
  }

  // MARK: - Writing

  private static func write(_ input: inout FuzzInput) {
    let value = input.value(depth: 4)
    let content: TreeContent
    do throws(DatabaseError) {
      content = try TreeContent(FieldInput(value), depth: 0)
    } catch {
      return demand(error.code == .invalidArgument, "\(value) throws \(error)")
    }
    var leaves: [[[UInt8]]: Value] = [:]
    collect(value, at: [], into: &leaves)
    var last: [UInt8]?
    for entry in content.rows {
      if let last { demand(TreeKey.compare(last, entry.suffix) < 0, "rows out of order") }
      last = entry.suffix
      let stored = entry.row.bytes.row
      let again = try? TreeRow(stored.bytes)
      demand(again == entry.row, "\(entry.row) comes back as \(again as Any)")
      guard let leaf = entry.row.leaf else { continue }
      let key = TreeKey.root + entry.suffix
      let path = (try? TreeKey.path(of: key.bytes)).flatMap { $0 } ?? []
      let expected = leaves.removeValue(forKey: path.map { Array($0.utf8) })
      demand(
        expected.map { leaf.value().isIdentical(to: $0) } == true,
        "\(path) has \(leaf), not \(expected as Any)")
    }
    demand(leaves.isEmpty, "these have no row: \(leaves)")
  }

  private static func collect(
    _ value: Value, at path: [[UInt8]], into leaves: inout [[[UInt8]]: Value]
  ) {
    switch value {
    case .null: break
    case .array(let elements):
      for (index, element) in elements.enumerated() {
        collect(element, at: path + [Array(String(index).utf8)], into: &leaves)
      }
    case .map(let fields):
      for (name, field) in fields { collect(field, at: path + [Array(name.utf8)], into: &leaves) }
    default: leaves[path] = value
    }
  }

  // MARK: - Seeds

  static func seeds() -> [[UInt8]] {
    var rows: [[UInt8]] = []
    for value: Value in [true, 7, -70_000, .double(0.5), "é"] {
      let row = TreeRow(leaf: .value(value), priority: "p")
      rows.append([0] + row.bytes.row)
    }
    rows.append([0] + TreeRow(leaf: .time(1_000_000)).bytes.row)
    rows.append([0] + TreeRow(arrayLength: 3).bytes.row)
    let keys = ["a", "-12", "007", "\u{ff5e}", "😀\0"].map { [1] + TreeKey.component($0) }
    var chance = Chance(11)
    let order = TreeOrder.bytes(.double(2.5)) + TreeKey.component("a")
    return rows + keys + [
      [1] + order, [1] + TreeKey.component("x") + [0x12] + TreeKey.component("y"),
    ]
      + (2..<5).flatMap { kind in [40, 160].map { [UInt8(kind)] + chance.bytes($0) } }
  }
}
