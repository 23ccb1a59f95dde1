// The documents: keys and values that are the same for every engine and every run, made by a few
// multiplications from a document's number. Keys have 16 bytes and are random unless the options
// ask for another order. Half of a value is random, half is repeating text, so that it compresses
// to a bit over half.

package import CPeers

/// Keys in memory: each has twenty bytes. The first four name a keyspace, for engines that share
/// one key order among many collections, and the other sixteen are the document's own.
package struct KeyList: Sendable {
  package static let stride = 20
  package static let prefixLength = 4
  package static let keyLength = 16
  /// The keyspace, high byte first.
  package static let keyspace: [UInt8] = [0, 0, 0x10, 0]
  /// The end of the keyspace.
  package static let nextKeyspace: [UInt8] = [0, 0, 0x10, 1]

  package private(set) var bytes: [UInt8] = []
  package private(set) var count = 0

  package init() {}

  package mutating func reserve(_ count: Int) {
    bytes.reserveCapacity(count * Self.stride)
  }

  package mutating func append(_ words: (UInt64, UInt64)) {
    bytes.append(contentsOf: Self.keyspace)
    withUnsafeBytes(of: words.0.bigEndian) { bytes.append(contentsOf: $0) }
    withUnsafeBytes(of: words.1.bigEndian) { bytes.append(contentsOf: $0) }
    count += 1
  }

  package mutating func removeAll() {
    bytes.removeAll(keepingCapacity: true)
    count = 0
  }

  /// The same keys in another keyspace.
  package func moved(to keyspace: [UInt8]) -> KeyList {
    if keyspace == Self.keyspace { return self }
    var list = self
    for start in Swift.stride(from: 0, to: bytes.count, by: Self.stride) {
      for place in 0..<Self.prefixLength { list.bytes[start + place] = keyspace[place] }
    }
    return list
  }

  /// Returns the keys in lists of equal size, without the rest at the end.
  package func parts(of count: Int) -> [KeyList] {
    let length = count * Self.stride
    return (0..<self.count / count).map { number in
      var list = KeyList()
      list.bytes = Array(bytes[number * length..<(number + 1) * length])
      list.count = count
      return list
    }
  }

  /// Lends the keys without their keyspace.
  package func withKeys<R>(_ body: (peer_keys) throws -> R) rethrows -> R {
    try bytes.withUnsafeBufferPointer { buffer in
      try body(
        peer_keys(
          bytes: buffer.baseAddress, count: count, stride: Self.stride, offset: Self.prefixLength,
          length: Self.keyLength))
    }
  }
}

/// Keys and their values, all values of one length.
package struct RowList: Sendable {
  package var keys = KeyList()
  package private(set) var values: [UInt8] = []
  package let valueLength: Int

  package init(valueLength: Int) {
    self.valueLength = valueLength
  }

  package mutating func removeAll() {
    keys.removeAll()
    values.removeAll(keepingCapacity: true)
  }

  package mutating func append(_ number: Int, version: Int = 0, of dataset: Dataset) {
    keys.append(dataset.key(number))
    dataset.appendValue(number, version: version, to: &values)
  }

  /// Gives every row another key, and keeps the values.
  package mutating func replaceKeys(_ key: (Int) -> (UInt64, UInt64)) {
    let count = keys.count
    keys.removeAll()
    for index in 0..<count { keys.append(key(index)) }
  }

  /// The expected checksum of reading these rows back.
  package var checksum: UInt64 {
    withRows { rows in
      var checksum = Checksum()
      for index in 0..<rows.keys.count { checksum.add(rows.value(index), rows.value_length) }
      return checksum.value
    }
  }

  package func withRows<R>(_ body: (peer_rows) throws -> R) rethrows -> R {
    try keys.withKeys { keys in
      try values.withUnsafeBufferPointer { buffer in
        try body(
          peer_rows(keys: keys, values: buffer.baseAddress, value_length: valueLength))
      }
    }
  }
}

extension peer_keys {
  @inline(__always)
  package subscript(index: Int) -> UnsafeRawPointer {
    UnsafeRawPointer(bytes) + (index * stride + offset)
  }
}

extension peer_rows {
  @inline(__always)
  package func value(_ index: Int) -> UnsafeRawPointer {
    UnsafeRawPointer(values) + index * value_length
  }
}

/// The order in which documents arrive, relative to their keys.
package enum KeyOrder: String, CaseIterable, Codable, Sendable {
  /// Anywhere among the others.
  case random
  /// Each after all others, as with numbers and times.
  case sequential
  /// Each at the end of one of a thousand groups, as with the messages of many conversations.
  case clustered
}

/// The documents of one benchmark, by number.
package struct Dataset: Sendable {
  package let valueLength: Int
  package let keyOrder: KeyOrder

  package init(valueLength: Int, keyOrder: KeyOrder) {
    self.valueLength = valueLength
    self.keyOrder = keyOrder
  }

  package func key(_ number: Int) -> (UInt64, UInt64) {
    switch keyOrder {
    case .random:
      var random = SplitMix(state: UInt64(number) &* 0xD1B5_4A32_D192_ED03)
      return (random.next(), random.next())
    case .sequential:
      var random = SplitMix(state: UInt64(number))
      return (UInt64(number), random.next())
    case .clustered:
      var group = SplitMix(state: UInt64(number % 1_000))
      return (group.next(), UInt64(number))
    }
  }

  /// Appends the value of document `number` after it was overwritten `version` times.
  package func appendValue(_ number: Int, version: Int = 0, to bytes: inout [UInt8]) {
    let textLength = valueLength / 2
    let randomLength = valueLength - textLength
    var random = SplitMix(state: ~UInt64(number) ^ UInt64(version) << 48)
    for _ in 0..<randomLength / 8 {
      withUnsafeBytes(of: random.next()) { bytes.append(contentsOf: $0) }
    }
    withUnsafeBytes(of: random.next()) { bytes.append(contentsOf: $0.prefix(randomLength % 8)) }
    var left = textLength
    while left > 0 {
      let part = Self.text[(number & 63)...].prefix(left)
      bytes.append(contentsOf: part)
      left -= part.count
    }
  }

  private static let text = [UInt8](
    """
    {"status":"delivered","currency":"EUR","country":"Germany","city":"Hannover","items":\
    [{"name":"coffee grinder","quantity":1,"price":34.90},\
    {"name":"coffee filter","quantity":4,"price":3.20}],\
    "notes":"please ring twice and leave the parcel with the neighbour","rating":5,\
    "tags":["kitchen","coffee","gift"]}
    """.utf8)
}

/// A small random source with the same numbers everywhere.
package struct SplitMix: RandomNumberGenerator, Sendable {
  private var state: UInt64

  package init(state: UInt64) {
    self.state = state
  }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
