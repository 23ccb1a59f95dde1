// Numbers about a result, computed from documents in their encoded rows. Sums are exact, so they do
// not depend on the order of documents. One double makes a sum a double; without doubles, one
// decimal makes it a decimal.

internal import OndolEngine

/// A number to compute about a result.
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
  /// How texts are compared for the least and the greatest value; nil when by their bytes.
  var comparison: TextComparison?

  /// The number of documents.
  public static func count() -> AggregateField { AggregateField(kind: .count, field: nil) }

  /// The sum of a field's numbers; other values are skipped. It is an integer when all numbers are
  /// integers and the sum fits one. It is an exact decimal when at least one number is a decimal,
  /// none is a double, and the sum fits. Otherwise it is a double. The sum of no numbers is 0, and
  /// one NaN makes the sum NaN.
  ///
  /// - Parameter field: a field or a path into maps.
  public static func sum(_ field: FieldPath) -> AggregateField {
    AggregateField(kind: .sum, field: field)
  }

  /// The average of a field's numbers as a double; other values are skipped. It has no value when
  /// there are no numbers, a case in which Firestore's clients disagree.
  ///
  /// - Parameter field: a field or a path into maps.
  public static func average(_ field: FieldPath) -> AggregateField {
    AggregateField(kind: .average, field: field)
  }

  /// The least value of a field except null, in the order by which queries sort. It has no value
  /// when there is none. Of several equal values, as 1 and 1.0 are, it is any one.
  ///
  /// - Parameter field: a field or a path into maps.
  public static func minimum(_ field: FieldPath) -> AggregateField {
    AggregateField(kind: .minimum, field: field)
  }

  /// The greatest value of a field except null, in the order by which queries sort. It has no value
  /// when there is none. Of several equal values, as 1 and 1.0 are, it is any one.
  ///
  /// - Parameter field: a field or a path into maps.
  public static func maximum(_ field: FieldPath) -> AggregateField {
    AggregateField(kind: .maximum, field: field)
  }

  /// The first value of a field except null in the order of `order(by:comparing:)`. Of texts that
  /// are equal in this comparison, it is the first by its bytes. It has no value when there is
  /// none.
  ///
  /// Documents are read even when an index compares texts in the same way.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps; not `FieldPath.documentID()`.
  ///   - comparison: how its texts are compared.
  public static func minimum(
    _ field: FieldPath, comparing comparison: TextComparison
  ) -> AggregateField {
    AggregateField(kind: .minimum, field: field, comparison: comparison)
  }

  /// The last value of a field except null in the order of `order(by:comparing:)`. In all other
  /// respects like `minimum(_:comparing:)`.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps; not `FieldPath.documentID()`.
  ///   - comparison: how its texts are compared.
  public static func maximum(
    _ field: FieldPath, comparing comparison: TextComparison
  ) -> AggregateField {
    AggregateField(kind: .maximum, field: field, comparison: comparison)
  }

  /// The field whose values are aggregated, without a comparison of texts; nil for a count.
  ///
  /// Throws `.invalidArgument` when it is not a valid path, and for document ids when a
  /// comparison of texts is requested.
  func queryField() throws(DatabaseError) -> QueryField? {
    guard let field else { return nil }
    guard let comparison else { return try QueryField(field) }
    return try QueryField(field, comparing: comparison).plain
  }
}

/// Computes one aggregate of a field's values.
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

  /// A count of that many documents.
  init(count: Int) {
    kind = .count
    comparison = nil
    self.count = count
  }

  /// Continues an aggregate that `write(to:)` has written.
  init(_ field: AggregateField, _ record: inout RecordReader) throws(MalformedBytes) {
    self.init(field)
    count = try record.count()
    switch kind {
    case .count: break
    case .sum, .average:
      let low = try record.word()
      integers = Int128(truncatingIfNeeded: try record.word()) << 64 | Int128(low)
      doubleCount = try record.count()
      if doubleCount > 0 { doubles = try ExactSum(&record) }
      decimalCount = try record.count()
      if decimalCount > 0 { decimals = try DecimalSum(&record) }
    case .minimum, .maximum: extreme = try record.value()
    }
  }

  /// Appends what was added so far, for a later `init(_:_:)`. Nothing may have been removed.
  mutating func write(to record: inout RecordWriter) {
    record.append(count: count)
    switch kind {
    case .count: break
    case .sum, .average:
      record.append(word: UInt64(truncatingIfNeeded: integers))
      record.append(word: UInt64(truncatingIfNeeded: integers >> 64))
      record.append(count: doubleCount)
      if doubleCount > 0 { doubles.write(to: &record) }
      record.append(count: decimalCount)
      if decimalCount > 0 { decimals.write(placesTo: &record) }
    case .minimum, .maximum: record.append(extreme)
    }
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

  /// Adds a document by the field in its row, nil when it lacks the field. The value is decoded
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

  /// Adds the contents of another aggregator, of later documents.
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

  /// Removes a document that was added before. Returns false when the aggregate is unknown
  /// afterwards: the least value may have been removed.
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

  /// The aggregate; nil when it has no value.
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
  /// The order of two values. Texts that are equal in the comparison are in the order of their
  /// bytes.
  fileprivate func order(_ left: Value, _ right: Value) -> Int {
    guard let self else { return ValueOrder.compare(left, right) }
    let order = ValueOrder.compare(self.value(of: left), self.value(of: right))
    return order == 0 ? ValueOrder.compare(left, right) : order
  }
}
