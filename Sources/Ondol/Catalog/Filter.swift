// Conditions combined with "and" and "or", nested freely: the argument of `whereFilter`, and the
// condition of a partial index. The tree defines the meaning. The planner looks for the parts that
// an index can answer, and the matcher checks the whole tree for every candidate.

/// A condition on documents, alone or combined with others.
///
/// ```swift
/// items.whereFilter(.orFilter([
///   .whereField("count", isEqualTo: 0),
///   .andFilter([.whereField("price", isLessThan: 5), .whereField("tags", arrayContains: "oak")]),
/// ]))
/// ```
///
/// Any number of conditions can be combined, in any combination. With a wrong path or operand, the
/// call that uses the filter throws.
public struct Filter: Sendable, Hashable {
  let tree: Result<FilterTree, DatabaseError>

  init(_ make: () throws(DatabaseError) -> FilterTree) {
    tree = Result(catching: make)
  }

  /// Documents that meet all of the filters; every document when there are none.
  ///
  /// - Parameter filters: any number of filters, nested freely.
  public static func andFilter(_ filters: [Filter]) -> Filter {
    Filter { () throws(DatabaseError) in .all(try trees(filters)) }
  }

  /// Documents that meet at least one of the filters; none when there are none.
  ///
  /// As in Firestore, a result is ordered by the fields that have inequalities, and documents
  /// without such a field are left out, even when they meet another of the filters. An explicit
  /// `order(by:missing:)` on the field keeps them.
  ///
  /// - Parameter filters: any number of filters, nested freely; Firestore allows 30 alternatives.
  /// - Complexity: with an index for each alternative, the cost of each; without one for any of
  ///   them, or with more than 1,024, one pass over the collection.
  public static func orFilter(_ filters: [Filter]) -> Filter {
    Filter { () throws(DatabaseError) in .any(try trees(filters)) }
  }

  private static func trees(_ filters: [Filter]) throws(DatabaseError) -> [FilterTree] {
    var trees: [FilterTree] = []
    for filter in filters { trees.append(try filter.tree.get()) }
    return trees
  }
}

// MARK: - One field

extension Filter {
  /// The field equals the value; nil means null. 1 equals 1.0, and NaN equals NaN. See
  /// `QuerySource.whereField(_:isEqualTo:)`.
  public static func whereField(
    _ field: FieldPath, isEqualTo value: (any FieldContent)?
  ) -> Filter {
    one(field, value) { .equal($0) }
  }

  /// The document has the field, with a value that is neither null nor equal to `value`. See
  /// `QuerySource.whereField(_:isNotEqualTo:)`.
  public static func whereField(
    _ field: FieldPath, isNotEqualTo value: (any FieldContent)?
  ) -> Filter {
    one(field, value) { .notEqual($0) }
  }

  /// The field has the value's type and is less. See `QuerySource.whereField(_:isLessThan:)`.
  public static func whereField(
    _ field: FieldPath, isLessThan value: (any FieldContent)?
  ) -> Filter {
    one(field, value, isRange: true) { .less($0) }
  }

  /// The field has the value's type and is not greater. See
  /// `QuerySource.whereField(_:isLessThanOrEqualTo:)`.
  public static func whereField(
    _ field: FieldPath, isLessThanOrEqualTo value: (any FieldContent)?
  ) -> Filter {
    one(field, value, isRange: true) { .lessOrEqual($0) }
  }

  /// The field has the value's type and is greater. See `QuerySource.whereField(_:isGreaterThan:)`.
  public static func whereField(
    _ field: FieldPath, isGreaterThan value: (any FieldContent)?
  ) -> Filter {
    one(field, value, isRange: true) { .greater($0) }
  }

  /// The field has the value's type and is not less. See
  /// `QuerySource.whereField(_:isGreaterThanOrEqualTo:)`.
  public static func whereField(
    _ field: FieldPath, isGreaterThanOrEqualTo value: (any FieldContent)?
  ) -> Filter {
    one(field, value, isRange: true) { .greaterOrEqual($0) }
  }

  /// The field equals one of the values, of which there may be any number, including null and NaN.
  /// See `QuerySource.whereField(_:in:)`.
  public static func whereField(
    _ field: FieldPath, in values: [(any FieldContent)?]
  ) -> Filter {
    list(field, values) { .isIn($0) }
  }

  /// The document has the field, with a value that is neither null nor equal to one of the values.
  /// When null is among them, nothing matches. See `QuerySource.whereField(_:notIn:)`.
  public static func whereField(
    _ field: FieldPath, notIn values: [(any FieldContent)?]
  ) -> Filter {
    list(field, values) { .notIn($0) }
  }

  /// The field is an array with an element that equals the value. See
  /// `QuerySource.whereField(_:arrayContains:)`.
  public static func whereField(
    _ field: FieldPath, arrayContains value: (any FieldContent)?
  ) -> Filter {
    one(field, value) { .arrayContains($0) }
  }

  /// The field is an array with an element that equals one of the values. See
  /// `QuerySource.whereField(_:arrayContainsAny:)`.
  public static func whereField(
    _ field: FieldPath, arrayContainsAny values: [(any FieldContent)?]
  ) -> Filter {
    list(field, values) { .arrayContainsAny($0) }
  }

  /// The field is a text that begins with `prefix`, compared by UTF-8 bytes. See
  /// `QuerySource.whereField(_:hasPrefix:)`.
  public static func whereField(_ field: FieldPath, hasPrefix prefix: String) -> Filter {
    Filter { () throws(DatabaseError) in
      .field(FieldFilter(field: try QueryField(field), condition: .hasPrefix(ExactText(prefix))))
    }
  }

  /// The field is a text that begins with `prefix`, optionally ignoring case. See
  /// `QuerySource.whereField(_:hasPrefix:ignoringCase:)`.
  public static func whereField(
    _ field: FieldPath, hasPrefix prefix: String, ignoringCase: Bool
  ) -> Filter {
    guard ignoringCase else { return whereField(field, hasPrefix: prefix) }
    return text(field, TextPattern(prefix, .beginning, ignoringCase: true))
  }

  /// The field is a text that contains `part`. See
  /// `QuerySource.whereField(_:containsText:ignoringCase:)`.
  public static func whereField(
    _ field: FieldPath, containsText part: String, ignoringCase: Bool = false
  ) -> Filter {
    text(field, TextPattern(part, .anywhere, ignoringCase: ignoringCase))
  }

  /// The field is the text, optionally ignoring case. See
  /// `QuerySource.whereField(_:isEqualTo:ignoringCase:)`.
  public static func whereField(
    _ field: FieldPath, isEqualTo text: String, ignoringCase: Bool
  ) -> Filter {
    guard ignoringCase else { return whereField(field, isEqualTo: text) }
    return self.text(field, TextPattern(text, .whole, ignoringCase: true))
  }

  private static func text(_ path: FieldPath, _ pattern: TextPattern) -> Filter {
    Filter { () throws(DatabaseError) in
      .field(FieldFilter(field: try QueryField(path), condition: .matchesText(pattern)))
    }
  }

  private static func one(
    _ path: FieldPath, _ content: (any FieldContent)?, isRange: Bool = false,
    _ condition: (Value) -> FieldFilter.Condition
  ) -> Filter {
    Filter { () throws(DatabaseError) in
      let field = try QueryField(path)
      let operand = try operand(content, of: field)
      if isRange, operand.isNull || operand.double?.isNaN == true {
        throw DatabaseError(
          .invalidArgument, "nothing is less or greater than \(operand); compare with ==",
          field: "\(field)")
      }
      return .field(FieldFilter(field: field, condition: condition(operand)))
    }
  }

  private static func list(
    _ path: FieldPath, _ contents: [(any FieldContent)?],
    _ condition: ([Value]) -> FieldFilter.Condition
  ) -> Filter {
    Filter { () throws(DatabaseError) in
      let field = try QueryField(path)
      var operands: [Value] = []
      operands.reserveCapacity(contents.count)
      for content in contents { operands.append(try operand(content, of: field)) }
      return .field(
        FieldFilter(field: field, condition: condition(operands.sortedWithoutDuplicates)))
    }
  }

  /// The operand of a condition.
  private static func operand(
    _ content: (any FieldContent)?, of field: QueryField
  ) throws(DatabaseError) -> Value {
    do throws(DatabaseError) {
      return try content?.encodeField().plainValue() ?? .null
    } catch {
      throw error.within(field: "\(field)")
    }
  }
}

// MARK: - The tree

/// Combined conditions.
indirect enum FilterTree: Sendable, Hashable {
  case field(FieldFilter)
  /// All of them; every document when there are none.
  case all([FilterTree])
  /// At least one of them; no document when there are none.
  case any([FilterTree])

  /// Whether a document meets the condition.
  func matches(_ fields: [String: Value], name: Value) -> Bool {
    switch self {
    case .field(let filter):
      filter.field.value(in: fields, name: name).map(filter.condition.matches) ?? false
    case .all(let trees): trees.allSatisfy { $0.matches(fields, name: name) }
    case .any(let trees): trees.contains { $0.matches(fields, name: name) }
    }
  }

  /// The conditions that must all be met, none of them an "and" itself. Alternatives that name
  /// values of one field are combined into one list.
  var conjuncts: [FilterTree] {
    switch self {
    case .field: [self]
    case .all(let trees): trees.flatMap(\.conjuncts)
    case .any(let trees) where trees.count == 1: trees[0].conjuncts
    case .any(let trees): [Self.list(of: trees).map { .field($0) } ?? self]
    }
  }

  /// The single condition `field in …` that is equivalent to the alternatives, if there is one.
  private static func list(of trees: [FilterTree]) -> FieldFilter? {
    var field: QueryField?
    var operands: [Value] = []
    for tree in trees {
      guard case .field(let filter) = tree, field == nil || field == filter.field else {
        return nil
      }
      field = filter.field
      switch filter.condition {
      case .equal(let operand): operands.append(operand)
      case .isIn(let list): operands += list
      default: return nil
      }
    }
    return field.map { FieldFilter(field: $0, condition: .isIn(operands.sortedWithoutDuplicates)) }
  }

  /// Every condition on one field, at any depth.
  var fieldFilters: [FieldFilter] {
    switch self {
    case .field(let filter): [filter]
    case .all(let trees), .any(let trees): trees.flatMap(\.fieldFilters)
    }
  }

  /// Whether no document can meet the condition.
  var matchesNothing: Bool {
    switch self {
    case .field(let filter): filter.matchesNothing
    case .all(let trees): trees.contains(where: \.matchesNothing)
    case .any(let trees): trees.allSatisfy(\.matchesNothing)
    }
  }

  /// The same tree with each condition on one field changed.
  func mapFields(
    _ change: (FieldFilter) throws(DatabaseError) -> FieldFilter
  ) throws(DatabaseError) -> FilterTree {
    switch self {
    case .field(let filter): return .field(try change(filter))
    case .all(let trees): return .all(try Self.map(trees, change))
    case .any(let trees): return .any(try Self.map(trees, change))
    }
  }

  private static func map(
    _ trees: [FilterTree], _ change: (FieldFilter) throws(DatabaseError) -> FieldFilter
  ) throws(DatabaseError) -> [FilterTree] {
    var changed: [FilterTree] = []
    for tree in trees { changed.append(try tree.mapFields(change)) }
    return changed
  }
}

extension FilterTree: CustomStringConvertible {
  var description: String {
    switch self {
    case .field(let filter): "\(filter)"
    case .all(let trees): Self.join(trees, " and ", none: "anything")
    case .any(let trees): Self.join(trees, " or ", none: "nothing")
    }
  }

  private static func join(_ trees: [FilterTree], _ word: String, none: String) -> String {
    guard !trees.isEmpty else { return none }
    return trees.map { tree in
      if case .field = tree { "\(tree)" } else { "(\(tree))" }
    }.joined(separator: word)
  }
}
