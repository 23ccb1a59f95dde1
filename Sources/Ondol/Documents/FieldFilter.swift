// One condition of a query, and whether a document meets it. Indexes only make this faster and
// never change its meaning: the executor checks every candidate with it, and the tests compare
// every plan with it.
//
// A missing field meets no condition, not even `!=`. What a condition asks of a value that is there
// is a ValueTest.

/// What a condition or an order refers to.
enum QueryField: Sendable, Hashable {
  case documentID
  case field(FieldNames)
  /// The comparison keys of a field's texts: see TextComparison.
  case compared(FieldNames, TextComparison)

  init(_ path: FieldPath) throws(DatabaseError) {
    self = path.isDocumentID ? .documentID : .field(try path.names())
  }

  /// A field, and how its texts are compared; with nil, by their bytes.
  init(_ names: FieldNames, comparing comparison: TextComparison?) {
    self = comparison.map { .compared(names, $0) } ?? .field(names)
  }

  /// A field whose texts are compared in this way.
  ///
  /// Throws `.invalidArgument` for document ids, which are always compared by their bytes.
  init(_ path: FieldPath, comparing comparison: TextComparison) throws(DatabaseError) {
    guard !path.isDocumentID else {
      throw DatabaseError(
        .invalidArgument, "documents' ids are compared by their bytes; leave the comparison out",
        field: "\(path)")
    }
    self = .compared(try path.names(), comparison)
  }

  /// How the field's texts are compared; nil when by their bytes.
  var comparison: TextComparison? {
    if case .compared(_, let comparison) = self { comparison } else { nil }
  }

  /// The field whose texts are compared by their bytes.
  var plain: QueryField {
    if case .compared(let names, _) = self { .field(names) } else { self }
  }

  /// The value by which the field's value is compared.
  func compared(_ value: Value) -> Value { comparison?.value(of: value) ?? value }

  /// The value in a document; nil when it is missing. `name` is what the query calls the document:
  /// its id in a collection, its path in a collection group.
  func value(in fields: [String: Value], name: Value) -> Value? {
    switch self {
    case .documentID: name
    case .field(let names): lookUp(names[...], in: fields)
    case .compared(let names, let comparison):
      lookUp(names[...], in: fields).map(comparison.value)
    }
  }

  static func == (left: QueryField, right: QueryField) -> Bool {
    switch (left, right) {
    case (.documentID, .documentID): true
    case (.field(let left), .field(let right)): ValueOrder.compareSegments(left, right) == 0
    case (.compared(let left, let leftComparison), .compared(let right, let rightComparison)):
      leftComparison == rightComparison && ValueOrder.compareSegments(left, right) == 0
    default: false
    }
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(segments: names)
    if let comparison { hasher.combine(comparison.code) }
  }
}

extension QueryField {
  /// Whether both refer to the same field, however its texts are compared, so that a document has
  /// either both or neither.
  func isOfSameField(as other: QueryField) -> Bool {
    ValueOrder.compareSegments(names, other.names) == 0
  }
}

extension [QueryField] {
  /// Whether one of them refers to the field, however texts are compared.
  func contains(fieldOf field: QueryField) -> Bool { contains { $0.isOfSameField(as: field) } }
}

extension QueryField: CustomStringConvertible {
  var description: String {
    switch self {
    case .documentID: "\(FieldPath.documentID())"
    case .field(let names): WriteCompiler.describe(names)
    case .compared(let names, let comparison): WriteCompiler.describe(names) + comparison.suffix
    }
  }
}

/// A condition on one field.
struct FieldFilter: Sendable, Hashable {
  /// Lists are sorted, without duplicates.
  enum Condition: Sendable, Hashable {
    case equal(Value)
    case notEqual(Value)
    case less(Value)
    case lessOrEqual(Value)
    case greater(Value)
    case greaterOrEqual(Value)
    case isIn([Value])
    case notIn([Value])
    case arrayContains(Value)
    case arrayContainsAny([Value])
    case hasPrefix(ExactText)
    case matchesText(TextPattern)
  }

  var field: QueryField
  var condition: Condition

  /// Whether the condition admits a range of values, so that results are ordered by the field
  /// unless the query says otherwise.
  var isInequality: Bool {
    if case .matchesText = condition { false } else { !condition.namesValues }
  }

  /// Whether no document can meet the condition.
  var matchesNothing: Bool {
    switch condition {
    case .isIn(let operands), .arrayContainsAny(let operands): operands.isEmpty
    case .notIn(let operands): operands.containsSorted(.null)
    default: false
    }
  }
}

extension FieldFilter.Condition {
  /// Whether the condition lists the values, or elements, that it admits.
  var namesValues: Bool { test.orders == .same && !test.isOfText }

  /// What the condition asks of a field's value.
  var test: ValueTest {
    switch self {
    case .equal(let operand): ValueTest(.value(operand), .same)
    case .notEqual(let operand): ValueTest(.value(operand), [.below, .above, .other])
    case .less(let operand): ValueTest(.value(operand), .below)
    case .lessOrEqual(let operand): ValueTest(.value(operand), [.below, .same])
    case .greater(let operand): ValueTest(.value(operand), .above)
    case .greaterOrEqual(let operand): ValueTest(.value(operand), [.above, .same])
    case .isIn(let list): ValueTest(.anyOf(list), .same)
    case .notIn(let list): ValueTest(.anyOf(list), list.containsSorted(.null) ? [] : .other)
    case .arrayContains(let operand): ValueTest(.value(operand), .same, ofElements: true)
    case .arrayContainsAny(let list): ValueTest(.anyOf(list), .same, ofElements: true)
    case .hasPrefix(let prefix):
      ValueTest(.pattern(TextPattern(prefix.text, .beginning, ignoringCase: false)), .same)
    case .matchesText(let pattern): ValueTest(.pattern(pattern), .same)
    }
  }

  /// Whether a field that holds `value` meets the condition.
  func matches(_ value: Value) -> Bool { test.passes(value) }
}

extension FieldFilter: CustomStringConvertible {
  var description: String {
    switch condition {
    case .equal(let operand): "\(field) == \(operand)"
    case .notEqual(let operand): "\(field) != \(operand)"
    case .less(let operand): "\(field) < \(operand)"
    case .lessOrEqual(let operand): "\(field) <= \(operand)"
    case .greater(let operand): "\(field) > \(operand)"
    case .greaterOrEqual(let operand): "\(field) >= \(operand)"
    case .isIn(let operands): "\(field) in \(Self.describe(operands))"
    case .notIn(let operands): "\(field) not in \(Self.describe(operands))"
    case .arrayContains(let operand): "\(field) contains \(operand)"
    case .arrayContainsAny(let operands): "\(field) contains any of \(Self.describe(operands))"
    case .hasPrefix(let prefix): "\(field) begins with \"\(prefix.text)\""
    case .matchesText(let pattern): "\(field) \(pattern)"
    }
  }

  private static func describe(_ operands: [Value]) -> String {
    operands.count <= 8 ? "\(operands)" : "(\(operands.count) values)"
  }
}

extension [Value] {
  /// The values in their order, without duplicates.
  var sortedWithoutDuplicates: [Value] {
    var result: [Value] = []
    for value in sorted(by: { ValueOrder.compare($0, $1) < 0 }) where result.last != value {
      result.append(value)
    }
    return result
  }

  /// Whether the values, which are sorted, contain `value`.
  /// - Complexity: O(log n) comparisons.
  func containsSorted(_ value: Value) -> Bool {
    var lower = 0
    var upper = count
    while lower < upper {
      let middle = (lower + upper) / 2
      let order = ValueOrder.compare(self[middle], value)
      if order == 0 { return true }
      if order < 0 { lower = middle + 1 } else { upper = middle }
    }
    return false
  }
}
