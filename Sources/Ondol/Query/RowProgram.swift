// A query's conditions as steps over encoded rows: the matcher's first check. They are compiled
// once for the documents of a collection. A step finds a field by its number, compares the stored
// bytes with a prepared operand, and gives the next step. A document needs no decoding, no
// allocation and no reference counting, unless a condition needs a whole value.
//
// Each step is a condition's test (ValueTest) in another form, and the tests compare the two.

internal import OndolEngine

/// Conditions compiled for the documents of one collection.
struct RowProgram: Sendable {
  /// One condition on one field.
  struct Step: Sendable, BitwiseCopyable {
    enum Test: UInt8, Sendable {
      /// The document has the field.
      case exists
      /// The field is not a time up to the operand.
      case isNotOver
      /// Comparisons with the operand: an integer, the bits of a double, microseconds, the code of
      /// a slot, or the position of a text.
      case integer, double, timestamp, code, text
      /// The field begins with the text at the operand's position.
      case prefix
      case part
      /// The field is one of the values in the list that the operand numbers.
      case integers, texts
      /// The test that the operand numbers, of the decoded value or the document's name.
      case value, name
      /// The comparison and test that the operand numbers, of the key of a text.
      case key
    }

    var test: Test
    /// How the field may compare with the operand.
    var orders: ValueOrders = []
    /// Whether the field must be an array that has an element that meets the condition.
    var isOfElements = false
    /// The field's number when it is at the top of documents and has one, otherwise -1.
    var symbol: Int32 = -1
    /// The place of the field's path.
    var path: Int32 = -1
    var operand: Int64 = 0
    /// The next steps.
    var whenMet: Int32 = RowProgram.accepting
    var whenNot: Int32 = RowProgram.refusing
  }

  /// Instead of a next step: the document matches, or does not.
  static let accepting: Int32 = -1
  static let refusing: Int32 = -2

  private let symbols: SymbolTable
  private let naming: DocumentNaming
  private var steps: [Step] = []
  /// The first step.
  private var start = accepting
  private var paths: [ResolvedPath] = []
  /// Bytes of texts, side by side.
  private var bytes: [UInt8] = []
  /// The positions of the texts of each list, which is sorted.
  private var textLists: [[Int64]] = []
  private var integerLists: [[Int64]] = []
  private var tests: [ValueTest] = []
  private var keyTests: [(comparison: TextComparison, test: ValueTest)] = []
  /// Whether a condition needs documents' names.
  private(set) var needsKeys = false

  /// Accepts documents that meet all of `conjuncts`, have the fields `required` and have not
  /// expired at `moment`, as `lifetime` says.
  init(
    _ conjuncts: [FilterTree], required: [QueryField], _ lifetime: FieldNames?,
    endingAfter moment: Int64, _ naming: DocumentNaming, _ symbols: SymbolTable
  ) {
    self.symbols = symbols
    self.naming = naming
    // From the last to the first, because a step refers to the ones after it.
    for field in required.reversed() {
      guard field != .documentID else { continue }
      start = add(Step(test: .exists), field.names, start, Self.refusing)
    }
    start = add(.all(conjuncts), whenMet: start, whenNot: Self.refusing)
    if let lifetime {
      start = add(Step(test: .isNotOver, operand: moment), lifetime, start, Self.refusing)
    }
  }
}

// MARK: - Compiling

extension RowProgram {
  /// Adds the steps of `tree`; returns the first of them.
  private mutating func add(_ tree: FilterTree, whenMet: Int32, whenNot: Int32) -> Int32 {
    switch tree {
    case .field(let filter):
      return add(filter, whenMet, whenNot)
    case .all(let trees):
      return trees.reversed().reduce(whenMet) { add($1, whenMet: $0, whenNot: whenNot) }
    case .any(let trees):
      return trees.reversed().reduce(whenNot) { add($1, whenMet: whenMet, whenNot: $0) }
    }
  }

  private mutating func add(_ filter: FieldFilter, _ whenMet: Int32, _ whenNot: Int32) -> Int32 {
    let test = filter.condition.test
    switch filter.field {
    case .documentID:
      needsKeys = true
      return add(general(.name, test), nil, whenMet, whenNot)
    case .field(let names):
      return add(step(for: test) ?? general(.value, test), names, whenMet, whenNot)
    case .compared(let names, let comparison):
      keyTests.append((comparison, test))
      let step = Step(test: .key, operand: Int64(keyTests.count - 1))
      return add(step, names, whenMet, whenNot)
    }
  }

  private mutating func add(
    _ step: Step, _ names: FieldNames?, _ whenMet: Int32, _ whenNot: Int32
  ) -> Int32 {
    var step = step
    if let names {
      let path = ResolvedPath(names, in: symbols)
      step.symbol = Int32(path.topSymbol)
      step.path = Int32(paths.count)
      paths.append(path)
    }
    (step.whenMet, step.whenNot) = (whenMet, whenNot)
    steps.append(step)
    return Int32(steps.count - 1)
  }

  private mutating func general(_ kind: Step.Test, _ test: ValueTest) -> Step {
    tests.append(test)
    return Step(test: kind, operand: Int64(tests.count - 1))
  }

  /// The step for a test that needs no decoding; otherwise nil.
  private mutating func step(for test: ValueTest) -> Step? {
    var step: Step?
    switch test.operand {
    case .value(let operand): step = comparison(operand, test.orders)
    case .anyOf(let operands): step = list(operands, test.orders)
    case .pattern(let pattern):
      guard !pattern.ignoresCase, pattern.place != .whole else { return nil }
      step = Step(
        test: pattern.place == .beginning ? .prefix : .part, operand: place(of: pattern.text.text))
    }
    step?.isOfElements = test.isOfElements
    return step
  }

  private mutating func comparison(_ operand: Value, _ orders: ValueOrders) -> Step? {
    let (test, bits): (Step.Test, Int64)
    switch operand {
    case .integer(let number): (test, bits) = (.integer, number)
    case .double(let number): (test, bits) = (.double, Int64(bitPattern: number.bitPattern))
    case .timestamp(let time): (test, bits) = (.timestamp, time.microsecondsSince1970)
    case .string(let text): (test, bits) = (.text, place(of: text))
    default:
      // Codes show whether two values are the same, and not which one is less.
      guard let code = ValueCoding.inlineCode(operand),
        orders.contains(.below) == orders.contains(.above)
      else { return nil }
      (test, bits) = (.code, Int64(code))
    }
    return Step(test: test, orders: orders, operand: bits)
  }

  private mutating func list(_ operands: [Value], _ orders: ValueOrders) -> Step? {
    let integers = operands.compactMap { if case .integer(let number) = $0 { number } else { nil } }
    if integers.count == operands.count {
      integerLists.append(integers)
      return Step(test: .integers, orders: orders, operand: Int64(integerLists.count - 1))
    }
    guard operands.allSatisfy({ $0.string != nil }) else { return nil }
    textLists.append(operands.compactMap(\.string).map { place(of: $0) })
    return Step(test: .texts, orders: orders, operand: Int64(textLists.count - 1))
  }

  /// Stores a text; returns its position: its first byte, above 32 bits of length.
  private mutating func place(of text: String) -> Int64 {
    let start = bytes.count
    bytes.append(contentsOf: text.utf8)
    return Int64(start) << 32 | Int64(bytes.count - start)
  }
}

// MARK: - Running

extension RowProgram {
  /// Whether the document of `view` matches. `key` may be empty unless `needsKeys`.
  @inline(__always)
  func accepts(_ view: borrowing DocumentView, _ key: RawSpan) throws(MalformedBytes) -> Bool {
    let steps = steps.elements
    var next = start
    while next >= 0 {
      let step = steps[Int(next)]
      next = try isMet(step, view, key) ? step.whenMet : step.whenNot
    }
    return next == Self.accepting
  }

  @inline(__always)
  private func isMet(
    _ step: Step, _ view: borrowing DocumentView, _ key: RawSpan
  ) throws(MalformedBytes) -> Bool {
    if step.test == .name { return tests[Int(step.operand)].passes(try naming.name(in: key)) }
    let field =
      step.symbol >= 0 && !view.isNamed
      ? try view.field(numbered: Int(step.symbol)) : try view.field(paths[Int(step.path)])
    guard let field else { return step.test == .isNotOver }
    return step.isOfElements ? try isMetByElement(step, field) : try isMet(step, field)
  }

  @inline(__always)
  private func isMet(_ step: Step, _ field: ValueView) throws(MalformedBytes) -> Bool {
    let order: ValueOrders
    switch step.test {
    case .exists: return true
    case .isNotOver:
      order = try field.order(toTimestamp: step.operand)
      return order != .below && order != .same
    case .integer: order = try field.order(to: step.operand)
    case .double: order = try field.order(to: Double(bitPattern: UInt64(bitPattern: step.operand)))
    case .timestamp: order = try field.order(toTimestamp: step.operand)
    case .code: order = field.code == Int(step.operand) ? .same : []
    case .text:
      let text = text(step.operand)
      // Usually the lengths show that two texts differ.
      if step.orders == .same, let own = try field.text, own.byteCount != text.byteCount {
        return false
      }
      order = try field.order(to: text)
    case .prefix: return try field.text?.starts(with: text(step.operand)) ?? false
    case .part: return try field.text?.contains(text(step.operand)) ?? false
    case .integers:
      let list = integerLists[Int(step.operand)]
      order = try find(list.count) { (place) throws(MalformedBytes) in
        try field.order(to: list[place])
      }
    case .texts:
      let list = textLists[Int(step.operand)]
      order = try find(list.count) { (place) throws(MalformedBytes) in
        try field.order(to: text(list[place]))
      }
    case .value, .name: return tests[Int(step.operand)].passes(try field.value(symbols))
    case .key:
      let (comparison, test) = keyTests[Int(step.operand)]
      return test.passes(comparison.value(of: try field.value(symbols)))
    }
    if order.isEmpty { return step.orders.contains(.other) && field.code != 0 }
    return !order.isDisjoint(with: step.orders)
  }

  private func isMetByElement(_ step: Step, _ field: ValueView) throws(MalformedBytes) -> Bool {
    guard let layout = try field.arrayLayout() else { return false }
    for index in 0..<layout.count
    where try isMet(step, field.element(index, of: layout)) {
      return true
    }
    return false
  }

  @inline(__always)
  @_lifetime(borrow self)
  private func text(_ place: Int64) -> RawSpan {
    let start = Int(place >> 32)
    return bytes.bytes.extracting(start..<(start + Int(place & 0xffff_ffff)))
  }

  /// `same` when one of `count` sorted operands equals a value; otherwise none.
  ///
  /// - Parameter order: the order of the value relative to an operand.
  @inline(__always)
  private func find(
    _ count: Int, _ order: (Int) throws(MalformedBytes) -> ValueOrders
  ) throws(MalformedBytes) -> ValueOrders {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      let order = try order(middle)
      if order == .same || order.isEmpty { return order }
      if order == .below { high = middle } else { low = middle + 1 }
    }
    return []
  }
}
