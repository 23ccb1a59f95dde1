// Writes values as JSON on one line. Field names are in the order of their bytes, so that equal
// documents are equal lines. ExtendedJSON defines the form of values that JSON has no notation for.
// Even the relaxed form preserves everything to the last bit, because a double always has a "." or
// an "e" in it and an integer never does.

import Foundation
package import Ondol
import OndolEngine

/// Writes one value after another into the same buffer.
package struct JSONWriter {
  /// The text so far, in UTF-8.
  package private(set) var bytes: [UInt8] = []
  private let form: JSONForm

  package init(_ form: JSONForm = .relaxed) {
    self.form = form
  }

  /// The text so far.
  package var text: String { String(decoding: bytes, as: UTF8.self) }

  /// Returns `value` as JSON on one line.
  package static func line(_ value: Value, _ form: JSONForm = .relaxed) -> String {
    var writer = JSONWriter(form)
    writer.write(value)
    return writer.text
  }

  /// Returns a document's fields after its id, under a name that no field can have.
  package static func line(
    id: String, _ fields: [String: Value], _ form: JSONForm = .relaxed
  ) -> String {
    var writer = JSONWriter(form)
    writer.write(fields: fields, behind: [(documentIDName, .string(id))])
    return writer.text
  }

  /// Returns a document's fields for an editor, each on a line of its own.
  package static func page(_ fields: [String: Value]) -> String {
    var writer = JSONWriter()
    var separator = "{\n  "
    for (name, value) in fields.sorted(by: { $0.key.compareBytes($1.key) < 0 }) {
      writer.append(separator)
      writer.write(name)
      writer.append(": ")
      writer.write(value)
      separator = ",\n  "
    }
    writer.append(fields.isEmpty ? "{}\n" : "\n}\n")
    return writer.text
  }

  /// The name of a document's id, also in queries.
  package static let documentIDName = "__name__"

  /// "2026-05-01T09:30:00.25Z".
  package static func dateText(_ timestamp: Timestamp) -> String { Moment.text(timestamp) }

  /// Removes the text, and keeps its capacity.
  package mutating func removeAll() {
    bytes.removeAll(keepingCapacity: true)
  }

  /// Ends a line.
  package mutating func endLine() {
    bytes.append(0x0A)
  }

  /// Begins the line of an array's element.
  package mutating func separate(isFirst: Bool) {
    append(isFirst ? "\n" : ",\n")
  }

  /// Writes an object that begins with members that are not fields of a document.
  package mutating func write(fields: [String: Value], behind first: [(String, Value)]) {
    bytes.append(UInt8(ascii: "{"))
    var separator = false
    for (name, value) in first {
      member(name, value, &separator)
    }
    members(fields, &separator)
    bytes.append(UInt8(ascii: "}"))
  }

  package mutating func write(_ value: Value) {
    switch value {
    case .null: append("null")
    case .boolean(let value): append(value ? "true" : "false")
    case .integer(let value): write(value)
    case .double(let value): write(value)
    case .decimal(let value): write(value)
    case .string(let value): write(value)
    case .array(let elements):
      write(elements.count) { writer, index in writer.write(elements[index]) }
    case .map(let fields): write(fields)
    case .timestamp(let value): write("$date", .string(Moment.text(value)))
    case .bytes(let value): write(value)
    case .reference(let path): write("$reference", .string(path.description))
    case .geoPoint(let point): write(point)
    case .vector(let vector): write(vector)
    case .blob(let blob): write("$blob", .map(Self.fields(of: blob)))
    }
  }

  private mutating func append(_ text: String) {
    bytes.append(contentsOf: text.utf8)
  }

  /// Writes a value that JSON has no notation for. The plain form has only its content.
  private mutating func write(_ name: String, _ content: Value) {
    if form == .plain { return write(content) }
    append("{\"\(name)\":")
    write(content)
    append("}")
  }

  /// Writes a text that represents a number.
  private mutating func write(_ name: String, digits: String) {
    append("{\"\(name)\":\"\(digits)\"}")
  }
}

// MARK: - Numbers and typed values

extension JSONWriter {
  private mutating func write(_ value: Int64) {
    form == .canonical ? write("$numberLong", digits: "\(value)") : append(String(value))
  }

  private mutating func write(_ value: Double) {
    if value.isFinite, form != .canonical { return append(String(value)) }
    if form == .plain { return append("null") }
    write("$numberDouble", digits: ExtendedJSON.text(of: value))
  }

  private mutating func write(_ value: DecimalValue) {
    form == .plain ? append("\(value)") : write("$numberDecimal", digits: "\(value)")
  }

  private mutating func write(_ value: [UInt8]) {
    let text = Data(value).base64EncodedString()
    if form == .plain { return write(text) }
    append("{\"$binary\":{\"base64\":\"\(text)\",\"subType\":\"00\"}}")
  }

  private mutating func write(_ point: GeoPoint) {
    if form == .plain {
      return write([
        "latitude": .double(point.latitude), "longitude": .double(point.longitude),
      ])
    }
    append("{\"$geoPoint\":[\(point.latitude),\(point.longitude)]}")
  }

  private mutating func write(_ vector: VectorValue) {
    if form != .plain { append("{\"$vector\":") }
    let components = vector.components
    write(components.count) { writer, index in
      let component = components[index]
      if component.isFinite {
        writer.append(String(component))
      } else {
        writer.append(writer.form == .plain ? "null" : "\"\(ExtendedJSON.text(of: component))\"")
      }
    }
    if form != .plain { append("}") }
  }

  private static func fields(of blob: BlobReference) -> [String: Value] {
    var fields: [String: Value] = [
      "sha256": .string(blob.digest.hex), "length": .integer(Int64(blob.length)),
    ]
    fields["contentType"] = blob.contentType.map { .string($0) }
    fields["path"] = blob.path.map { .string($0) }
    fields["key"] = blob.key.map { .string($0.hex) }
    return fields
  }
}

// MARK: - Containers and texts

extension JSONWriter {
  /// Writes an array with a number of elements.
  private mutating func write(_ count: Int, _ element: (inout JSONWriter, Int) -> Void) {
    bytes.append(UInt8(ascii: "["))
    for index in 0..<count {
      if index > 0 { bytes.append(UInt8(ascii: ",")) }
      element(&self, index)
    }
    bytes.append(UInt8(ascii: "]"))
  }

  private mutating func write(_ fields: [String: Value]) {
    let isLiteral =
      form != .plain && fields.keys.contains { $0.utf8.first == UInt8(ascii: "$") }
    if isLiteral { append("{\"\(ExtendedJSON.literalName)\":") }
    write(fields: fields, behind: [])
    if isLiteral { append("}") }
  }

  private mutating func members(_ fields: [String: Value], _ separator: inout Bool) {
    for (name, value) in fields.sorted(by: { $0.key.compareBytes($1.key) < 0 }) {
      member(name, value, &separator)
    }
  }

  private mutating func member(_ name: String, _ value: Value, _ separator: inout Bool) {
    if separator { bytes.append(UInt8(ascii: ",")) }
    separator = true
    write(name)
    bytes.append(UInt8(ascii: ":"))
    write(value)
  }

  /// Every invisible character is escaped, so that any program can display the JSON. A reader gets
  /// the same text.
  private mutating func write(_ string: String) {
    bytes.append(UInt8(ascii: "\""))
    string.withUTF8Bytes { octets in
      var start = 0
      var index = 0
      while index < octets.byteCount {
        let (scalar, length) = Self.scalar(of: octets, at: index)
        if scalar == 0x22 || scalar == 0x5C || VisibleText.isHidden(scalar) {
          bytes.append(octets.extracting(start..<index))
          append(Self.escape(scalar))
          start = index + length
        }
        index += length
      }
      bytes.append(octets.extracting(start..<octets.byteCount))
    }
    bytes.append(UInt8(ascii: "\""))
  }

  /// Returns the scalar at a place in valid UTF-8, and its bytes.
  private static func scalar(of octets: RawSpan, at index: Int) -> (scalar: UInt32, length: Int) {
    let first = octets.byte(at: index)
    if first < 0x80 { return (UInt32(first), 1) }
    let length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4
    let head = UInt32(first) & (0xFF >> UInt32(length + 1))
    let scalar = (1..<length).reduce(head) { scalar, offset in
      scalar << 6 | UInt32(octets.byte(at: index + offset) & 0x3F)
    }
    return (scalar, length)
  }

  private static func escape(_ scalar: UInt32) -> String {
    switch scalar {
    case 0x22: return "\\\""
    case 0x5C: return "\\\\"
    case 0x0A: return "\\n"
    case 0x0D: return "\\r"
    case 0x09: return "\\t"
    default: break
    }
    guard scalar > 0xFFFF else { return unit(scalar) }
    let rest = scalar - 0x10000
    return unit(0xD800 + rest >> 10) + unit(0xDC00 + rest & 0x3FF)
  }

  private static func unit(_ unit: UInt32) -> String {
    let digits = String(unit, radix: 16)
    return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
  }
}
