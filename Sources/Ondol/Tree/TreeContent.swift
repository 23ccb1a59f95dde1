// Turns what an app writes into rows: stage 1 of the write path for the tree. Pure. A map becomes
// the rows of its leaves. An array becomes those of its elements and one row that marks it as an
// array. Null and empty values become nothing.
//
// Maps may use the Realtime Database's own form for what JSON cannot express: `.priority` for a
// node's priority, `.value` for a leaf that has one, `.sv` for a value that is computed when the
// write is committed.

internal import OndolEngine

/// The rows at a place and below that a write makes, in the order of their keys.
struct TreeContent: Sendable {
  struct Row: Sendable {
    /// The key after that of the place.
    var suffix: [UInt8]
    /// Bytes of the suffix before its last component.
    var parentLength: Int
    var row: TreeRow
  }

  private(set) var rows: [Row] = []

  /// No rows: the node is removed.
  static let nothing = TreeContent()

  var isEmpty: Bool { rows.isEmpty }

  private init() {}

  init(rows: [Row]) {
    self.rows = rows
  }

  /// The rows of `input` at a place of the given depth in the tree. Throws `.invalidArgument`,
  /// naming the place, when the tree cannot hold the value.
  init(
    _ input: FieldInput, priority: Value? = nil, depth: Int
  ) throws(DatabaseError) {
    try append(input, at: [], parentLength: 0, depth: depth)
    if let priority, !isEmpty { setPriority(priority) }
  }

  /// Gives the place's own row a priority.
  private mutating func setPriority(_ priority: Value) {
    if rows[0].suffix.isEmpty {
      rows[0].row.priority = priority
    } else {
      rows.insert(Row(suffix: [], parentLength: 0, row: TreeRow(priority: priority)), at: 0)
    }
  }

  /// The same with the commit's times replaced by `now`.
  func resolved(now: Int64) -> TreeContent {
    var copy = self
    for index in rows.indices where rows[index].row.leaf == .pending {
      copy.rows[index].row.leaf = .time(now)
    }
    return copy
  }

  /// A priority as an app gives it; nil for none. Throws `.invalidArgument` unless it is a number
  /// or a text.
  static func priority(_ content: (any FieldContent)?) throws(DatabaseError) -> Value? {
    guard let value = try content?.encodeField().plainValue(), !value.isNull else { return nil }
    return try priority(value)
  }

  fileprivate static func priority(_ value: Value) throws(DatabaseError) -> Value? {
    switch value {
    case .null: return nil
    case .integer, .string: return value
    case .double(let number) where number.isFinite: return value
    default:
      throw DatabaseError(
        .invalidArgument, "a priority is a finite number or a text, and this is \(value)")
    }
  }
}

// MARK: - Appending

extension TreeContent {
  private mutating func append(
    _ input: FieldInput, at suffix: [UInt8], parentLength: Int, depth: Int
  ) throws(DatabaseError) {
    switch input.form {
    case .value(let value):
      try append(value, at: suffix, parentLength: parentLength, depth: depth)
    case .operation(let operation):
      let leaf = try Self.leaf(operation)
      rows.append(Row(suffix: suffix, parentLength: parentLength, row: TreeRow(leaf: leaf)))
    case .map(let fields):
      try append(fields: fields, at: suffix, parentLength: parentLength, depth: depth)
    }
  }

  private mutating func append(
    _ value: Value, at suffix: [UInt8], parentLength: Int, depth: Int
  ) throws(DatabaseError) {
    switch value {
    case .null: break
    case .array(let elements):
      try append(elements: elements, at: suffix, parentLength: parentLength, depth: depth)
    case .map(let fields):
      let inputs = fields.mapValues { FieldInput($0) }
      try append(fields: inputs, at: suffix, parentLength: parentLength, depth: depth)
    default:
      let leaf = TreeLeaf.value(try Self.scalar(value))
      rows.append(Row(suffix: suffix, parentLength: parentLength, row: TreeRow(leaf: leaf)))
    }
  }

  private mutating func append(
    elements: [Value], at suffix: [UInt8], parentLength: Int, depth: Int
  ) throws(DatabaseError) {
    try Self.checkDepth(depth)
    guard elements.count <= TreeRow.longestArray else {
      throw DatabaseError(
        .invalidArgument,
        "an array of the tree may have \(TreeRow.longestArray) elements; use keys of childByAutoId")
    }
    let place = rows.count
    rows.append(
      Row(
        suffix: suffix, parentLength: parentLength, row: TreeRow(arrayLength: elements.count)))
    for (index, element) in elements.enumerated() where !element.isNull {
      var key = suffix
      TreeKey.append(String(index), to: &key)
      do throws(DatabaseError) {
        try append(element, at: key, parentLength: suffix.count, depth: depth + 1)
      } catch {
        throw error.within(index: index)
      }
    }
    if rows.count == place + 1 { rows.removeLast() }
  }

  private mutating func append(
    fields: [String: FieldInput], at suffix: [UInt8], parentLength: Int, depth: Int
  ) throws(DatabaseError) {
    if let made = fields[".sv"] {
      let leaf = try Self.serverValue(made, beside: fields.count)
      return rows.append(Row(suffix: suffix, parentLength: parentLength, row: TreeRow(leaf: leaf)))
    }
    let priority = try fields[".priority"].flatMap { (input) throws(DatabaseError) in
      try Self.priority(try input.plainValue())
    }
    let place = rows.count
    if let leaf = fields[".value"] {
      guard fields.keys.allSatisfy({ $0 == ".value" || $0 == ".priority" }) else {
        throw DatabaseError(.invalidArgument, "a node with \".value\" has no children beside it")
      }
      try append(leaf, at: suffix, parentLength: parentLength, depth: depth)
      if let priority, rows.count > place { rows[place].row.priority = priority }
      return
    }
    try Self.checkDepth(depth)
    if let priority {
      rows.append(Row(suffix: suffix, parentLength: parentLength, row: TreeRow(priority: priority)))
    }
    let start = rows.count
    for (key, name, input) in try Self.sorted(fields, behind: suffix) {
      do throws(DatabaseError) {
        try append(input, at: key, parentLength: suffix.count, depth: depth + 1)
      } catch {
        throw error.within(field: name)
      }
    }
    if rows.count == start { rows.removeSubrange(place...) }
  }

  /// The children among `fields`, in the order of their keys.
  private static func sorted(
    _ fields: [String: FieldInput], behind suffix: [UInt8]
  ) throws(DatabaseError) -> [(key: [UInt8], name: String, input: FieldInput)] {
    var children: [(key: [UInt8], name: String, input: FieldInput)] = []
    children.reserveCapacity(fields.count)
    for (name, input) in fields where name != ".priority" {
      if let problem = TreePath.problem(withKey: name) {
        throw DatabaseError(
          .invalidArgument, "\"\(name)\" cannot be a key of the tree: \(problem)")
      }
      var key = suffix
      TreeKey.append(name, to: &key)
      children.append((key, name, input))
    }
    children.sort { $0.key.bytes.compare($1.key.bytes) < 0 }
    return children
  }

  private static func checkDepth(_ depth: Int) throws(DatabaseError) {
    guard depth < TreePath.maximumDepth else {
      throw DatabaseError(
        .invalidArgument, "nodes of the tree may be nested \(TreePath.maximumDepth) deep")
    }
  }
}

// MARK: - Leaves

extension TreeContent {
  /// The longest text in bytes.
  private static let longestText = 10 << 20

  /// The value, if it can be a leaf.
  static func scalar(_ value: Value) throws(DatabaseError) -> Value {
    switch value {
    case .boolean, .integer: return value
    case .double(let number):
      if number.isFinite { return value }
      throw DatabaseError(.invalidArgument, "the tree holds finite numbers, and this is \(number)")
    case .string(let text):
      if text.utf8.count <= longestText { return value }
      throw DatabaseError(
        .invalidArgument,
        "a text has \(text.utf8.count) bytes, and may have \(longestText) in the tree; store it as"
          + " a blob")
    case .decimal(let number):
      throw DatabaseError(
        .invalidArgument,
        "the tree holds the numbers of the Realtime Database, and \(number) is a decimal; write an"
          + " integer, a double or a text, or store it in a document")
    case .timestamp:
      throw DatabaseError(
        .invalidArgument,
        "the tree holds what JSON does; write a date as its milliseconds since 1970, or"
          + " ServerValue.timestamp() for the commit's moment")
    default:
      throw DatabaseError(
        .invalidArgument,
        "the tree holds what JSON does (booleans, numbers, texts, arrays, maps), and this is"
          + " \(value); a document can hold it")
    }
  }

  private static func leaf(
    _ operation: FieldValue.Operation
  ) throws(DatabaseError) -> TreeLeaf {
    switch operation {
    case .serverTimestamp: return .pending
    case .increment(let amount): return .increment(try scalar(amount))
    case .delete, .minimum, .maximum, .arrayUnion, .arrayRemove, .invalid:
      throw DatabaseError(
        .invalidArgument,
        "FieldValue.\(operation.name)() is for documents; the tree knows serverTimestamp and"
          + " increment, and null removes")
    }
  }

  /// The value after `.sv`.
  private static func serverValue(
    _ input: FieldInput, beside count: Int
  ) throws(DatabaseError) -> TreeLeaf {
    let value = try input.plainValue()
    if count == 1, value.string == "timestamp" { return .pending }
    if count == 1, let amount = value["increment"], value.map?.count == 1 {
      switch amount {
      case .integer, .double: return .increment(try scalar(amount))
      default: break
      }
    }
    throw DatabaseError(
      .invalidArgument,
      "\".sv\" stands alone, with \"timestamp\" or a map of \"increment\" and a number")
  }
}

extension TreeLeaf {
  /// The leaf that results from writing this over `stored`: an increment is added to a number and
  /// replaces anything else with its amount. A sum over 64 bits becomes a double, as in the
  /// Realtime Database.
  func applied(to stored: TreeLeaf?, now: Int64) -> TreeLeaf {
    guard case .increment(let amount) = self else { return self }
    let sum: Value
    switch (stored?.value(now: now), amount) {
    case (.integer(let left)?, .integer(let right)):
      let (whole, isTooLarge) = left.addingReportingOverflow(right)
      sum = isTooLarge ? .double(Double(left) + Double(right)) : .integer(whole)
    case (.integer(let left)?, .double(let right)): sum = .double(Double(left) + right)
    case (.double(let left)?, .integer(let right)): sum = .double(left + Double(right))
    case (.double(let left)?, .double(let right)): sum = .double(left + right)
    default: sum = amount
    }
    // The sum of two finite numbers can be infinite, and the tree does not store that.
    if case .double(let number) = sum, !number.isFinite {
      return .value(.double(number < 0 ? -.greatestFiniteMagnitude : .greatestFiniteMagnitude))
    }
    return .value(sum)
  }
}

/// Values that are computed when a write to the tree is committed. They are those of `FieldValue`,
/// under the Realtime Database's names.
public enum ServerValue {
  /// The commit's time, in whole milliseconds since 1970: the same everywhere in a commit.
  public static func timestamp() -> FieldValue { .serverTimestamp() }

  /// Adds to the existing number; a missing value, or one that is not a number, becomes `amount`.
  ///
  /// Two integers whose sum is over 64 bits become a double, unlike in documents.
  ///
  /// - Parameter amount: the number to add; negative to subtract.
  public static func increment(_ amount: Int) -> FieldValue { .increment(amount) }

  /// Adds to the existing number; the sum is a double.
  ///
  /// - Parameter amount: the number to add; negative to subtract.
  public static func increment(_ amount: Double) -> FieldValue { .increment(amount) }
}
