// What the document encoder and decoder share: which Swift types a field stores natively, how the path to
// a value is kept, and how it is shown in a message.

internal import FoundationEssentials

/// The keys from the document's root to a value, kept as a list that grows at its end, so that going down
/// one level costs one object and nothing is copied until a message needs the path.
final class CodingPath {
  private let parent: CodingPath?
  private let key: (any CodingKey)?

  static var root: CodingPath { CodingPath(parent: nil, key: nil) }

  private init(parent: CodingPath?, key: (any CodingKey)?) {
    self.parent = parent
    self.key = key
  }

  func appending(_ key: some CodingKey) -> CodingPath {
    CodingPath(parent: self, key: key)
  }

  var keys: [any CodingKey] {
    var reversed: [any CodingKey] = []
    var place: CodingPath? = self
    while let current = place {
      if let key = current.key { reversed.append(key) }
      place = current.parent
    }
    return reversed.reversed()
  }
}

/// A key made by the coder itself: an array's index, or "super".
struct PlainKey: CodingKey {
  let stringValue: String
  let intValue: Int?

  init(_ name: String) {
    stringValue = name
    intValue = nil
  }

  init(_ index: Int) {
    stringValue = "\(index)"
    intValue = index
  }

  init?(stringValue: String) { self.init(stringValue) }
  init?(intValue: Int) { self.init(intValue) }
}

/// A path as a message shows it: `address.lines[2]`.
func dotted(_ keys: [any CodingKey]) -> String {
  var text = ""
  for key in keys {
    if let index = key.intValue {
      text += "[\(index)]"
    } else {
      text += text.isEmpty ? key.stringValue : ".\(key.stringValue)"
    }
  }
  return text
}

/// An unsigned number that a field cannot hold.
struct NumberTooLarge: Error {
  let text: String
}

/// What a field stores for `value` without asking its `encode(to:)`; nil for all other types.
func directInput<Content: Encodable>(of value: Content) throws -> FieldInput? {
  switch value {
  // Foundation's own numbers are not met here: a `Decimal` goes through its own coding and stays exact.
  case let value as String: .value(.string(value))
  case let value as Bool: .value(.boolean(value))
  case let value as Int: .value(.integer(Int64(value)))
  case let value as Double: .value(.double(value))
  case let value as Float: .value(.double(Double(value)))
  case let value as any FixedWidthInteger: .value(.integer(try narrowed(value)))
  case let value as Date: .value(.timestamp(Timestamp(date: value)))
  case let value as Data: .value(.bytes([UInt8](value)))
  case let value as URL: .value(.string(value.absoluteString))
  case let value as any DirectlyEncoded: try value.encodeField()
  default: nil
  }
}

private func narrowed(_ value: some FixedWidthInteger) throws -> Int64 {
  guard let narrow = Int64(exactly: value) else { throw NumberTooLarge(text: "\(value)") }
  return narrow
}

/// A type that stands in a field as itself, whatever its `encode(to:)` says.
protocol DirectlyEncoded: FieldContent {}

/// A type that is read from a field as itself, whatever its `init(from:)` says.
protocol DirectlyDecoded {
  /// Nil when the value is of another type.
  static func decodeField(_ value: Value, in context: DecodingContext) -> Self?
}
