// Expressions ready to be computed: names of functions are resolved, constant parts are computed
// once, regular expressions are compiled, and fields are numbers of slots. Before a stage computes
// its expressions for a row, it puts the fields that they name into the slots. It reads no others.
//
// A computed value is nil when it is absent. A failure is thrown: `where` takes it for false, and
// all others fail with it.

internal import OndolEngine

/// Why a value cannot be computed.
struct ExpressionFailure: Error, Sendable {
  let message: String

  init(_ message: String) {
    self.message = message
  }
}

/// A node of a compiled expression.
final class CompiledExpression: Sendable {
  enum Form: Sendable {
    case constant(Value?)
    case slot(Int)
    case variable(Int)
    case call(ScalarFunction, [CompiledExpression])
    /// A call whose pattern is constant.
    case matching(ScalarFunction, CompiledExpression, RegularExpression)
    /// Whether a text matches the pattern whose automaton the frame has at this place.
    case automaton(ScalarFunction, CompiledExpression, RegularExpressionAutomaton, place: Int)
    /// A comparison of a value with a constant.
    case test(ScalarFunction, CompiledExpression, ValueTest)
    /// A comparison of two computed values.
    case comparison(ScalarFunction, ValueOrders, CompiledExpression, CompiledExpression)
    /// A call that computes `body` for each element, which is a variable.
    case each(
      ScalarFunction, CompiledExpression, element: Int, index: Int?, body: CompiledExpression)
  }

  let form: Form

  init(_ form: Form) {
    self.form = form
  }

  /// The constant that this is; nil when it is none.
  var constant: Value?? {
    if case .constant(let value) = form { .some(value) } else { nil }
  }

  /// The slot that this is; nil when it is another expression than a field.
  var slot: Int? { if case .slot(let slot) = form { slot } else { nil } }
}

/// Fields that a stage's expressions name, each with a slot.
struct FieldSlots: Sendable {
  private(set) var fields: [PipelineField] = []
  private var places: [PipelineField: Int] = [:]

  /// The slot of the field.
  mutating func slot(of field: PipelineField) -> Int {
    if let known = places[field] { return known }
    places[field] = fields.count
    fields.append(field)
    return fields.count - 1
  }
}

/// What expressions are computed from: the fields of a row, and what is the same for all rows.
final class EvaluationFrame {
  var slots: [Value?] = []
  var variables: [Value?]
  /// What patterns have learnt from texts.
  private var automata: [RegularExpressionAutomaton?] = []
  let now: Timestamp
  private let random: () -> UInt64

  init(now: Timestamp, variables: Int = 0, random: @escaping () -> UInt64) {
    self.now = now
    self.random = random
    self.variables = Array(repeating: nil, count: variables)
  }

  /// Whether a text matches the pattern of the automaton at a place, which begins as `fresh`.
  ///
  /// - Parameter work: the steps that are left.
  func matches(
    _ text: String, _ place: Int, _ fresh: RegularExpressionAutomaton, work: inout Int
  ) -> Bool {
    while automata.count <= place { automata.append(nil) }
    if automata[place] == nil { automata[place] = fresh }
    return text.withUTF8Bytes { automata[place]?.matches($0, work: &work) ?? false }
  }

  /// A number from 0 up to 1, without 1.
  func nextRandom() -> Double { Double(random() >> 11) * 0x1p-53 }
}

/// Compiles the expressions of one stage.
struct ExpressionCompiler {
  /// Functions within functions.
  static let mostNesting = 100

  private(set) var slots = FieldSlots()
  private(set) var variableCount = 0
  private var automatonCount = 0
  private var scope: [(name: String, place: Int)] = []
  private let stage: String

  /// - Parameter stage: the stage's name, for errors.
  init(of stage: String) {
    self.stage = stage
  }

  /// Throws `.invalidArgument` for an unknown function or variable, a wrong number of arguments, an
  /// invalid field, or functions that are nested too deep.
  mutating func compile(
    _ expression: PipelineExpression, depth: Int = 0
  ) throws(DatabaseError) -> CompiledExpression {
    guard depth <= Self.mostNesting else {
      throw error("functions are nested more than \(Self.mostNesting) deep")
    }
    switch expression.form {
    case .constant(let value): return CompiledExpression(.constant(value))
    case .field(let field):
      if let problem = field.problem { throw problem }
      return CompiledExpression(.slot(slots.slot(of: field)))
    case .variable(let name):
      guard let known = scope.last(where: { $0.name == name }) else {
        throw error("there is no variable \"\(name)\" here")
      }
      return CompiledExpression(.variable(known.place))
    case .invalid(let problem): throw problem
    case .function(let name, let arguments):
      guard let function = ScalarFunction(rawValue: name) else {
        throw error("there is no function \"\(name)\"")
      }
      guard function.arity.contains(arguments.count) else {
        throw error(
          "\(name) takes \(Self.words(function.arity)), and has \(arguments.count)")
      }
      return try compile(function, arguments, depth: depth)
    }
  }

  private mutating func compile(
    _ function: ScalarFunction, _ arguments: [PipelineExpression], depth: Int
  ) throws(DatabaseError) -> CompiledExpression {
    if function == .arrayFilter || function == .arrayTransform {
      return try each(function, arguments, depth: depth)
    }
    var compiled: [CompiledExpression] = []
    compiled.reserveCapacity(arguments.count)
    for argument in arguments { compiled.append(try compile(argument, depth: depth + 1)) }
    if let prepared = prepared(function, compiled) { return prepared }
    if let orders = function.orders, compiled.contains(where: { $0.constant == nil }) {
      return CompiledExpression(.comparison(function, orders, compiled[0], compiled[1]))
    }
    let call = CompiledExpression(.call(function, compiled))
    guard function.isPure, compiled.allSatisfy({ $0.constant != nil }) else { return call }
    // One that fails fails for each row, where that is decided.
    let frame = EvaluationFrame(now: .minimum, random: { 0 })
    guard let value = try? call.value(in: frame) else { return call }
    return CompiledExpression(.constant(value))
  }

  private mutating func each(
    _ function: ScalarFunction, _ arguments: [PipelineExpression], depth: Int
  ) throws(DatabaseError) -> CompiledExpression {
    let array = try compile(arguments[0], depth: depth + 1)
    var names: [String] = []
    for argument in arguments[1..<(arguments.count - 1)] {
      guard case .constant(.string(let name)) = argument.form else {
        throw error("\(function.rawValue) names its element with a constant text")
      }
      names.append(name)
    }
    let outer = scope.count
    for name in names {
      scope.append((name, variableCount))
      variableCount += 1
    }
    let element = variableCount - names.count
    let body = try compile(arguments[arguments.count - 1], depth: depth + 1)
    scope.removeSubrange(outer...)
    return CompiledExpression(
      .each(
        function, array, element: element, index: names.count > 1 ? element + 1 : nil, body: body))
  }

  /// A call of which a constant argument is prepared once; nil for all others.
  private mutating func prepared(
    _ function: ScalarFunction, _ arguments: [CompiledExpression]
  ) -> CompiledExpression? {
    guard arguments.count == 2, arguments[0].constant == nil,
      case .some(.some(let constant)) = arguments[1].constant
    else { return nil }
    switch function {
    case .regexContains, .regexMatch, .regexFind, .regexFindAll:
      // An invalid pattern fails for each row that has a text.
      guard let text = constant.string, let pattern = try? RegularExpression(text) else {
        return nil
      }
      if function == .regexContains || function == .regexMatch,
        let automaton = RegularExpressionAutomaton(pattern, isWhole: function == .regexMatch)
      {
        automatonCount += 1
        return CompiledExpression(
          .automaton(function, arguments[0], automaton, place: automatonCount - 1))
      }
      return CompiledExpression(.matching(function, arguments[0], pattern))
    default:
      return function.test(constant).map { CompiledExpression(.test(function, arguments[0], $0)) }
    }
  }

  private static func words(_ arity: ClosedRange<Int>) -> String {
    if arity.lowerBound == arity.upperBound {
      return "\(arity.lowerBound) argument\(arity.lowerBound == 1 ? "" : "s")"
    }
    return "\(arity.lowerBound) to \(arity.upperBound) arguments"
  }

  private func error(_ message: String) -> DatabaseError {
    DatabaseError(.invalidArgument, "the stage \(stage): \(message)")
  }
}
