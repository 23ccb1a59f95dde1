// Keys of the tree as bytes in the order of the Realtime Database, and the keyspaces of its rows. A
// node's row has the key of its parent and one more component, so a subtree is one range of keys,
// and the children of a node are in order in it.
//
//   component of an integer:  20, value (4 bytes, sign bit flipped), 2 x length, +1 unless "-0…"
//   component of a text:      38, text with 00 as 00 FF, then 00 01
//
// A key is an integer when it has at most eleven characters, an optional "-" and digits, and fits
// 32 bits. Integers come first, by value, then the shorter first: "1" is before "01". Texts are in
// the order of their UTF-16 code units: their UTF-8, with the lead bytes EE and EF of U+E000 to
// U+FFFF written as F5 and F6, which come after those of the characters with two code units. No
// component is the beginning of another.
//
// Before a node's children and after its own row, its range has rows that order the children:
//
//   10, priority, component     a child that has a priority
//   12, way, 05, value, component   a child, by the value at a path that an index was declared for

internal import OndolEngine

extension Keyspace {
  /// The nodes of the tree, and before children the rows that order them.
  static let tree = Keyspace(rawValue: 16)
  /// Writes to the tree for the time when the database is closed.
  static let closeOperations = Keyspace(rawValue: 17)
  /// The same for each of the processes that share a database on a store.
  static let sharedCloseOperations = Keyspace(rawValue: 19)
  /// Writes to the tree for the end of each connection to a server.
  static let connectionOperations = Keyspace(rawValue: 20)
  /// The nodes of the tree with indexes by child.
  static let treeIndexes = Keyspace(rawValue: 18)
}

/// Keys of the tree's rows.
enum TreeKey {
  /// The first byte after a node's key.
  enum Tag {
    static let priorities: UInt8 = 0x10
    static let index: UInt8 = 0x12
    static let integer: UInt8 = 0x20
    static let text: UInt8 = 0x38
  }

  /// The beginning of a node's children, after its key.
  static let firstChild: [UInt8] = [Tag.integer]
  private static let integerLength = 6

  /// The prefix of every key of the tree; the root's row has it as its key.
  static let root = Keyspace.tree.prefix

  // MARK: - Writing

  /// The component of a key.
  static func component(_ key: String) -> [UInt8] {
    var bytes: [UInt8] = []
    append(key, to: &bytes)
    return bytes
  }

  /// Appends the component of a key.
  static func append(_ key: String, to bytes: inout [UInt8]) {
    guard let number = integer(key) else {
      bytes.append(Tag.text)
      return append(text: key, to: &bytes)
    }
    bytes.append(Tag.integer)
    let ordered = UInt32(bitPattern: number) ^ 1 << 31
    for shift in [24, 16, 8, 0] as [UInt32] {
      bytes.append(UInt8(truncatingIfNeeded: ordered >> shift))
    }
    let isNegativeZero = number == 0 && key.utf8.first == UInt8(ascii: "-")
    bytes.append(UInt8(2 * key.utf8.count + (isNegativeZero ? 0 : 1)))
  }

  /// Appends a text in the order of UTF-16, with its end.
  static func append(text: String, to bytes: inout [UInt8]) {
    for octet in text.utf8 {
      switch octet {
      case 0:
        bytes.append(0)
        bytes.append(0xff)
      case 0xee, 0xef: bytes.append(octet + 7)
      default: bytes.append(octet)
      }
    }
    bytes.append(0)
    bytes.append(1)
  }

  /// The number of an integer key; nil when the key is a text.
  static func integer(_ key: String) -> Int32? {
    let octets = key.utf8
    guard octets.count <= 11, let first = octets.first else { return nil }
    let isNegative = first == UInt8(ascii: "-")
    guard !isNegative || octets.count > 1 else { return nil }
    var value: Int64 = 0
    for octet in isNegative ? octets.dropFirst() : octets[...] {
      guard octet >= UInt8(ascii: "0"), octet <= UInt8(ascii: "9") else { return nil }
      value = value * 10 + Int64(octet - UInt8(ascii: "0"))
    }
    return Int32(exactly: isNegative ? -value : value)
  }

  /// The order of two keys: negative, zero or positive.
  static func compare(_ left: [UInt8], _ right: [UInt8]) -> Int {
    left.bytes.compare(right.bytes)
  }

  // MARK: - Reading

  /// The end of the component that begins at `start`; nil when it is invalid or incomplete.
  static func end(of key: RawSpan, from start: Int) -> Int? {
    let octets = key.octets
    switch octets.octet(at: start) {
    case Tag.integer?:
      return start + integerLength <= octets.count ? start + integerLength : nil
    case Tag.text?:
      var offset = start + 1
      while offset + 1 < octets.count {
        guard octets[offset] == 0 else {
          offset += 1
          continue
        }
        if octets[offset + 1] == 1 { return offset + 2 }
        guard octets[offset + 1] == 0xff else { return nil }
        offset += 2
      }
      return nil
    default:
      return nil
    }
  }

  /// Whether a row is a node's, and not one that orders the children of a node.
  static func isNode(_ key: RawSpan) -> Bool { orderedNode(of: key) == nil }

  /// The key of the node whose children a row orders; nil for a node's own row.
  static func orderedNode(of key: RawSpan) -> [UInt8]? {
    var offset = Keyspace.tree.prefix.count
    while offset < key.byteCount {
      guard let end = end(of: key, from: offset) else { return key.extracting(..<offset).array }
      offset = end
    }
    return nil
  }

  /// The key of a whole component.
  static func key(_ component: RawSpan) throws(MalformedBytes) -> String {
    guard component.byteCount > 0, end(of: component, from: 0) == component.byteCount else {
      throw MalformedBytes(at: 0, "a key of the tree has an unknown form")
    }
    return component.byte(at: 0) == Tag.integer
      ? try integerKey(component) : try text(component, from: 1)
  }

  private static func integerKey(_ component: RawSpan) throws(MalformedBytes) -> String {
    var ordered: UInt32 = 0
    for index in 1...4 { ordered = ordered << 8 | UInt32(component.byte(at: index)) }
    let value = Int64(Int32(bitPattern: ordered ^ 1 << 31))
    let form = component.byte(at: 5)
    let digits = String(value.magnitude)
    let isNegative = value < 0 || form & 1 == 0
    let padding = Int(form >> 1) - digits.utf8.count - (isNegative ? 1 : 0)
    guard form >> 1 <= 11, padding >= 0, form & 1 == 1 || value == 0 else {
      throw MalformedBytes(at: 5, "a key of the tree is a number that is none")
    }
    return (isNegative ? "-" : "") + String(repeating: "0", count: padding) + digits
  }

  /// The text whose bytes begin at `start` and reach, with their end, to the end of `bytes`.
  static func text(_ bytes: RawSpan, from start: Int) throws(MalformedBytes) -> String {
    var plain: [UInt8] = []
    plain.reserveCapacity(bytes.byteCount)
    var offset = start
    while offset < bytes.byteCount - 2 {
      let octet = bytes.byte(at: offset)
      guard octet != 0xee, octet != 0xef, octet < 0xf7 else {
        throw MalformedBytes(at: offset, "a text of the tree is not UTF-8")
      }
      plain.append(octet == 0xf5 || octet == 0xf6 ? octet - 7 : octet)
      offset += octet == 0 ? 2 : 1
    }
    guard let text = String(utf8: plain.bytes) else {
      throw MalformedBytes(at: start, "a text of the tree is not UTF-8")
    }
    return text
  }

  /// The keys from the root to the node whose row has this key; nil when the row is not a node's
  /// but orders children.
  static func path(of key: RawSpan) throws(MalformedBytes) -> [String]? {
    var keys: [String] = []
    var offset = Keyspace.tree.prefix.count
    while offset < key.byteCount {
      if key.byte(at: offset) < Tag.integer { return nil }
      guard let end = end(of: key, from: offset) else {
        throw MalformedBytes(at: offset, "a key of the tree has an unknown form")
      }
      keys.append(try Self.key(key.extracting(offset..<end)))
      offset = end
    }
    return keys
  }
}
