// The conclusions from a query's conditions about an expression over unread fields. Each answer
// must hold for every document that the query can return: a wrong "true" shows documents to people
// who must not see them. So everything that is not plainly implied stays unknown.
//
// A field that equals a number does not become that number: the query finds 5 and 5.0 alike, and
// `is int` distinguishes them.

#if Server
  struct RuleConditions: Sendable {
    typealias Test = RuleQuery.Condition.Test

    private let conditions: [RuleQuery.Condition]

    /// Conditions on document names are left out: in a rule, the name is not a field.
    init(_ conditions: [RuleQuery.Condition]) {
      self.conditions = conditions.filter { $0.field != ["__name__"] }
    }

    /// The tests of exactly this field.
    private func tests(of field: [String]) -> [Test] {
      conditions.filter { $0.field.elementsEqual(field, by: isExactly) }.map(\.test)
    }

    /// Whether each document has this field: it, or a field below it, has a condition.
    private func isPresent(_ field: [String]) -> Bool {
      conditions.contains {
        $0.field.count >= field.count
          && $0.field.prefix(field.count).elementsEqual(field, by: isExactly)
      }
    }

    /// Whether each document has a map there.
    private func isMap(_ field: [String]) -> Bool {
      field.isEmpty
        || conditions.contains {
          $0.field.count > field.count
            && $0.field.prefix(field.count).elementsEqual(field, by: isExactly)
        }
    }

    // MARK: - Members

    func member(_ name: String, of unknown: RuleUnknown) -> RuleValue? {
      switch unknown {
      case .anything: return nil
      case .resource: return isExactly(name, "data") ? .unknown(.field([])) : nil
      case .field(let path):
        let field = path + [name]
        for case .equal(let value) in tests(of: field) where value.isToldByEquality { return value }
        return .unknown(.field(field))
      }
    }

    // MARK: - Operators

    /// Returns the result of comparing an unknown value, on the left, with a known one.
    func answer(
      _ comparison: RuleOperator, _ unknown: RuleUnknown, _ other: RuleValue
    ) -> RuleValue? {
      if other.isUnknown { return nil }
      switch unknown {
      case .anything: return nil
      case .resource:
        guard case .null = other, comparison == .equal else { return nil }
        return .bool(false)
      case .field(let field):
        if comparison == .equal, case .null = other, isMap(field) { return .bool(false) }
        let tests = tests(of: field)
        for test in tests {
          if let answer = test.answer(comparison, other, hasLowerBound: tests.haveLowerBound) {
            return .bool(answer)
          }
        }
        return nil
      }
    }

    func answer(is type: RuleType, _ unknown: RuleUnknown) -> RuleValue? {
      guard case .field(let field) = unknown else { return nil }
      if isMap(field) { return .bool(type == .map) }
      for test in tests(of: field) {
        if let answer = test.answer(is: type) { return .bool(answer) }
      }
      return nil
    }

    func answer(_ element: RuleValue, in container: RuleValue) -> RuleValue? {
      switch (element, container) {
      case (.unknown, .unknown): return nil
      case (.unknown(.field(let field)), .list(let elements)):
        return answer(field) { elements.contains($0) }
      case (.unknown(.field(let field)), .set(let elements)):
        return answer(field) { elements.contains($0) }
      case (_, .unknown(.field(let field))):
        if case .string(let name) = element, isMap(field), isPresent(field + [name]) {
          return .bool(true)
        }
        return tests(of: field).contains { $0.implies(containing: element) } ? .bool(true) : nil
      default: return nil
      }
    }

    /// Returns the answer that all possible values of the field have in common.
    private func answer(_ field: [String], _ holds: (RuleValue) -> Bool) -> RuleValue? {
      for test in tests(of: field) {
        guard let values = test.possibleValues else { continue }
        if values.allSatisfy(holds) { return .bool(true) }
        if !values.contains(where: holds) { return .bool(false) }
      }
      return nil
    }

    // MARK: - Methods

    func answer(
      _ method: RuleMethod, of receiver: RuleValue, _ arguments: [RuleValue]
    ) -> RuleValue? {
      guard case .unknown(.field(let field)) = receiver,
        !arguments.contains(where: \.isUnknown)
      else { return nil }
      switch (method, arguments.first) {
      case (.get, .string(let name)):
        return isMap(field) && isPresent(field + [name])
          ? member(name, of: .field(field)) : nil
      case (.hasAny, .list(let elements)):
        return tests(of: field).contains { $0.implies(containingAnyOf: elements) }
          ? .bool(true) : nil
      case (.hasAll, .list(let elements)):
        let tests = tests(of: field)
        let hasAll =
          !elements.isEmpty
          && elements.allSatisfy { element in tests.contains { $0.implies(containing: element) } }
        return hasAll ? .bool(true) : nil
      default: return nil
      }
    }
  }

  extension [RuleQuery.Condition.Test] {
    /// Whether a test leaves only numbers above another one, and therefore no NaN.
    fileprivate var haveLowerBound: Bool {
      contains { test in
        switch test {
        case .greater(let bound), .greaterOrEqual(let bound): bound.isOf(.number)
        default: false
        }
      }
    }
  }

  extension RuleQuery.Condition.Test {
    /// The possible values of the field, if they are few: any of them, or one that is equal.
    fileprivate var possibleValues: [RuleValue]? {
      switch self {
      case .equal(let value): value.isNaN ? nil : [value]
      case .oneOf(let values): values.isEmpty || values.contains(where: \.isNaN) ? nil : values
      default: nil
      }
    }

    /// Returns whether the field has an order to `other`, or equals it; nil if the test does not
    /// determine it.
    fileprivate func answer(
      _ comparison: RuleOperator, _ other: RuleValue, hasLowerBound: Bool
    ) -> Bool? {
      if other.isNaN { return nil }
      if let values = possibleValues {
        let answers = values.map { $0.answer(comparison, other) }
        guard let first = answers[0], answers.allSatisfy({ $0 == first }) else { return nil }
        return first
      }
      switch self {
      case .notEqual(let value): return comparison == .equal && value == other ? false : nil
      case .noneOf(let values):
        return comparison == .equal && values.contains(other) ? false : nil
      case .contains, .containsAny:
        guard comparison == .equal, case .null = other else { return nil }
        return false
      case .greater(let bound): return Self.above(bound, isStrict: true, comparison, other)
      case .greaterOrEqual(let bound): return Self.above(bound, isStrict: false, comparison, other)
      case .less(let bound):
        // NaN comes before all numbers in a query, but is not below any of them in a rule.
        if bound.isOf(.number), !hasLowerBound { return nil }
        return Self.below(bound, isStrict: true, comparison, other)
      case .lessOrEqual(let bound):
        if bound.isOf(.number), !hasLowerBound { return nil }
        return Self.below(bound, isStrict: false, comparison, other)
      case .equal, .oneOf: return nil
      }
    }

    /// Returns the answer for values above a bound.
    private static func above(
      _ bound: RuleValue, isStrict: Bool, _ comparison: RuleOperator, _ other: RuleValue
    ) -> Bool? {
      guard let order = bound.order(to: other) else { return nil }
      // All values are above `other`, or at least not below it.
      let isAbove = order > 0 || order == 0 && isStrict
      switch comparison {
      case .greater, .greaterOrEqual:
        return isAbove || comparison == .greaterOrEqual && order == 0 ? true : nil
      case .less: return order >= 0 ? false : nil
      case .lessOrEqual, .equal: return isAbove ? false : nil
      default: return nil
      }
    }

    /// Returns the answer for values below a bound.
    private static func below(
      _ bound: RuleValue, isStrict: Bool, _ comparison: RuleOperator, _ other: RuleValue
    ) -> Bool? {
      guard let order = bound.order(to: other) else { return nil }
      let isBelow = order < 0 || order == 0 && isStrict
      switch comparison {
      case .less, .lessOrEqual:
        return isBelow || comparison == .lessOrEqual && order == 0 ? true : nil
      case .greater: return order <= 0 ? false : nil
      case .greaterOrEqual, .equal: return isBelow ? false : nil
      default: return nil
      }
    }

    /// Returns whether each value is of the type; nil if the test does not determine it.
    fileprivate func answer(is type: RuleType) -> Bool? {
      if let values = possibleValues {
        let answers = values.map { $0.answer(is: type) }
        guard let first = answers[0], answers.allSatisfy({ $0 == first }) else { return nil }
        return first
      }
      switch self {
      case .less(let bound), .lessOrEqual(let bound), .greater(let bound),
        .greaterOrEqual(let bound):
        return bound.order(to: bound) == nil ? nil : bound.answer(is: type)
      case .contains, .containsAny: return type == .list
      default: return nil
      }
    }

    fileprivate func implies(containing element: RuleValue) -> Bool {
      switch self {
      case .contains(let value): value == element
      case .containsAny(let values): !values.isEmpty && values.allSatisfy { $0 == element }
      case .equal(.list(let elements)): elements.contains(element)
      default: false
      }
    }

    fileprivate func implies(containingAnyOf elements: [RuleValue]) -> Bool {
      switch self {
      case .contains(let value): elements.contains(value)
      case .containsAny(let values): !values.isEmpty && values.allSatisfy { elements.contains($0) }
      case .equal(.list(let own)): own.contains { elements.contains($0) }
      default: false
      }
    }
  }

  extension RuleValue {
    fileprivate var isNaN: Bool { if case .float(let value) = self { value.isNaN } else { false } }

    /// Whether a value that equals it in a query gives the same result in every expression. 5 and
    /// 5.0 do not.
    fileprivate var isToldByEquality: Bool {
      switch self {
      case .null, .bool, .string, .bytes, .timestamp, .path, .latlng: true
      case .list(let elements): elements.allSatisfy(\.isToldByEquality)
      case .map(let fields): fields.values.allSatisfy(\.isToldByEquality)
      default: false
      }
    }

    /// Returns the answer for values that equal this one.
    fileprivate func answer(_ comparison: RuleOperator, _ other: RuleValue) -> Bool? {
      if comparison == .equal { return self == other }
      guard let order = order(to: other) else { return nil }
      return switch comparison {
      case .less: order < 0
      case .lessOrEqual: order <= 0
      case .greater: order > 0
      case .greaterOrEqual: order >= 0
      default: nil
      }
    }

    /// Returns whether values that equal this one, or are ordered with it, are of a type.
    fileprivate func answer(is type: RuleType) -> Bool? {
      guard isOf(.number) else { return isOf(type) }
      return type == .int || type == .float ? nil : type == .number
    }
  }
#endif
