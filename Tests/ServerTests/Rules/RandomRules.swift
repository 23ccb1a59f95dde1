// Random rules, queries and documents, from few values, so that they meet. The result of a query is
// computed here in the database's way, which is not that of rules: NaN equals NaN and is below all
// numbers.

#if Server
  import OndolTestKit

  @testable import OndolServer

  enum RandomRules {
    private static let fields = [["a"], ["b"], ["m", "x"], ["m"]]

    private static let texts: [(text: String, value: RuleValue)] = [
      ("0", .int(0)), ("1", .int(1)), ("2", .int(2)), ("1.0", .float(1)), ("1.5", .float(1.5)),
      ("'s'", .string("s")), ("'t'", .string("t")), ("null", .null), ("true", .bool(true)),
      ("[1, 's']", .list([.int(1), .string("s")])), ("['t']", .list([.string("t")])),
      ("{'x': 's'}", .map(["x": .string("s")])), ("{'x': 1}", .map(["x": .int(1)])),
      ("timestamp.value(5)", RuleTimestamp(milliseconds: 5).map { .timestamp($0) } ?? .null),
    ]

    private static func value(_ random: inout SeededRandom) -> RuleValue {
      random.chance(1, in: 12) ? .float(.nan) : random.pick(texts).value
    }

    static func condition(_ random: inout SeededRandom) -> RuleQuery.Condition {
      let one = value(&random)
      let several = [one, value(&random)]
      let tests: [RuleQuery.Condition.Test] = [
        .equal(one), .equal(one), .notEqual(one), .less(one), .lessOrEqual(one), .greater(one),
        .greaterOrEqual(one), .oneOf(several), .noneOf(several), .contains(one),
        .containsAny(several),
      ]
      return RuleQuery.Condition(field: random.pick(fields), test: random.pick(tests))
    }

    // MARK: - Expressions

    static func expression(
      _ random: inout SeededRandom, _ conditions: [RuleQuery.Condition], depth: Int
    ) -> String {
      let inner = { (random: inout SeededRandom) in
        expression(&random, conditions, depth: depth - 1)
      }
      guard depth > 0 else { return test(&random, conditions) }
      switch random.below(7) {
      case 0: return "(\(inner(&random)) && \(inner(&random)))"
      case 1: return "(\(inner(&random)) || \(inner(&random)))"
      case 2: return "!\(inner(&random))"
      case 3: return "(\(inner(&random)) ? \(inner(&random)) : \(inner(&random)))"
      default: return test(&random, conditions)
      }
    }

    private static func test(
      _ random: inout SeededRandom, _ conditions: [RuleQuery.Condition]
    ) -> String {
      // Half of the time it concerns a field of the query.
      let known = random.chance(1, in: 2) ? conditions.map(\.field) : []
      let name = random.pick(known + fields.prefix(known.isEmpty ? 4 : 0))
        .joined(separator: ".")
      let field = random.chance(1, in: 8) ? "resource.data.get('a', 1)" : "resource.data.\(name)"
      let other = random.pick(texts).text
      let type = random.pick(RuleType.allCases).rawValue
      return random.pick([
        "(\(field) == \(other))", "(\(field) != \(other))", "(\(field) < \(other))",
        "(\(other) <= \(field))", "(\(field) > \(other))", "(\(field) >= \(other))",
        "(\(field) in [\(other), 1, 's'])", "(\(field) in [\(other)].toSet())",
        "(\(other) in \(field))", "(\(field) is \(type))", "(\(field).hasAny([\(other), 1]))",
        "(\(field).hasAll([\(other)]))", "(\(field) + 1 == 2)", "(\(field) / 2 == 0)",
        "(string(\(field)) == '1')", "(\(field).size() == 1)", "('x' in \(field))",
        "('\(name)' in resource.data)", "([\(field)] == [\(other)])",
        "({'x': \(field)}.x == \(other))", "(\(field).x == \(other))", "(\(field) == \(field))",
        "true", "false", "(1 / 0 == 1)", "(resource.data == \(other))", "(resource == null)",
        "(\(field).get('x', 2) == \(other))", "(-\(field) == -1)", "\(field)",
      ])
    }

    // MARK: - Documents

    /// Often fits the conditions.
    static func document(
      _ random: inout SeededRandom, _ conditions: [RuleQuery.Condition]
    ) -> [String: RuleValue] {
      var fields: [String: RuleValue] = [:]
      for name in ["a", "b", "m"] where random.chance(2, in: 3) { fields[name] = value(&random) }
      for condition in conditions where random.chance(9, in: 10) {
        let wanted = wanted(condition.test, &random)
        if condition.field.count == 1 {
          fields[condition.field[0]] = wanted
        } else {
          fields["m"] = .map(["x": wanted])
        }
      }
      return fields
    }

    private static func wanted(
      _ test: RuleQuery.Condition.Test, _ random: inout SeededRandom
    ) -> RuleValue {
      switch test {
      case .equal(.int(let value)):
        random.chance(1, in: 2) ? .float(Double(value)) : .int(value)
      case .equal(let value), .lessOrEqual(let value), .greaterOrEqual(let value): value
      case .oneOf(let values): random.pick(values)
      case .contains(let value): .list([value, .int(7)])
      case .containsAny(let values): .list([random.pick(values)])
      default: value(&random)
      }
    }

    // MARK: - What a query finds

    static func holds(
      _ condition: RuleQuery.Condition, _ fields: [String: RuleValue]
    ) -> Bool {
      var found = RuleValue.map(fields)
      for name in condition.field {
        guard case .map(let inner) = found, let next = inner[name] else { return false }
        found = next
      }
      switch condition.test {
      case .equal(let value): return isEqual(found, value)
      case .notEqual(let value): return !isEqual(found, value)
      case .less(let value): return order(found, value).map { $0 < 0 } ?? false
      case .lessOrEqual(let value): return order(found, value).map { $0 <= 0 } ?? false
      case .greater(let value): return order(found, value).map { $0 > 0 } ?? false
      case .greaterOrEqual(let value): return order(found, value).map { $0 >= 0 } ?? false
      case .oneOf(let values): return values.contains { isEqual(found, $0) }
      case .noneOf(let values): return !values.contains { isEqual(found, $0) }
      case .contains(let value): return has(found, [value])
      case .containsAny(let values): return has(found, values)
      }
    }

    private static func has(_ found: RuleValue, _ values: [RuleValue]) -> Bool {
      guard case .list(let elements) = found else { return false }
      return elements.contains { element in values.contains { isEqual(element, $0) } }
    }

    private static func isEqual(_ one: RuleValue, _ other: RuleValue) -> Bool {
      order(one, other) == 0
    }

    /// The database's order of values of one type; nil for different types.
    private static func order(_ one: RuleValue, _ other: RuleValue) -> Int? {
      switch (one, other) {
      case (.float(let a), .float(let b)) where a.isNaN || b.isNaN:
        return a.isNaN ? (b.isNaN ? 0 : -1) : 1
      case (.float(let a), .int) where a.isNaN: return -1
      case (.int, .float(let b)) where b.isNaN: return 1
      case (.bool(let a), .bool(let b)): return a == b ? 0 : a ? 1 : -1
      case (.null, .null): return 0
      case (.list(let a), .list(let b)):
        for (one, other) in zip(a, b) {
          let order = order(one, other) ?? (one.typeName < other.typeName ? -1 : 1)
          if order != 0 { return order }
        }
        return a.count - b.count
      case (.map(let a), .map(let b)):
        return a["x"].flatMap { x in b["x"].map { order(x, $0) ?? 1 } }
      default: return one.order(to: other)
      }
    }
  }
#endif
