// Functions of arrays and maps.

extension ScalarFunction {
  func arrayContains(_ values: [Value?]) throws(ExpressionFailure) -> Value {
    guard let test = values[1].flatMap({ test($0) }) else { return .null }
    return try value(of: test, for: values[0])
  }

  func ofArray(_ values: [Value]) throws(ExpressionFailure) -> Value? {
    guard let elements = values[0].array else {
      // `offset` is the forgiving one of two that find an element.
      if self == .offset { return nil }
      throw needs("an array")
    }
    switch self {
    case .arrayLength: return .integer(Int64(elements.count))
    case .arrayReverse: return .array(elements.reversed())
    case .arrayGet, .offset: return Self.element(try integer(values[1]), of: elements)
    case .arrayFirst: return elements.first
    case .arrayLast: return elements.last
    case .arrayFirstN: return .array(Array(elements.prefix(try count(values[1]))))
    case .arrayLastN: return .array(Array(elements.suffix(try count(values[1]))))
    case .arraySlice: return .array(try slice(elements, values))
    case .arrayConcat: return .array(try concatenated(values))
    case .arrayContainsAny:
      guard let test = test(values[1]) else { throw needs("an array of values") }
      return try value(of: test, for: values[0])
    case .arrayContainsAll:
      guard let list = values[1].array else { throw needs("an array of values") }
      let known = elements.sortedWithoutDuplicates
      return .boolean(list.allSatisfy { known.containsSorted($0) })
    case .arrayIndexOf, .arrayIndexOfAll: return try places(in: elements, values)
    case .sum: return Self.sum(of: elements)
    default: return .array(try extremes(elements, count(values[1])))
    }
  }

  private func integer(_ value: Value) throws(ExpressionFailure) -> Int {
    guard let number = value.integer else { throw needs("an integer") }
    return Int(number)
  }

  private func count(_ value: Value) throws(ExpressionFailure) -> Int {
    let number = try integer(value)
    guard number >= 0 else { throw needs("a number that is not negative") }
    return number
  }

  private static func element(_ place: Int, of elements: [Value]) -> Value? {
    guard place >= -elements.count, place < elements.count else { return nil }
    return elements[place < 0 ? place + elements.count : place]
  }

  private func slice(
    _ elements: [Value], _ values: [Value]
  ) throws(ExpressionFailure) -> [Value] {
    let start = try integer(values[1])
    let length = values.count > 2 ? try count(values[2]) : Int.max
    let first =
      start < 0 ? elements.count + max(start, -elements.count) : min(start, elements.count)
    return Array(elements[first..<(first + min(length, elements.count - first))])
  }

  private func concatenated(_ values: [Value]) throws(ExpressionFailure) -> [Value] {
    var all: [Value] = []
    for value in values {
      guard let elements = value.array else { throw needs("arrays") }
      all += elements
    }
    return all
  }

  private func places(
    in elements: [Value], _ values: [Value]
  ) throws(ExpressionFailure) -> Value {
    let found = elements.indices.filter { elements[$0] == values[1] }.map { Int64($0) }
    if self == .arrayIndexOfAll { return .array(found.map { .integer($0) }) }
    guard values.count > 2 else { return .integer(found.first ?? -1) }
    switch values[2].string {
    case "first": return .integer(found.first ?? -1)
    case "last": return .integer(found.last ?? -1)
    default: throw needs("\"first\" or \"last\"")
    }
  }

  private static func sum(of elements: [Value]) -> Value {
    var sum = Aggregator(.sum(FieldPath("sum")))
    for element in elements { sum.add(element) }
    return sum.result ?? .integer(0)
  }

  /// The greatest or least elements, the most extreme first.
  private func extremes(
    _ elements: [Value], _ count: Int
  ) throws(ExpressionFailure) -> [Value] {
    let sorted = elements.filter { !$0.isNull }.sorted { ValueOrder.compare($0, $1) < 0 }
    return Array((self == .maximumN ? sorted.reversed() : sorted).prefix(count))
  }

  // MARK: - Maps

  func ofMap(_ values: [Value?]) throws(ExpressionFailure) -> Value? {
    if self == .map { return .map(try entries(values[...], over: [:])) }
    guard let first = values[0], !first.isNull else {
      return self == .mapGet || self == .getField ? nil : .null
    }
    if self == .mapMerge { return try merged(values) }
    guard let fields = first.map else {
      if self == .getField { return nil }
      throw needs("a map")
    }
    switch self {
    case .mapGet, .getField: return fields[exactly: try name(values[1])]
    case .mapSet: return .map(try entries(values[1...], over: fields))
    case .mapRemove:
      var rest = fields
      for value in values[1...] {
        let name = try name(value)
        if rest[exactly: name] != nil { rest[name] = nil }
      }
      return .map(rest)
    default:
      let sorted = ValueOrder.sorted(fields)
      switch self {
      case .mapKeys: return .array(sorted.map { .string($0.key) })
      case .mapValues: return .array(sorted.map(\.value))
      default: return .array(sorted.map { .map(["k": .string($0.key), "v": $0.value]) })
      }
    }
  }

  private func name(_ value: Value?) throws(ExpressionFailure) -> String {
    guard let name = value?.string else { throw needs("a name, which is a text") }
    return name
  }

  /// The fields with the entries: name, value, name, value. An absent value is left out.
  private func entries(
    _ values: ArraySlice<Value?>, over fields: [String: Value]
  ) throws(ExpressionFailure) -> [String: Value] {
    guard values.count.isMultiple(of: 2) else { throw needs("a value after each name") }
    var fields = fields
    var place = values.startIndex
    while place < values.endIndex {
      let name = try name(values[place])
      if let value = values[place + 1] { fields[name] = value }
      place += 2
    }
    return fields
  }

  private func merged(_ values: [Value?]) throws(ExpressionFailure) -> Value {
    var all: [String: Value] = [:]
    for value in values {
      guard let value, !value.isNull else { return .null }
      guard let fields = value.map else { throw needs("maps") }
      all.merge(fields) { _, last in last }
    }
    return .map(all)
  }
}
