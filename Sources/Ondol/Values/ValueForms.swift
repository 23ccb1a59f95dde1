// What some documents consist of that versions before did not know. The catalog says of each
// collection which of it its documents may have, from the commit on that first brings it. A version
// that does not know the row refuses the collection as written by a newer one, and takes no value
// for damage or for another.

internal import OndolEngine

/// What documents of a collection may have beside what all versions know.
struct ValueForms: OptionSet, Sendable {
  let rawValue: UInt8

  /// Arrays directly in arrays, and maps and arrays nested deeper than 20.
  static let nested = ValueForms(rawValue: 1)

  /// Decimals.
  static let decimals = ValueForms(rawValue: 2)

  static let all: ValueForms = [.nested, .decimals]

  /// How deep maps and arrays can be nested for every version.
  static let plainNesting = 20
}

extension ValueForms {
  /// What a value consists of that versions before cannot read in a key.
  init(inKeyOf value: Value) {
    self = value.hasLeaf { $0.decimal != nil } ? .decimals : []
  }

  /// As the catalog's row has them, and the change feed's records.
  var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.appendVarint(UInt64(rawValue))
    return bytes
  }

  /// Reads the catalog's row.
  init(_ bytes: RawSpan) throws(MalformedBytes) {
    var reader = ByteReader(bytes)
    try self.init(from: &reader)
  }

  /// Reads what stands next.
  init(from reader: inout ByteReader) throws(MalformedBytes) {
    let start = reader.offset
    let bits = try reader.varint()
    guard bits <= UInt64(Self.all.rawValue), Self.all.rawValue | UInt8(bits) == Self.all.rawValue
    else { throw .newer(at: start, "documents with values of the unknown forms \(bits)") }
    self.init(rawValue: UInt8(bits))
  }
}
