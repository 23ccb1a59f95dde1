// Methods of lists, sets and maps. A method that compares every element with every other one puts
// one side in a set, so its cost is the sum of both sides. The elements come from clients.

#if Server
  extension RuleEvaluation {
    mutating func map(
      _ entries: [(key: RuleNode, value: RuleNode)]
    ) throws(RuleFailure) -> RuleValue {
      var fields: [String: RuleValue] = [:]
      var isUnknown = false
      for (key, value) in entries {
        let name = try self.value(of: key)
        let field = try self.value(of: value)
        if name.isUnknown || field.isUnknown {
          isUnknown = true
        } else {
          guard case .string(let name) = name else { throw .wrongType("a key") }
          fields[name] = field
        }
      }
      return isUnknown ? .unknown(.anything) : .map(fields)
    }

    // MARK: - Lists

    mutating func list(
      _ method: RuleMethod, _ elements: [RuleValue], _ arguments: [RuleValue]
    ) throws(RuleFailure) -> RuleValue {
      switch method {
      case .size: return .int(Int64(elements.count))
      case .hasAll, .hasAny, .hasOnly:
        return try comparison(method, try unique(elements), with: arguments[0])
      case .toSet: return .set(try unique(elements))
      case .concat:
        guard case .list(let others) = arguments[0] else { throw .wrongType("concat") }
        try charge(elements.count + others.count)
        return .list(elements + others)
      case .removeAll:
        let removed = try set(of: arguments[0], method)
        try charge(.list(elements))
        return .list(elements.filter { !removed.contains($0) })
      case .join:
        guard case .string(let separator) = arguments[0] else { throw .wrongType("join") }
        return .string(try joined(elements, separator))
      default: return try noMethod(method, .list([]))
      }
    }

    private mutating func joined(
      _ elements: [RuleValue], _ separator: String
    ) throws(RuleFailure) -> String {
      var result = ""
      for (index, element) in elements.enumerated() {
        let text = try text(element)
        try charge(text.utf8.count + separator.utf8.count + 1)
        if index > 0 { result += separator }
        result += text
      }
      return result
    }

    // MARK: - Sets

    mutating func set(
      _ method: RuleMethod, _ elements: Set<RuleValue>, _ arguments: [RuleValue]
    ) throws(RuleFailure) -> RuleValue {
      switch method {
      case .size: return .int(Int64(elements.count))
      case .hasAll, .hasAny, .hasOnly: return try comparison(method, elements, with: arguments[0])
      case .difference, .intersection, .union: break
      default: return try noMethod(method, .set([]))
      }
      guard case .set(let others) = arguments[0] else { throw .wrongType(method.rawValue) }
      try charge(.set(elements))
      try charge(.set(others))
      switch method {
      case .difference: return .set(elements.subtracting(others))
      case .intersection: return .set(elements.intersection(others))
      default: return .set(elements.union(others))
      }
    }

    private mutating func comparison(
      _ method: RuleMethod, _ elements: Set<RuleValue>, with argument: RuleValue
    ) throws(RuleFailure) -> RuleValue {
      let others = try set(of: argument, method)
      try charge(.set(elements))
      switch method {
      case .hasAll: return .bool(elements.isSuperset(of: others))
      case .hasAny: return .bool(!elements.isDisjoint(with: others))
      default: return .bool(elements.isSubset(of: others))
      }
    }

    private mutating func set(
      of value: RuleValue, _ method: RuleMethod
    ) throws(RuleFailure) -> Set<RuleValue> {
      switch value {
      case .list(let elements): return try unique(elements)
      case .set(let elements):
        try charge(value)
        return elements
      default: throw .wrongType(method.rawValue)
      }
    }

    private mutating func unique(_ elements: [RuleValue]) throws(RuleFailure) -> Set<RuleValue> {
      try charge(.list(elements))
      return Set(elements)
    }

    // MARK: - Maps

    mutating func map(
      _ method: RuleMethod, _ fields: [String: RuleValue], _ arguments: [RuleValue]
    ) throws(RuleFailure) -> RuleValue {
      switch method {
      case .size: return .int(Int64(fields.count))
      case .keys:
        try charge(fields.count)
        return .list(fields.keys.sorted().map { .string($0) })
      case .values:
        try charge(fields.count)
        return .list(fields.keys.sorted().compactMap { fields[$0] })
      case .get: return try field(fields, arguments[0], default: arguments[1])
      case .diff:
        guard case .map(let others) = arguments[0] else { throw .wrongType("diff") }
        return try difference(fields, others)
      default: return try noMethod(method, .map([:]))
      }
    }

    /// `get(key, default)`, where the key is a text, or a list of texts for a field of a field.
    private func field(
      _ fields: [String: RuleValue], _ key: RuleValue, default other: RuleValue
    ) throws(RuleFailure) -> RuleValue {
      switch key {
      case .string(let name): return fields.field(name) ?? other
      case .list(let names):
        guard !names.isEmpty else { throw .invalid("a list of keys is empty") }
        var value = RuleValue.map(fields)
        for name in names {
          guard case .string(let name) = name else { throw .wrongType("get") }
          guard case .map(let inner) = value, let next = inner.field(name) else { return other }
          value = next
        }
        return value
      default: throw .wrongType("get")
      }
    }

    private mutating func difference(
      _ fields: [String: RuleValue], _ others: [String: RuleValue]
    ) throws(RuleFailure) -> RuleValue {
      try charge(.map(fields))
      try charge(.map(others))
      var difference = RuleDifference()
      for (name, value) in fields {
        switch others.field(name) {
        case nil: difference.added.insert(.string(name))
        case value: difference.unchanged.insert(.string(name))
        default: difference.changed.insert(.string(name))
        }
      }
      for name in others.keys where fields.field(name) == nil {
        difference.removed.insert(.string(name))
      }
      return .difference(difference)
    }

    func keys(
      _ method: RuleMethod, of difference: RuleDifference
    ) throws(RuleFailure) -> RuleValue {
      switch method {
      case .addedKeys: .set(difference.added)
      case .removedKeys: .set(difference.removed)
      case .changedKeys: .set(difference.changed)
      case .unchangedKeys: .set(difference.unchanged)
      case .affectedKeys:
        .set(difference.added.union(difference.removed).union(difference.changed))
      default: try noMethod(method, .difference(difference))
      }
    }
  }
#endif
