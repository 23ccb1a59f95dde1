// Functions of texts and bytes. Characters are Unicode scalars, as in Firestore. Regular
// expressions take a time that is linear in the text, and no result is longer than 10 MiB, so a
// client cannot occupy the database with one text.

extension ScalarFunction {
  func ofText(_ values: [Value]) throws(ExpressionFailure) -> Value {
    switch self {
    case .length, .byteLength, .charLength, .storageSize: return try length(of: values[0])
    case .concat: return try concatenated(values)
    case .reverse, .stringReverse: return try reversed(values[0])
    case .substring: return try substring(values)
    case .trim, .ltrim, .rtrim: return try trimmed(values)
    case .stringRepeat: return try repeated(values)
    case .split: return try split(values)
    default: break
    }
    let texts = try texts(values)
    switch self {
    case .stringConcat: return try Texts.limited(texts.joined())
    case .stringContains:
      return .boolean(TextPattern(texts[1], .anywhere, ignoringCase: false).matches(texts[0]))
    case .startsWith:
      return .boolean(TextPattern(texts[1], .beginning, ignoringCase: false).matches(texts[0]))
    case .endsWith: return .boolean(texts[0].utf8.reversed().starts(with: texts[1].utf8.reversed()))
    case .like: return .boolean(Texts.isLike(texts[0], texts[1]))
    case .toLower: return .string(texts[0].lowercased())
    case .toUpper: return .string(texts[0].uppercased())
    case .stringIndexOf:
      return .integer(Int64(Texts.position(of: texts[1], in: texts[0]) ?? -1))
    case .stringReplaceAll, .stringReplaceOne:
      return try Texts.replaced(texts, once: self == .stringReplaceOne)
    default:
      return try Texts.matches(self, texts[0], pattern(texts[1]))
    }
  }

  private func pattern(_ text: String) throws(ExpressionFailure) -> RegularExpression {
    do throws(RegularExpressionError) {
      return try RegularExpression(text)
    } catch {
      throw ExpressionFailure("\(rawValue): \(error.message)")
    }
  }

  private func texts(_ values: [Value]) throws(ExpressionFailure) -> [String] {
    var texts: [String] = []
    for value in values {
      guard let text = value.string else { throw needs("a text") }
      texts.append(text)
    }
    return texts
  }

  private func integer(_ value: Value) throws(ExpressionFailure) -> Int {
    guard let number = value.integer else { throw needs("an integer") }
    return Int(number)
  }

  private func length(of value: Value) throws(ExpressionFailure) -> Value {
    switch (self, value) {
    case (.storageSize, _): return .integer(Int64(value.storageBytes))
    case (.byteLength, .string(let text)): return .integer(Int64(text.utf8.count))
    case (.charLength, .string(let text)), (.length, .string(let text)):
      return .integer(Int64(text.unicodeScalars.count))
    case (.byteLength, .bytes(let bytes)), (.length, .bytes(let bytes)):
      return .integer(Int64(bytes.count))
    case (.length, .array(let elements)): return .integer(Int64(elements.count))
    case (.length, .map(let fields)): return .integer(Int64(fields.count))
    case (.length, .vector(let vector)): return .integer(Int64(vector.components.count))
    default: throw needs(self == .charLength ? "a text" : "a text or bytes")
    }
  }

  /// Texts, bytes or arrays, all of the same type.
  private func concatenated(_ values: [Value]) throws(ExpressionFailure) -> Value {
    switch values[0] {
    case .string: return try Texts.limited(texts(values).joined())
    case .bytes:
      var all: [UInt8] = []
      for value in values {
        guard let bytes = value.bytes else { throw needs("values of one type") }
        all += bytes
      }
      return .bytes(all)
    case .array:
      var all: [Value] = []
      for value in values {
        guard let elements = value.array else { throw needs("values of one type") }
        all += elements
      }
      return .array(all)
    default: throw needs("texts, bytes or arrays")
    }
  }

  private func reversed(_ value: Value) throws(ExpressionFailure) -> Value {
    switch value {
    case .string(let text):
      return .string(String(String.UnicodeScalarView(text.unicodeScalars.reversed())))
    case .bytes(let bytes): return .bytes(bytes.reversed())
    case .array(let elements) where self == .reverse: return .array(elements.reversed())
    default: throw needs("a text or bytes")
    }
  }

  private func substring(_ values: [Value]) throws(ExpressionFailure) -> Value {
    let start = try integer(values[1])
    let length = values.count > 2 ? try integer(values[2]) : Int.max
    guard length >= 0 else { throw needs("a length that is not negative") }
    func range(of count: Int) -> Range<Int> {
      let first = start < 0 ? max(0, count + max(start, -count)) : min(start, count)
      return first..<(first + min(length, count - first))
    }
    switch values[0] {
    case .string(let text):
      let scalars = Array(text.unicodeScalars)
      return .string(
        String(String.UnicodeScalarView(scalars[range(of: scalars.count)])))
    case .bytes(let bytes): return .bytes(Array(bytes[range(of: bytes.count)]))
    default: throw needs("a text or bytes")
    }
  }

  private func trimmed(_ values: [Value]) throws(ExpressionFailure) -> Value {
    if case .bytes(let bytes) = values[0] {
      guard values.count > 1 else { throw needs("the bytes to trim") }
      guard let removed = values[1].bytes else { throw needs("bytes") }
      return .bytes(Array(trimmed(bytes[...]) { removed.contains($0) }))
    }
    let texts = try texts(values)
    let scalars = Array(texts[0].unicodeScalars)[...]
    let removed = texts.count > 1 ? Set(texts[1].unicodeScalars) : nil
    let rest = trimmed(scalars) { removed?.contains($0) ?? $0.properties.isWhitespace }
    return .string(String(String.UnicodeScalarView(rest)))
  }

  private func trimmed<Element>(
    _ elements: ArraySlice<Element>, _ isRemoved: (Element) -> Bool
  ) -> ArraySlice<Element> {
    var rest = elements
    if self != .rtrim { rest = rest.drop(while: isRemoved) }
    if self != .ltrim {
      while let last = rest.last, isRemoved(last) { rest.removeLast() }
    }
    return rest
  }

  private func repeated(_ values: [Value]) throws(ExpressionFailure) -> Value {
    let count = try integer(values[1])
    guard count >= 0 else { throw needs("a number that is not negative") }
    let length = values[0].string?.utf8.count ?? values[0].bytes?.count
    guard let length else { throw needs("a text or bytes") }
    let (total, overflow) = length.multipliedReportingOverflow(by: count)
    guard !overflow, total <= Texts.longest else { throw Texts.tooLong }
    if case .bytes(let bytes) = values[0] {
      return .bytes(Array(repeatElement(bytes, count: length == 0 ? 0 : count).joined()))
    }
    return .string(String(repeating: values[0].string ?? "", count: length == 0 ? 0 : count))
  }

  private func split(_ values: [Value]) throws(ExpressionFailure) -> Value {
    let texts = try texts(values)
    let separator = texts.count > 1 ? texts[1] : ","
    guard !separator.isEmpty else {
      return .array(texts[0].unicodeScalars.map { .string(String($0)) })
    }
    return .array(Texts.parts(of: texts[0], separator).map { .string($0) })
  }
}

/// Work on texts by their scalars and bytes.
enum Texts {
  /// Bytes of the longest text that a function makes.
  static let longest = 10 << 20
  /// Steps of one regular expression over one text.
  private static let mostWork = 50_000_000

  static var tooLong: ExpressionFailure {
    ExpressionFailure("a text would have more than \(longest) bytes")
  }

  static func limited(_ text: String) throws(ExpressionFailure) -> Value {
    guard text.utf8.count <= longest else { throw tooLong }
    return .string(text)
  }

  /// The elements, which are texts, with a separator between; null elements are left out unless
  /// there is a text for them.
  static func joined(_ values: [Value?]) throws(ExpressionFailure) -> Value {
    guard let list = values[0], !list.isNull, let between = values[1], !between.isNull else {
      return .null
    }
    guard let elements = list.array, let separator = between.string else {
      throw ScalarFunction.join.needs("an array and a text")
    }
    let nullText = values.count > 2 ? values[2]?.string : nil
    var parts: [String] = []
    for element in elements {
      switch element {
      case .string(let text): parts.append(text)
      case .null: if let nullText { parts.append(nullText) }
      default: throw ScalarFunction.join.needs("an array of texts")
      }
    }
    return try limited(parts.joined(separator: separator))
  }

  // MARK: - Finding

  /// The position of the first occurrence in bytes; nil when there is none.
  private static func byte(
    of part: ArraySlice<UInt8>, in text: [UInt8], from start: Int
  ) -> Int? {
    guard let first = part.first else { return start }
    guard part.count <= text.count else { return nil }
    var place = start
    while place <= text.count - part.count {
      if text[place] == first, text[place..<(place + part.count)].elementsEqual(part) {
        return place
      }
      place += 1
    }
    return nil
  }

  /// The position of the first occurrence in characters.
  static func position(of part: String, in text: String) -> Int? {
    let bytes = Array(text.utf8)
    guard let place = byte(of: Array(part.utf8)[...], in: bytes, from: 0) else { return nil }
    // A byte that continues a scalar begins with the bits 10.
    return bytes[..<place].reduce(0) { $0 + ($1 & 0xc0 == 0x80 ? 0 : 1) }
  }

  static func parts(of text: String, _ separator: String) -> [String] {
    let (bytes, part) = (Array(text.utf8), Array(separator.utf8)[...])
    var (found, start): ([String], Int) = ([], 0)
    while let place = byte(of: part, in: bytes, from: start) {
      found.append(String(decoding: bytes[start..<place], as: UTF8.self))
      start = place + part.count
    }
    return found + [String(decoding: bytes[start...], as: UTF8.self)]
  }

  static func replaced(_ texts: [String], once: Bool) throws(ExpressionFailure) -> Value {
    guard !texts[1].isEmpty else { return .string(texts[0]) }
    var parts = parts(of: texts[0], texts[1])
    if once, parts.count > 2 {
      parts = [parts[0], parts[1...].joined(separator: texts[1])]
    }
    let added = texts[2].utf8.count.multipliedReportingOverflow(by: parts.count)
    guard !added.overflow, added.partialValue <= longest else { throw tooLong }
    return try limited(parts.joined(separator: texts[2]))
  }

  // MARK: - Patterns

  /// Whether the text matches `%`, `_` and characters; `\` takes the next one literally. Goes back
  /// only to the last `%`, so the time is the product of both lengths at most.
  static func isLike(_ text: String, _ pattern: String) -> Bool {
    let (text, pattern) = (Array(text.unicodeScalars), Array(pattern.unicodeScalars))
    var (place, step): (Int, Int) = (0, 0)
    var retry: (place: Int, step: Int)?
    while place < text.count {
      if step < pattern.count, pattern[step] == "%" {
        retry = (place, step + 1)
        step += 1
        continue
      }
      if step < pattern.count {
        let isEscaped = pattern[step] == "\\" && step + 1 < pattern.count
        let sought = isEscaped ? pattern[step + 1] : pattern[step]
        if !isEscaped && sought == "_" || sought == text[place] {
          place += 1
          step += isEscaped ? 2 : 1
          continue
        }
      }
      guard let last = retry else { return false }
      place = last.place + 1
      step = last.step
      retry = (place, step)
    }
    while step < pattern.count, pattern[step] == "%" { step += 1 }
    return step == pattern.count
  }

  static func matches(
    _ function: ScalarFunction, _ text: String, _ pattern: RegularExpression
  ) throws(ExpressionFailure) -> Value {
    try matches(function) { work in
      switch function {
      case .regexContains: return .boolean(pattern.matchesPart(of: text, work: &work))
      case .regexMatch: return .boolean(pattern.matchesWhole(text, work: &work))
      default:
        let scalars = text.unicodeScalars.map(\.value)
        let found = pattern.matches(in: scalars, work: &work).map { range -> Value in
          let part = scalars[range].compactMap(Unicode.Scalar.init)
          return .string(String(String.UnicodeScalarView(part)))
        }
        return function == .regexFindAll ? .array(found) : found.first ?? .null
      }
    }
  }

  /// The value that `body` finds with as many steps as a pattern may take.
  static func matches(
    _ function: ScalarFunction, _ body: (inout Int) -> Value
  ) throws(ExpressionFailure) -> Value {
    var work = mostWork
    let result = body(&work)
    guard work >= 0 else {
      throw ExpressionFailure("\(function.rawValue): the text is too long for the pattern")
    }
    return result
  }
}

extension Value {
  /// The size that Firestore's documentation gives a stored value.
  fileprivate var storageBytes: Int {
    switch self {
    case .null, .boolean: 1
    case .integer, .double, .timestamp: 8
    case .decimal, .geoPoint: 16
    case .string(let text): text.utf8.count + 1
    case .bytes(let bytes): bytes.count
    case .reference(let path): path.segments.reduce(16) { $0 + $1.utf8.count + 1 }
    case .array(let elements): elements.reduce(0) { $0 + $1.storageBytes }
    case .vector(let vector): 8 * vector.components.count
    case .map(let fields): fields.reduce(0) { $0 + $1.key.utf8.count + 1 + $1.value.storageBytes }
    case .blob: 48
    }
  }
}
