// Checks whether the rows of the tree are readable and consistent: no leaf has anything below it,
// no row describes a node that does not exist, and the rows that order children match the children.
// It runs in steps, each from where the last one ended, like CollectionCheck.

internal import OndolEngine

/// A check of the tree, between two steps.
struct TreeCheck: SteppedCheck {
  private let rows: Rows
  private var indexes: [TreeIndexDefinition] = []
  var findings: [Finding] = []
  /// The last key of the previous step; nil at the beginning.
  private var last: [UInt8]?
  private(set) var isDone = false
  private var hasBegun = false
  /// The last leaf, and the last row of a node whose children are still to come.
  private var leaf: [UInt8]?
  private var unproven: [UInt8]?

  /// Rows in one step.
  private static let stepCount = 512

  init(_ rows: Rows) {
    self.rows = rows
  }

  /// Checks some more rows. Blocks the thread while it reads blocks from disk.
  mutating func step() {
    do throws(DatabaseError) {
      if !hasBegun { try begin() }
      let lower = last.map { $0 + [0] } ?? TreeKey.root
      var count = 0
      var taken: [(key: [UInt8], value: [UInt8])] = []
      try rows.forEachRow(in: KeyRange(lower: lower, upper: TreeKey.root + [0xff])) {
        (key, value) throws(DatabaseError) in
        taken.append((key.array, value.array))
        count += 1
        return count < Self.stepCount
      }
      for (key, value) in taken { try check(key, value) }
      last = taken.last?.key ?? last
      if taken.count < Self.stepCount { finish() }
    } catch {
      findings.append(Finding(error, .tree))
      isDone = true
    }
  }

  private mutating func begin() throws(DatabaseError) {
    hasBegun = true
    indexes = try TreeIndexDefinition.all(in: rows)
    let owners: [Int64?] = try CloseOperations.owners(in: rows) + [nil]
    for owner in owners { _ = try CloseOperations(of: owner).all(in: rows) }
    for operations in try CloseOperations.ofConnections(in: rows) {
      _ = try operations.all(in: rows)
    }
    for index in indexes { try count(index) }
  }

  private mutating func finish() {
    if let unproven { note("something is said about a node that is not there", unproven) }
    unproven = nil
    isDone = true
  }

  // MARK: - Single rows

  private mutating func check(_ key: [UInt8], _ value: [UInt8]) throws(DatabaseError) {
    guard TreeKey.isNode(key.bytes) else { return try checkOrder(key, value) }
    if let leaf, key.starts(with: leaf), key != leaf {
      note("there is something below a leaf", key)
    }
    if let unproven, !key.starts(with: unproven) {
      note("something is said about a node that is not there", unproven)
    }
    do throws(MalformedBytes) {
      guard let names = try TreeKey.path(of: key.bytes), names.count <= TreePath.maximumDepth else {
        throw MalformedBytes(at: 0, "it is too deep")
      }
      let row = try TreeRow(value.bytes)
      if row.leaf == nil {
        unproven = key
      } else {
        leaf = key
        unproven = nil
      }
      if let priority = row.priority, !names.isEmpty { try checkPriority(priority, key, names) }
    } catch {
      note("it is damaged: \(error.reason) at \(error.offset)", key)
    }
  }

  private mutating func checkPriority(
    _ priority: Value, _ key: [UInt8], _ names: [String]
  ) throws(MalformedBytes) {
    let component = TreeKey.component(names[names.count - 1])
    let parent = Array(key.dropLast(component.count))
    let order = TreeOrder.priorityKey(priority, of: component, in: parent)
    if (try? rows.row(order)) == nil { note("it has a priority and no row that orders it", key) }
  }

  /// A row that orders a child must match the child.
  private mutating func checkOrder(_ key: [UInt8], _ value: [UInt8]) throws(DatabaseError) {
    var node = TreeKey.root.count
    while node < key.count, key[node] >= TreeKey.Tag.integer,
      let end = TreeKey.end(of: key.bytes, from: node)
    { node = end }
    let parent = Array(key[..<node])
    guard node < key.count, value.isEmpty else { return note("a row has an unknown form", parent) }
    var cursor = TreeCursor(rows, node: parent)
    if key[node] == TreeKey.Tag.priorities, let position = TreePosition(Array(key[(node + 1)...])) {
      let actual = try cursor.position(of: position.component, in: .priority)
      if actual == position { return }
    } else if let index = indexes.first(where: { $0.node == parent && key.starts(with: $0.prefix) }
    ),
      let position = TreePosition(Array(key[index.prefix.count...]))
    {
      let actual = try cursor.position(of: position.component, in: .child(index.way))
      if actual == position { return }
    }
    note("a row orders a child that is not there, or not so", parent)
  }

  /// Every child has its row in an index when there are as many rows as children, because each row
  /// is checked separately.
  private mutating func count(_ index: TreeIndexDefinition) throws(DatabaseError) {
    var cursor = TreeCursor(rows, node: index.node)
    var children = 0
    var bound: [UInt8] = []
    while let component = try cursor.component(atOrAfter: bound) {
      children += 1
      bound = component + [KeyCoding.afterAll]
    }
    var entries = 0
    try rows.forEachRow(in: KeyRange(prefix: index.prefix)) { (_, _) throws(DatabaseError) in
      entries += 1
      return true
    }
    guard entries != children else { return }
    note("an index has \(entries) rows, and there are \(children) children", index.node)
  }

  private mutating func note(_ message: String, _ key: [UInt8]) {
    let names = (try? TreeKey.path(of: key.bytes)) ?? []
    findings.append(
      Finding(
        .error, .tree, message, id: "/" + names.joined(separator: "/"), hint: Finding.damageHint))
  }
}
