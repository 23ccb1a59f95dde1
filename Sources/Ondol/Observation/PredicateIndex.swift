// Finds the listeners that a change of a document may concern. For each listener, it chooses one
// condition that can be looked up: an id, an equality or an `in` by hash, an array's elements by
// hash, a range in an interval tree, or a term of a search. A changed document is looked up once
// for each field that listeners name, in its old and new state. The listeners found then check
// their whole condition. So the cost of a commit depends on what it changes and concerns, not on
// the number of listeners.

internal import OndolEngine

/// A condition by which a listener is found.
enum AccessPredicate: Hashable, Sendable {
  /// The document's id.
  case id(ExactText)
  /// The bytes of a field's value, as in the key of an index.
  case value(QueryField, [UInt8])
  /// The bytes of one of the elements of a field's array.
  case element(QueryField, [UInt8])
  /// The value of a field, as bytes.
  case range(QueryField, KeyRange)
  /// A term of a field's text.
  case term(ListenedText, SearchTerm)
  /// No condition: every document of the collection.
  case every
}

extension AccessPredicate {
  /// The predicates of a query, any of which leads to it; none when its result is always empty.
  static func all(of conjuncts: [FilterTree]) -> [AccessPredicate] {
    if conjuncts.contains(where: \.matchesNothing) { return [] }
    return best(of: conjuncts) ?? [.every]
  }

  /// The predicates of the most selective condition; nil when none can be looked up.
  private static func best(of conjuncts: [FilterTree]) -> [AccessPredicate]? {
    conjuncts.compactMap(all(of:)).min { cost($0) < cost($1) }
  }

  private static func all(of tree: FilterTree) -> [AccessPredicate]? {
    switch tree {
    case .field(let filter): return all(of: filter)
    case .all(let trees): return best(of: trees)
    case .any(let trees):
      var predicates: [AccessPredicate] = []
      for tree in trees where !tree.matchesNothing {
        guard let own = all(of: tree) else { return nil }
        predicates += own
      }
      return Array(Set(predicates))
    }
  }

  private static func all(of filter: FieldFilter) -> [AccessPredicate]? {
    guard filter.field != .documentID else { return ids(of: filter.condition) }
    switch filter.condition {
    case .equal(let operand): return [.value(filter.field, key(of: operand))]
    case .isIn(let operands): return unique(operands) { .value(filter.field, $0) }
    case .arrayContains(let operand): return [.element(filter.field, key(of: operand))]
    case .arrayContainsAny(let operands): return unique(operands) { .element(filter.field, $0) }
    case .less, .lessOrEqual, .greater, .greaterOrEqual, .hasPrefix:
      let bounds = KeyBounds(of: filter.condition, behind: [], descending: false, isID: false)
      return bounds.range.isEmpty ? [] : [.range(filter.field, bounds.range)]
    case .notEqual, .notIn, .matchesText: return nil
    }
  }

  private static func ids(of condition: FieldFilter.Condition) -> [AccessPredicate]? {
    let operands: [Value]
    switch condition {
    case .equal(let operand): operands = [operand]
    case .isIn(let list): operands = list
    default: return nil
    }
    return operands.compactMap { operand in
      switch operand {
      case .string(let id): .id(ExactText(id))
      case .reference(let path): .id(ExactText(path.documentID))
      default: nil
      }
    }
  }

  private static func unique(
    _ operands: [Value], _ make: ([UInt8]) -> AccessPredicate
  ) -> [AccessPredicate] {
    // Values whose keys are cut may share one key.
    Array(Set(operands.map { make(key(of: $0)) }))
  }

  /// The key by which a value is found. Equal values have equal keys; long values may share theirs.
  static func key(of value: Value) -> [UInt8] {
    var writer = KeyWriter()
    writer.append(value)
    return writer.bytes
  }

  /// Less for predicates that fewer documents are likely to meet.
  private static func cost(_ predicates: [AccessPredicate]) -> Int {
    let each =
      switch predicates.first {
      case .id: 1
      case .value: 4
      case .element: 8
      case .range: 64
      case .term: 128
      case .every, nil: 1024
      }
    return predicates.count.multipliedReportingOverflow(by: each).partialValue
  }
}

/// The listeners of one collection, or of one collection group, by their access predicates.
struct PredicateIndex: Sendable {
  private struct FieldListeners: Sendable {
    var values: [[UInt8]: [any CommitListener]] = [:]
    var elements: [[UInt8]: [any CommitListener]] = [:]
    var ranges = IntervalTree<any CommitListener>()

    var isEmpty: Bool { values.isEmpty && elements.isEmpty && ranges.isEmpty }
  }

  private var ids: [ExactText: [any CommitListener]] = [:]
  private var fields: [QueryField: FieldListeners] = [:]
  private var texts: [ListenedText: TermListeners] = [:]
  private var every: [any CommitListener] = []

  var isEmpty: Bool { ids.isEmpty && fields.isEmpty && texts.isEmpty && every.isEmpty }

  // MARK: - Lookup

  /// Shows every listener that a change of the document may concern, some perhaps twice.
  ///
  /// - Complexity: O(fields named by listeners × log n), and the number of listeners found.
  func visit(_ change: ObservedChange, _ body: (any CommitListener) -> Void) {
    for listener in every { body(listener) }
    if !ids.isEmpty, let found = ids[ExactText(change.path.documentID)] {
      for listener in found { body(listener) }
    }
    for (field, listeners) in fields {
      let before = change.before.flatMap { field.value(in: $0, name: .null) }
      let after = change.after.flatMap { field.value(in: $0, name: .null) }
      if let before { visit(listeners, before, body) }
      // Most fields of a document stay unchanged.
      if let after, before.map({ !$0.isIdentical(to: after) }) ?? true {
        visit(listeners, after, body)
      }
    }
    for (text, listeners) in texts {
      listeners.visit(
        change.before.flatMap { text.field.value(in: $0, name: .null)?.string },
        change.after.flatMap { text.field.value(in: $0, name: .null)?.string }, body)
    }
  }

  private func visit(
    _ listeners: FieldListeners, _ value: Value, _ body: (any CommitListener) -> Void
  ) {
    let key = AccessPredicate.key(of: value)
    if let found = listeners.values[key] {
      for listener in found { body(listener) }
    }
    if !listeners.ranges.isEmpty {
      for listener in listeners.ranges.elements(containing: key) { body(listener) }
    }
    guard !listeners.elements.isEmpty, case .array(let elements) = value else { return }
    for element in elements {
      guard let found = listeners.elements[AccessPredicate.key(of: element)] else { continue }
      for listener in found { body(listener) }
    }
  }

  /// Shows every listener, some perhaps several times.
  func visitAll(_ body: (any CommitListener) -> Void) {
    for listener in every { body(listener) }
    for listener in ids.values.joined() { body(listener) }
    for listeners in fields.values {
      for listener in listeners.values.values.joined() { body(listener) }
      for listener in listeners.elements.values.joined() { body(listener) }
      listeners.ranges.visit(body)
    }
    for listeners in texts.values { listeners.visitAll(body) }
  }

  // MARK: - Changes

  mutating func insert(_ listener: any CommitListener, _ predicate: AccessPredicate) {
    switch predicate {
    case .id(let id): ids[id, default: []].append(listener)
    case .value(let field, let key):
      fields[field, default: FieldListeners()].values[key, default: []].append(listener)
    case .element(let field, let key):
      fields[field, default: FieldListeners()].elements[key, default: []].append(listener)
    case .range(let field, let range):
      fields[field, default: FieldListeners()].ranges.insert(listener, range)
    case .term(let text, let term):
      texts[text, default: TermListeners(text.tokenizer)].insert(listener, term)
    case .every: every.append(listener)
    }
  }

  mutating func remove(_ listener: any CommitListener, _ predicate: AccessPredicate) {
    switch predicate {
    case .id(let id): ids.remove(listener, at: id)
    case .value(let field, let key): fields[field]?.values.remove(listener, at: key)
    case .element(let field, let key): fields[field]?.elements.remove(listener, at: key)
    case .range(let field, let range): fields[field]?.ranges.remove(range) { $0 === listener }
    case .term(let text, let term): texts[text]?.remove(listener, term)
    case .every: every.removeAll { $0 === listener }
    }
    switch predicate {
    case .value(let field, _), .element(let field, _), .range(let field, _):
      if fields[field]?.isEmpty == true { fields[field] = nil }
    case .term(let text, _): if texts[text]?.isEmpty == true { texts[text] = nil }
    case .id, .every: break
    }
  }
}

extension Dictionary where Value == [any CommitListener] {
  fileprivate mutating func remove(_ listener: any CommitListener, at key: Key) {
    guard let index = index(forKey: key) else { return }
    values[index].removeAll { $0 === listener }
    if values[index].isEmpty { remove(at: index) }
  }
}
