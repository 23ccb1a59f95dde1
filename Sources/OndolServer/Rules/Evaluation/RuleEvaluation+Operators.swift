// Operators and members. Integers do not wrap, a division by zero fails, and values of different
// types are unequal and have no order.

#if Server
  extension RuleEvaluation {
    /// Fails, or is unknown if one of the operands is unknown.
    func unsuited(
      _ operation: @autoclosure () -> String, _ operands: RuleValue...
    ) throws(RuleFailure) -> RuleValue {
      if operands.contains(where: \.isUnknown) { return .unknown(.anything) }
      throw .wrongType(operation())
    }

    func not(_ operand: RuleValue) throws(RuleFailure) -> RuleValue {
      if case .bool(let value) = operand { return .bool(!value) }
      return try unsuited("!", operand)
    }

    func negated(_ operand: RuleValue) throws(RuleFailure) -> RuleValue {
      switch operand {
      case .int(let value):
        guard value != .min else { throw .overflow }
        return .int(-value)
      case .float(let value): return .float(-value)
      default: return try unsuited("-", operand)
      }
    }

    func isOf(_ type: RuleType, _ operand: RuleValue) throws(RuleFailure) -> RuleValue {
      guard case .unknown(let unknown) = operand else { return .bool(operand.isOf(type)) }
      return conditions?.answer(is: type, unknown) ?? .unknown(.anything)
    }

    mutating func binary(
      _ name: RuleOperator, _ left: RuleValue, _ right: RuleValue
    ) throws(RuleFailure) -> RuleValue {
      switch name {
      case .equal: return try equal(left, right)
      case .notEqual: return try not(equal(left, right))
      case .less: return try ordered(left, right, "<", name) { $0 < 0 }
      case .lessOrEqual: return try ordered(left, right, "<=", name) { $0 <= 0 }
      case .greater: return try ordered(left, right, ">", name) { $0 > 0 }
      case .greaterOrEqual: return try ordered(left, right, ">=", name) { $0 >= 0 }
      case .contained: return try contained(left, in: right)
      case .add: return try sum(left, right)
      case .subtract: return try difference(left, right)
      case .multiply: return try product(left, right)
      case .divide: return try quotient(left, right)
      case .remainder: return try remainder(left, right)
      }
    }

    // MARK: - Comparisons

    mutating func equal(
      _ left: RuleValue, _ right: RuleValue
    ) throws(RuleFailure) -> RuleValue {
      switch (left, right) {
      case (.unknown(let unknown), _):
        return conditions?.answer(.equal, unknown, right) ?? .unknown(.anything)
      case (_, .unknown(let unknown)):
        return conditions?.answer(.equal, unknown, left) ?? .unknown(.anything)
      case (.list, .list), (.map, .map), (.set, .set), (.document, .document), (.string, .string):
        try charge(left)
        try charge(right)
        return .bool(left == right)
      default: return .bool(left == right)
      }
    }

    private func ordered(
      _ left: RuleValue, _ right: RuleValue, _ sign: String, _ name: RuleOperator,
      _ holds: (Int) -> Bool
    ) throws(RuleFailure) -> RuleValue {
      if let order = left.order(to: right) { return .bool(holds(order)) }
      if case .unknown(let unknown) = left, let answer = conditions?.answer(name, unknown, right) {
        return answer
      }
      if case .unknown(let unknown) = right,
        let answer = conditions?.answer(name.mirrored, unknown, left)
      {
        return answer
      }
      // NaN is a number without an order.
      if left.isOf(.number), right.isOf(.number) { return .bool(false) }
      return try unsuited(sign, left, right)
    }

    mutating func contained(
      _ element: RuleValue, in container: RuleValue
    ) throws(RuleFailure) -> RuleValue {
      if element.isUnknown || container.isUnknown {
        return conditions?.answer(element, in: container) ?? .unknown(.anything)
      }
      switch container {
      case .list(let elements):
        try charge(container)
        return .bool(elements.contains(element))
      case .set(let elements):
        try charge(element)
        return .bool(elements.contains(element))
      case .map(let fields):
        guard case .string(let name) = element else { return .bool(false) }
        return .bool(fields.field(name) != nil)
      default: return try unsuited("in", container)
      }
    }

    // MARK: - Arithmetic

    private mutating func sum(
      _ left: RuleValue, _ right: RuleValue
    ) throws(RuleFailure) -> RuleValue {
      switch (left, right) {
      case (.int(let a), .int(let b)): return try checked(a.addingReportingOverflow(b))
      case (.string(let a), .string(let b)):
        try charge(a.utf8.count + b.utf8.count)
        return .string(a + b)
      case (.timestamp(let a), .duration(let b)), (.duration(let b), .timestamp(let a)):
        return .timestamp(
          try possible(a.instant.adding(b.length).flatMap { RuleTimestamp($0) }))
      case (.duration(let a), .duration(let b)):
        return .duration(RuleDuration(try possible(a.length.adding(b.length))))
      default: return try floats(left, right, "+") { $0 + $1 }
      }
    }

    private func difference(
      _ left: RuleValue, _ right: RuleValue
    ) throws(RuleFailure) -> RuleValue {
      switch (left, right) {
      case (.int(let a), .int(let b)): return try checked(a.subtractingReportingOverflow(b))
      case (.timestamp(let a), .timestamp(let b)):
        return .duration(RuleDuration(try possible(a.instant.subtracting(b.instant))))
      case (.timestamp(let a), .duration(let b)):
        return .timestamp(
          try possible(a.instant.subtracting(b.length).flatMap { RuleTimestamp($0) }))
      case (.duration(let a), .duration(let b)):
        return .duration(RuleDuration(try possible(a.length.subtracting(b.length))))
      default: return try floats(left, right, "-") { $0 - $1 }
      }
    }

    private func product(
      _ left: RuleValue, _ right: RuleValue
    ) throws(RuleFailure) -> RuleValue {
      if case (.int(let a), .int(let b)) = (left, right) {
        return try checked(a.multipliedReportingOverflow(by: b))
      }
      return try floats(left, right, "*") { $0 * $1 }
    }

    private func quotient(
      _ left: RuleValue, _ right: RuleValue
    ) throws(RuleFailure) -> RuleValue {
      if case (.int(let a), .int(let b)) = (left, right) {
        guard b != 0 else { throw .divisionByZero }
        return try checked(a.dividedReportingOverflow(by: b))
      }
      return try floats(left, right, "/") { $0 / $1 }
    }

    private func remainder(
      _ left: RuleValue, _ right: RuleValue
    ) throws(RuleFailure) -> RuleValue {
      if case (.int(let a), .int(let b)) = (left, right) {
        guard b != 0 else { throw .divisionByZero }
        return try checked(a.remainderReportingOverflow(dividingBy: b))
      }
      return try floats(left, right, "%") { $0.truncatingRemainder(dividingBy: $1) }
    }

    func checked(
      _ result: (partialValue: Int64, overflow: Bool)
    ) throws(RuleFailure) -> RuleValue {
      guard !result.overflow else { throw .overflow }
      return .int(result.partialValue)
    }

    func possible<Result>(_ result: Result?) throws(RuleFailure) -> Result {
      guard let result else { throw .overflow }
      return result
    }

    private func floats(
      _ left: RuleValue, _ right: RuleValue, _ sign: String, _ operation: (Double, Double) -> Double
    ) throws(RuleFailure) -> RuleValue {
      guard let a = left.double, let b = right.double else {
        return try unsuited(sign, left, right)
      }
      return .float(operation(a, b))
    }

    // MARK: - Members

    func member(_ name: String, of value: RuleValue) throws(RuleFailure) -> RuleValue {
      switch value {
      case .map(let fields):
        guard let field = fields.field(name) else { throw .noMember(name) }
        return field
      case .document(let document):
        switch name {
        case "data": return document.data
        case "id": return .string(document.id)
        case "__name__": return .path(document.path)
        default: throw .noMember(name)
        }
      case .null: throw .null(name)
      case .unknown(let unknown):
        return conditions?.member(name, of: unknown) ?? .unknown(.anything)
      default: throw .noMember(name)
      }
    }

    mutating func element(
      of value: RuleValue, at index: RuleValue
    ) throws(RuleFailure) -> RuleValue {
      switch (value, index) {
      case (.map, .string(let name)), (.document, .string(let name)), (.unknown, .string(let name)):
        return try member(name, of: value)
      case (.list(let elements), .int(let position)):
        return elements[try self.position(position, below: elements.count)]
      case (.path(let segments), .int(let position)):
        return .string(segments[try self.position(position, below: segments.count)])
      case (.string, .int(let position)):
        guard let next = position.nonnegativeSuccessor else { throw .outOfRange }
        return try part(of: value, index, .int(next))
      default: return try unsuited("[]", value, index)
      }
    }

    /// `value[first:last]`, which excludes the element at `last`.
    mutating func part(
      of value: RuleValue, _ lower: RuleValue, _ upper: RuleValue
    ) throws(RuleFailure) -> RuleValue {
      guard case (.int(let first), .int(let last)) = (lower, upper) else {
        return try unsuited("[:]", value, lower, upper)
      }
      switch value {
      case .list(let elements):
        let range = try self.range(first, last, count: elements.count)
        try charge(range.count)
        return .list(Array(elements[range]))
      case .bytes(let bytes):
        let range = try self.range(first, last, count: bytes.count)
        try charge(range.count)
        return .bytes(Array(bytes[range]))
      case .string(let text):
        try charge(text.utf8.count)
        let scalars = text.unicodeScalars
        let range = try self.range(first, last, count: scalars.count)
        return .string(
          String(String.UnicodeScalarView(scalars.dropFirst(range.lowerBound).prefix(range.count))))
      default: return try unsuited("[:]", value)
      }
    }

    private func position(_ index: Int64, below count: Int) throws(RuleFailure) -> Int {
      guard index >= 0, index < count else { throw .outOfRange }
      return Int(index)
    }

    private func range(
      _ first: Int64, _ last: Int64, count: Int
    ) throws(RuleFailure) -> Range<Int> {
      guard first >= 0, first <= last, last <= count else { throw .outOfRange }
      return Int(first)..<Int(last)
    }
  }

  extension RuleOperator {
    /// The operator for exchanged operands.
    var mirrored: RuleOperator {
      switch self {
      case .less: .greater
      case .lessOrEqual: .greaterOrEqual
      case .greater: .less
      case .greaterOrEqual: .lessOrEqual
      default: self
      }
    }
  }

  extension RuleValue {
    /// A number as a float.
    var double: Double? {
      switch self {
      case .int(let value): Double(value)
      case .float(let value): value
      default: nil
      }
    }
  }

  extension Int64 {
    fileprivate var nonnegativeSuccessor: Int64? { self >= 0 && self < .max ? self + 1 : nil }
  }
#endif
