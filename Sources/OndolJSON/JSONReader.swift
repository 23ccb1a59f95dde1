// Reads one JSON text into a value. The project has its own reader because a number must keep its
// kind: `1` is an integer with all of its 64 bits and `1.0` is a double, a difference that general
// decoders lose by rounding. An import also reads hundreds of megabytes. The input is hostile, so
// the reader checks depth and positions, and every error names its column. This file has the
// structure. Words, numbers and texts are in JSONReader+Scalars, and objects with a `$` name in
// ExtendedJSON.

package import Ondol
import OndolEngine

/// Why a text is not JSON.
package struct JSONError: Error, Sendable {
  package let reason: String
  /// The column, counted from one, in bytes.
  package let column: Int
}

/// Whether objects whose names begin with `$` represent values that JSON has no notation for.
package enum JSONDialect: Sendable {
  /// Every object is a map.
  case plain
  /// Objects such as `{"$date": …}` have their meaning from ExtendedJSON.
  case extended
}

/// The result for numbers that are neither 64-bit integers nor preserved by a double.
package enum JSONNumbers: String, Sendable, CaseIterable {
  /// Decimals, which keep all digits. The reader refuses numbers with more than 38.
  case exact
  /// The nearest doubles.
  case double
}

/// Reads the JSON of RFC 8259, and nothing else.
package struct JSONReader: ~Escapable {
  /// Deeper nesting than any document may have, even if each of its maps is in a `$literal`.
  package static let maximumDepth = 208

  let octets: Span<UInt8>
  var position = 0
  private let dialect: JSONDialect
  let numbers: JSONNumbers
  private var depth = 0
  /// Members of the outermost object whose names are always fields.
  private var documents: Set<String> = []
  /// The fields of all open maps, innermost last, so that each map is created once and at the right
  /// size.
  private var open: [(name: String, value: Value)] = []

  /// Returns the value in `bytes`, which contain one JSON text with white space around it.
  ///
  /// A number without fraction and exponent is an integer if it fits in 64 bits. A number with
  /// either is a double if the double preserves its digits. Any other number is a decimal, unless
  /// `numbers` asks for rounding.
  package static func read(
    _ bytes: [UInt8], _ dialect: JSONDialect = .extended, numbers: JSONNumbers = .exact
  ) throws(JSONError) -> Value {
    try read(bytes.bytes, dialect, numbers: numbers)
  }

  /// Returns the value in borrowed bytes.
  package static func read(
    _ bytes: RawSpan, _ dialect: JSONDialect = .extended, numbers: JSONNumbers = .exact
  ) throws(JSONError) -> Value {
    var reader = JSONReader(bytes, dialect, numbers)
    let value = try reader.readValue()
    reader.skipSpace()
    guard reader.position == bytes.byteCount else {
      throw reader.error("something follows the value")
    }
    return value
  }

  /// Returns the fields of the document in `bytes`: an object whose own names are fields, whatever
  /// they begin with.
  package static func readDocument(
    _ bytes: RawSpan, _ dialect: JSONDialect = .extended, numbers: JSONNumbers = .exact
  ) throws(JSONError) -> [String: Value] {
    var reader = JSONReader(bytes, dialect, numbers)
    reader.skipSpace()
    guard reader.next == UInt8(ascii: "{") else {
      throw reader.error("a document must be an object in braces")
    }
    let value = try reader.readValue(isLiteral: true)
    reader.skipSpace()
    guard reader.position == bytes.byteCount else {
      throw reader.error("something follows the document")
    }
    return value.map ?? [:]
  }

  /// Returns the members of the object in `bytes`. The objects with these names are documents, read
  /// as by `readDocument`.
  package static func readRequest(
    _ bytes: [UInt8], documents: Set<String>
  ) throws(JSONError) -> [String: Value] {
    var reader = JSONReader(bytes.bytes, .extended, .exact)
    reader.documents = documents
    reader.skipSpace()
    guard reader.next == UInt8(ascii: "{") else {
      throw reader.error("a request must be an object in braces")
    }
    let value = try reader.readValue(isLiteral: true)
    reader.skipSpace()
    guard reader.position == bytes.count else { throw reader.error("something follows it") }
    return value.map ?? [:]
  }

  package static func readDocument(_ bytes: [UInt8]) throws(JSONError) -> [String: Value] {
    try readDocument(bytes.bytes)
  }

  @_lifetime(copy bytes)
  private init(_ bytes: RawSpan, _ dialect: JSONDialect, _ numbers: JSONNumbers) {
    octets = bytes.octets
    self.dialect = dialect
    self.numbers = numbers
    open.reserveCapacity(16)
  }

  var next: UInt8? { position < octets.count ? octets[position] : nil }

  func error(_ reason: String, at place: Int? = nil) -> JSONError {
    JSONError(reason: reason, column: (place ?? position) + 1)
  }

  @_lifetime(self: copy self)
  private mutating func skipSpace() {
    while position < octets.count {
      let byte = octets[position]
      guard byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D else { return }
      position += 1
    }
  }

  @_lifetime(self: copy self)
  mutating func skip(_ byte: UInt8) -> Bool {
    guard position < octets.count, octets[position] == byte else { return false }
    position += 1
    return true
  }

  // MARK: - Structure

  /// - Parameter isLiteral: whether the names of a map have no special meaning.
  @_lifetime(self: copy self)
  private mutating func readValue(isLiteral: Bool = false) throws(JSONError) -> Value {
    skipSpace()
    guard let first = next else { throw error("a value is missing") }
    switch first {
    case UInt8(ascii: "\""): return .string(try readString())
    case UInt8(ascii: "{"):
      try enter()
      let value = try readMap(isLiteral: isLiteral)
      depth -= 1
      return value
    case UInt8(ascii: "["):
      try enter()
      let value = try readArray()
      depth -= 1
      return value
    case UInt8(ascii: "t"): return try readWord("true", .boolean(true))
    case UInt8(ascii: "f"): return try readWord("false", .boolean(false))
    case UInt8(ascii: "n"): return try readWord("null", .null)
    default: return try readNumber()
    }
  }

  @_lifetime(self: copy self)
  private mutating func enter() throws(JSONError) {
    guard depth < Self.maximumDepth else {
      throw error("values are nested more than \(Self.maximumDepth) deep")
    }
    depth += 1
    position += 1
  }

  @_lifetime(self: copy self)
  private mutating func readMap(isLiteral: Bool) throws(JSONError) -> Value {
    let first = open.count
    var isTyped = false
    skipSpace()
    if !skip(UInt8(ascii: "}")) {
      repeat {
        let name = try readName()
        let hasMark = dialect == .extended && !isLiteral && name.utf8.first == UInt8(ascii: "$")
        isTyped = isTyped || hasMark
        let isDocument = depth == 1 && documents.contains(name)
        let value = try readValue(
          isLiteral: hasMark && name == ExtendedJSON.literalName || isDocument)
        open.append((name, value))
        skipSpace()
      } while skip(UInt8(ascii: ","))
      guard skip(UInt8(ascii: "}")) else { throw error("',' or '}' is missing") }
    }
    let fields = try close(from: first)
    guard isTyped else { return .map(fields) }
    do throws(ExtendedJSON.Failure) {
      return try ExtendedJSON.value(of: fields)
    } catch {
      throw self.error(error.reason)
    }
  }

  /// Takes the fields of the innermost map.
  @_lifetime(self: copy self)
  private mutating func close(from first: Int) throws(JSONError) -> [String: Value] {
    var fields = [String: Value](minimumCapacity: open.count - first)
    for index in first..<open.count {
      guard fields.updateValue(open[index].value, forKey: open[index].name) == nil else {
        throw error("the name \"\(open[index].name)\" occurs twice")
      }
    }
    open.removeSubrange(first...)
    return fields
  }

  @_lifetime(self: copy self)
  private mutating func readName() throws(JSONError) -> String {
    skipSpace()
    guard next == UInt8(ascii: "\"") else { throw error("a name in quotes is missing") }
    let name = try readString()
    skipSpace()
    guard skip(UInt8(ascii: ":")) else { throw error("':' is missing after the name \"\(name)\"") }
    return name
  }

  @_lifetime(self: copy self)
  private mutating func readArray() throws(JSONError) -> Value {
    var elements: [Value] = []
    skipSpace()
    if skip(UInt8(ascii: "]")) { return .array(elements) }
    repeat {
      elements.append(try readValue())
      skipSpace()
    } while skip(UInt8(ascii: ","))
    guard skip(UInt8(ascii: "]")) else { throw error("',' or ']' is missing") }
    return .array(elements)
  }
}
