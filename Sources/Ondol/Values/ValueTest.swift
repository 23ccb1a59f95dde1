// What a comparison means, in one place. Conditions of queries and the comparing functions of
// pipelines are both tests: FieldFilter.Condition and ScalarFunction each have a table of theirs.
// Listeners, index conditions and expressions run a test on decoded values. RowProgram has the same
// tests as steps over encoded rows, and runs this one when a step does not know an operand's type.
//
// A test compares a value that is there with an operand. Values of different types have no order:
// 1 equals 1.0, and is neither less nor greater than "1". Here queries and pipelines differ:
//
//                      conditions of queries        functions of pipelines
//   no field           meets no condition           differs from all values, otherwise false
//   null               equals null only, and does   equals null only, so differs from all others
//                      not differ from anything
//   NaN                is the least number          is neither less nor greater than a number
//   not an array       contains nothing             an error, and of null it is unknown
//   an error           there is none                counts as false in `where`

/// A question about a value, with its operand.
struct ValueTest: Sendable {
  enum Operand: Sendable {
    case value(Value)
    /// One of these values, which are sorted.
    case anyOf([Value])
    case pattern(TextPattern)
  }

  let operand: Operand
  /// The orders relative to the operand that pass. What a list has, or what fits a pattern, is
  /// `same`.
  let orders: ValueOrders
  /// Whether the value must be an array that has an element that passes.
  let isOfElements: Bool
  /// Whether NaN is the least number. Otherwise it is neither less nor greater than another one.
  var ranksNaN = true

  init(_ operand: Operand, _ orders: ValueOrders, ofElements: Bool = false) {
    self.operand = operand
    self.orders = orders
    isOfElements = ofElements
  }

  /// Whether the value must be a text.
  var isOfText: Bool { if case .pattern = operand { true } else { false } }

  /// Whether the answer is yes.
  func passes(_ value: Value) -> Bool {
    isOfElements ? value.array?.contains(where: isMet(by:)) ?? false : isMet(by: value)
  }

  private func isMet(by value: Value) -> Bool {
    let order: ValueOrders =
      switch operand {
      case .value(let operand): value.order(to: operand, ranksNaN: ranksNaN)
      case .anyOf(let list): list.containsSorted(value) ? .same : value.isNull ? [] : .other
      case .pattern(let pattern): value.string.map(pattern.matches) ?? false ? .same : []
      }
    return !order.isDisjoint(with: orders)
  }
}

extension Value {
  var isNumber: Bool { ValueOrder.rank(self) == ValueOrder.rank(.integer(0)) }

  var isNotANumber: Bool { double?.isNaN ?? false }

  /// The order relative to an operand; none for null and values of other types.
  func order(to operand: Value, ranksNaN: Bool) -> ValueOrders {
    guard ValueOrder.rank(self) == ValueOrder.rank(operand) else { return isNull ? [] : .other }
    let order = ValueOrder.compare(self, operand)
    if !ranksNaN, order != 0, isNotANumber || operand.isNotANumber { return .other }
    return ValueOrders(order)
  }
}
