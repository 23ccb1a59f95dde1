// The forms of values in documents that earlier versions do not know. The catalog records for each
// collection which of them its documents may have, from the first commit that has one. A version
// that does not know the record refuses the collection as written by a newer version. So it never
// takes a value for damage or for another value.

internal import OndolEngine

/// What documents of a collection may have beyond what all versions know.
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
  /// The forms in a value that earlier versions cannot read in a key.
  init(inKeyOf value: Value) {
    self = value.hasLeaf { $0.decimal != nil } ? .decimals : []
  }

  /// Their form in the catalog's row and in the change feed's records.
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

  /// Reads the next ones.
  init(from reader: inout ByteReader) throws(MalformedBytes) {
    let start = reader.offset
    let bits = try reader.varint()
    guard bits <= UInt64(Self.all.rawValue), Self.all.rawValue | UInt8(bits) == Self.all.rawValue
    else { throw .newer(at: start, "documents with values of the unknown forms \(bits)") }
    self.init(rawValue: UInt8(bits))
  }
}
