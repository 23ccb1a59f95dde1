// The row of a node as bytes. A leaf's row contains its value. A node with children has a row only
// when it has a priority or is an array. Changing a leaf changes one row.
//
//   flags: 1 leaf, 2 priority, 4 array
//   priority, when flagged: a scalar
//   leaf: a scalar; array: how many elements it was written with, a varint
//
// A scalar is a number or a text in the form it has in documents (ValueCoding), 01 false, 02 true,
// or 20 and a time in microseconds, which reads as the integer of its milliseconds. In operations
// that wait for the database to be closed, it can also be 21 and a number to add.

internal import OndolEngine

/// The content of a leaf.
enum TreeLeaf: Sendable, Hashable {
  /// A boolean, a number or a text.
  case value(Value)
  /// A commit's time, in microseconds; `pending` until the commit sets it.
  case time(Int64)
  /// A number to add to the stored one, in a write that is not applied yet.
  case increment(Value)

  static let pending = TreeLeaf.time(Timestamp.pending.microsecondsSince1970)

  /// The value as reads return it. A pending time is `now`.
  func value(now: Int64 = 0) -> Value {
    switch self {
    case .value(let value), .increment(let value): value
    case .time(let moment):
      .integer((moment == Timestamp.pending.microsecondsSince1970 ? now : moment) / 1_000)
    }
  }
}

/// The stored row of one node.
struct TreeRow: Sendable, Hashable {
  /// Nil for a node with children.
  var leaf: TreeLeaf?
  /// A number or a text; nil for none.
  var priority: Value?
  /// The number of elements when it was written as an array.
  var arrayLength: Int?

  /// Whether a node with children can do without this row.
  var isEmpty: Bool { leaf == nil && priority == nil && arrayLength == nil }

  /// The most elements of an array.
  static let longestArray = 1 << 20

  private enum Flag {
    static let leaf: UInt8 = 1
    static let priority: UInt8 = 2
    static let array: UInt8 = 4
  }

  fileprivate enum Tag {
    static let no: UInt8 = 0x01
    static let yes: UInt8 = 0x02
    static let increment: UInt8 = 0x21
  }

  /// The bytes, and the position of the commit's time in them.
  var bytes: (row: [UInt8], stamp: Int?) {
    var row: [UInt8] = [
      (leaf == nil ? 0 : Flag.leaf) | (priority == nil ? 0 : Flag.priority)
        | (arrayLength == nil ? 0 : Flag.array)
    ]
    var stamp: Int?
    if let priority { row.append(scalar: priority) }
    switch leaf {
    case .value(let value)?: row.append(scalar: value)
    case .increment(let value)?:
      row.append(Tag.increment)
      row.append(scalar: value)
    case .time(let moment)?:
      row.append(ValueCoding.Tag.timestamp)
      if leaf == .pending { stamp = row.count }
      row.append(bits: UInt64(bitPattern: moment), width: 8)
    case nil:
      break
    }
    if let arrayLength { row.appendVarint(arrayLength) }
    return (row, stamp)
  }

  init(leaf: TreeLeaf? = nil, priority: Value? = nil, arrayLength: Int? = nil) {
    self.leaf = leaf
    self.priority = priority
    self.arrayLength = arrayLength
  }

  init(_ bytes: RawSpan) throws(MalformedBytes) {
    var reader = ScalarReader(bytes)
    let flags = try reader.byte()
    guard flags & ~7 == 0, flags & 5 != 5, flags != 0 else {
      throw MalformedBytes(at: 0, "a node of the tree has unknown flags, \(flags)")
    }
    if flags & Flag.priority != 0 {
      guard case .value(let value) = try reader.scalar(), value.boolean == nil else {
        throw MalformedBytes(at: 1, "a node of the tree has a priority that is none")
      }
      priority = value
    }
    if flags & Flag.leaf != 0 { leaf = try reader.scalar() }
    if flags & Flag.array != 0 { arrayLength = try reader.count() }
    guard arrayLength ?? 0 <= Self.longestArray else {
      throw MalformedBytes(at: 1, "an array of the tree has too many elements")
    }
    guard reader.isAtEnd else {
      throw MalformedBytes(at: reader.offset, "a node of the tree goes on behind its value")
    }
  }
}

/// Reads the parts of a row.
private struct ScalarReader: ~Escapable {
  private let octets: Span<UInt8>
  private(set) var offset = 0

  @_lifetime(copy bytes)
  init(_ bytes: RawSpan) {
    octets = bytes.octets
  }

  var isAtEnd: Bool { offset == octets.count }

  private var tooShort: MalformedBytes {
    MalformedBytes(at: offset, "a node of the tree ends too early")
  }

  @_lifetime(self: copy self)
  mutating func byte() throws(MalformedBytes) -> UInt8 {
    guard let octet = octets.octet(at: offset) else { throw tooShort }
    offset += 1
    return octet
  }

  @_lifetime(self: copy self)
  mutating func count() throws(MalformedBytes) -> Int {
    guard let varint = octets.varint(at: offset) else { throw tooShort }
    offset += varint.length
    return varint.value
  }

  @_lifetime(self: copy self)
  mutating func scalar() throws(MalformedBytes) -> TreeLeaf {
    let start = offset
    let tag = try byte()
    if let width = ValueCoding.width(ofNumber: tag) {
      guard let number = octets.number(at: start), number.double?.isFinite != false else {
        throw MalformedBytes(at: start, "a node of the tree has a number that is none")
      }
      offset += width
      return .value(number)
    }
    switch tag {
    case TreeRow.Tag.no: return .value(.boolean(false))
    case TreeRow.Tag.yes: return .value(.boolean(true))
    case ValueCoding.Tag.string: return .value(.string(try text()))
    case ValueCoding.Tag.timestamp:
      guard let bits = octets.word(at: offset) else { throw tooShort }
      offset += 8
      return .time(Int64(bitPattern: bits))
    case TreeRow.Tag.increment:
      let place = offset
      guard let number = octets.number(at: offset), let tag = octets.octet(at: place),
        let width = ValueCoding.width(ofNumber: tag)
      else { throw tooShort }
      offset += 1 + width
      return .increment(number)
    default:
      throw MalformedBytes(at: start, "a node of the tree has an unknown kind of value, \(tag)")
    }
  }

  @_lifetime(self: copy self)
  private mutating func text() throws(MalformedBytes) -> String {
    let start = offset
    let length = try count()
    guard length <= octets.count - offset,
      let text = String(utf8: octets.extracting(offset..<(offset + length)).raw)
    else { throw MalformedBytes(at: start, "a node of the tree has a text that is not UTF-8") }
    offset += length
    return text
  }
}

extension [UInt8] {
  /// Appends a boolean, a number or a text.
  fileprivate mutating func append(scalar value: Value) {
    switch value {
    case .boolean(let value): append(value ? TreeRow.Tag.yes : TreeRow.Tag.no)
    case .integer(let value): append(tagged: value)
    case .double(let value):
      append(ValueCoding.Tag.float64)
      append(bits: value.bitPattern, width: 8)
    case .string(let value):
      append(ValueCoding.Tag.string)
      appendVarint(value.utf8.count)
      append(contentsOf: value.utf8)
    case .null, .decimal, .timestamp, .bytes, .reference, .geoPoint, .array, .vector, .map, .blob:
      preconditionFailure("no leaf of the tree holds \(value)")
    }
  }
}
