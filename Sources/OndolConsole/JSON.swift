// The responses' JSON. Members keep their order, and the database's values have the canonical typed
// form.

import Ondol
import OndolJSON

/// A JSON text to write.
indirect enum JSON: Sendable {
  case null
  case boolean(Bool)
  case number(Int)
  case fraction(Double)
  case text(String)
  case list([JSON])
  case object([(name: String, value: JSON?)])
  /// A value of the database.
  case value(Ondol.Value)
  /// The fields of a document.
  case fields([String: Ondol.Value])
  /// Text that is JSON already.
  case written([UInt8])

  /// The text. Members without a value are left out.
  var bytes: [UInt8] {
    var bytes: [UInt8] = []
    write(to: &bytes)
    return bytes
  }

  private func write(to bytes: inout [UInt8]) {
    switch self {
    case .null: bytes += "null".utf8
    case .boolean(let value): bytes += (value ? "true" : "false").utf8
    case .number(let value): bytes += String(value).utf8
    case .fraction(let value): bytes += (value.isFinite ? String(value) : "null").utf8
    case .text(let text): Self.write(.string(text), to: &bytes)
    case .value(let value): Self.write(value, to: &bytes)
    case .written(let written): bytes += written
    case .fields(let fields):
      var writer = JSONWriter(.canonical)
      writer.write(fields: fields, behind: [])
      bytes += writer.bytes
    case .list(let elements):
      bytes.append(UInt8(ascii: "["))
      for (index, element) in elements.enumerated() {
        if index > 0 { bytes.append(UInt8(ascii: ",")) }
        element.write(to: &bytes)
      }
      bytes.append(UInt8(ascii: "]"))
    case .object(let members):
      bytes.append(UInt8(ascii: "{"))
      var isFirst = true
      for (name, value) in members {
        guard let value else { continue }
        if !isFirst { bytes.append(UInt8(ascii: ",")) }
        isFirst = false
        Self.write(.string(name), to: &bytes)
        bytes.append(UInt8(ascii: ":"))
        value.write(to: &bytes)
      }
      bytes.append(UInt8(ascii: "}"))
    }
  }

  private static func write(_ value: Ondol.Value, to bytes: inout [UInt8]) {
    var writer = JSONWriter(.canonical)
    writer.write(value)
    bytes += writer.bytes
  }

  /// Returns this object after other members.
  func behind(_ members: KeyValuePairs<String, JSON?>) -> JSON {
    guard case .object(let own) = self else { return self }
    return .object(members.map { (name: $0.key, value: $0.value) } + own)
  }

  static func texts(_ texts: [String]) -> JSON { .list(texts.map { .text($0) }) }

  static func digits(_ number: some BinaryInteger) -> JSON { .text("\(number)") }

  static func time(_ time: Timestamp) -> JSON { .text(Moment.text(time)) }

  static func seconds(_ duration: Duration) -> JSON { .fraction(duration / .seconds(1)) }
}

extension JSON: ExpressibleByDictionaryLiteral, ExpressibleByStringLiteral,
  ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral
{
  init(dictionaryLiteral elements: (String, JSON?)...) {
    self = .object(elements.map { (name: $0.0, value: $0.1) })
  }

  init(stringLiteral value: String) { self = .text(value) }

  init(integerLiteral value: Int) { self = .number(value) }

  init(booleanLiteral value: Bool) { self = .boolean(value) }
}
