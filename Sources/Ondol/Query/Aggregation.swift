// Numbers about a result, worked out from documents as they lie in their rows. Sums are exact, so
// they do not depend on the order that documents come in; one double makes a sum a double, and
// otherwise one decimal makes it a decimal.

internal import OndolEngine

/// A number to be worked out about a result.
public struct AggregateField: Sendable, Hashable {
  enum Kind: Sendable, Hashable {
    case count
    case sum
    case average
    case minimum
    case maximum
  }

  let kind: Kind
  /// Nil for a count.
  let field: FieldPath?
  /// How texts are compared for the least and the greatest; nil by their bytes.
  var comparison: TextComparison?

  /// How many documents there are.
  public static func count() -> AggregateField { AggregateField(kind: .count, field: nil) }

  /// The sum of a field's numbers; what is no number is passed over. An integer when all of them
  /// are and it fits; an exact decimal when one of them is a decimal, none is a double and it fits;
  /// otherwise a double. 0 when there are none, NaN when one of them is.
  ///
  /// - Parameter field: a field or a path into maps.
  public static func sum(_ field: FieldPath) -> AggregateField {
    AggregateField(kind: .sum, field: field)
  }

  /// The average of a field's numbers, a double; what is no number is passed over. None when there
  /// are none, where Firestore's clients disagree.
  ///
  /// - Parameter field: a field or a path into maps.
  public static func average(_ field: FieldPath) -> AggregateField {
    AggregateField(kind: .average, field: field)
  }

  /// The least value of a field, null left aside, in the order queries sort by. None when there is
  /// none; any one of several that are equal, as 1 and 1.0 are.
  ///
  /// - Parameter field: a field or a path into maps.
  public static func minimum(_ field: FieldPath) -> AggregateField {
    AggregateField(kind: .minimum, field: field)
  }

  /// The greatest value of a field, null left aside, in the order queries sort by. None when there
  /// is none; any one of several that are equal, as 1 and 1.0 are.
  ///
  /// - Parameter field: a field or a path into maps.
  public static func maximum(_ field: FieldPath) -> AggregateField {
    AggregateField(kind: .maximum, field: field)
  }

  /// The value of a field that is first in `order(by:comparing:)`, null left aside: of texts that
  /// are the same, the first by its bytes. None when there is none.
  ///
  /// Documents are read, also where an index compares texts so.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps; not `FieldPath.documentID()`.
  ///   - comparison: how its texts are compared.
  public static func minimum(
    _ field: FieldPath, comparing comparison: TextComparison
  ) -> AggregateField {
    AggregateField(kind: .minimum, field: field, comparison: comparison)
  }

  /// The value of a field that is last in `order(by:comparing:)`, null left aside. Otherwise as
  /// `minimum(_:comparing:)`.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps; not `FieldPath.documentID()`.
  ///   - comparison: how its texts are compared.
  public static func maximum(
    _ field: FieldPath, comparing comparison: TextComparison
  ) -> AggregateField {
    AggregateField(kind: .maximum, field: field, comparison: comparison)
  }

  /// The field whose values are looked at as they are; nil for a count.
  ///
  /// Throws `.invalidArgument` when it is no path, and for documents' ids that are to be compared.
  func queryField() throws(DatabaseError) -> QueryField? {
    guard let field else { return nil }
    guard let comparison else { return try QueryField(field) }
    return try QueryField(field, comparing: comparison).plain
  }
}

/// One aggregate, fed with a field's values.
struct Aggregator: Sendable {
  private let kind: AggregateField.Kind
  private let comparison: TextComparison?
  private var count = 0
  private var integers: Int128 = 0
  private var doubles = ExactSum()
  private var doubleCount = 0
  private var decimals = DecimalSum()
  private var decimalCount = 0
  private var extreme: Value?

  init(_ field: AggregateField) {
    kind = field.kind
    comparison = field.comparison
  }

  /// So many documents.
  init(count: Int) {
    kind = .count
    comparison = nil
    self.count = count
  }

  /// Adds a document; `value` is nil when it lacks the field, or for a count.
  mutating func add(_ value: Value?) {
    switch kind {
    case .count: count += 1
    case .sum, .average:
      switch value {
      case .integer(let number): integers += Int128(number)
      case .double(let number):
        doubles.add(number)
        doubleCount += 1
      case .decimal(let number):
        decimals.add(number)
        decimalCount += 1
      default: return
      }
      count += 1
    case .minimum, .maximum:
      guard let value, !value.isNull else { return }
      guard let known = extreme else { return extreme = value }
      let order = comparison.order(value, known)
      if kind == .minimum ? order < 0 : order > 0 { extreme = value }
    }
  }

  /// Adds a document with the field in its row, nil when it lacks the field; the value is decoded
  /// only when it is the least or the greatest so far.
  @inline(__always)
  mutating func add(_ field: ValueView?, _ symbols: SymbolTable) throws(MalformedBytes) {
    switch kind {
    case .count: count += 1
    case .sum, .average:
      guard let number = try field?.number else {
        if let decimal = field?.decimal { add(.decimal(decimal)) }
        return
      }
      switch number {
      case .integer(let number): integers += Int128(number)
      case .double(let number):
        doubles.add(number)
        doubleCount += 1
      }
      count += 1
    case .minimum, .maximum:
      guard let field, field.code != 0 else { return }
      if comparison != nil { return add(try field.value(symbols)) }
      if let extreme {
        let order = try field.compare(extreme, symbols)
        guard kind == .minimum ? order < 0 : order > 0 else { return }
      }
      extreme = try field.value(symbols)
    }
  }

  /// Adds what another one has been given, of documents that come behind.
  mutating func add(_ other: Aggregator) {
    switch kind {
    case .count: count += other.count
    case .sum, .average:
      count += other.count
      integers += other.integers
      doubles.add(other.doubles)
      doubleCount += other.doubleCount
      decimals.add(other.decimals)
      decimalCount += other.decimalCount
    case .minimum, .maximum: add(other.extreme)
    }
  }

  /// Takes out a document that was added before. False when what is left is not known then: the
  /// least value may have gone.
  mutating func remove(_ value: Value?) -> Bool {
    switch kind {
    case .count:
      count -= 1
      return true
    case .sum, .average:
      switch value {
      case .integer(let number):
        integers -= Int128(number)
      case .double(let number):
        doubles.remove(number)
        doubleCount -= 1
      case .decimal(let number):
        decimals.remove(number)
        decimalCount -= 1
      default: return true
      }
      count -= 1
      return true
    case .minimum, .maximum:
      guard let value, !value.isNull, let extreme else { return true }
      return ValueOrder.compare(value, extreme) != 0
    }
  }

  /// The aggregate; nil when there is none.
  var result: Value? {
    switch kind {
    case .count: return .integer(Int64(count))
    case .sum:
      if decimalCount > 0 { return sumWithDecimals }
      if doubleCount == 0, let sum = Int64(exactly: integers) { return .integer(sum) }
      return .double(doubles.value + Double(integers))
    case .average:
      guard count > 0 else { return nil }
      let whole = decimalCount > 0 ? exactSum.double : Double(integers)
      return .double((doubles.value + whole) / Double(count))
    case .minimum, .maximum: return extreme
    }
  }

  /// The sum of the decimals and the integers.
  private var exactSum: DecimalSum {
    var sum = decimals
    sum.add(integers)
    return sum
  }

  private var sumWithDecimals: Value {
    let exact = exactSum
    if doubleCount == 0, let sum = exact.value { return .decimal(sum) }
    return .double(doubles.value + exact.double)
  }
}

extension TextComparison? {
  /// The order of two values: of texts that are the same when compared so, that of their bytes.
  fileprivate func order(_ left: Value, _ right: Value) -> Int {
    guard let self else { return ValueOrder.compare(left, right) }
    let order = ValueOrder.compare(self.value(of: left), self.value(of: right))
    return order == 0 ? ValueOrder.compare(left, right) : order
  }
}
