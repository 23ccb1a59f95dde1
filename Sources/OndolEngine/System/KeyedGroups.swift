// Groups of keyspaces with a key of their own, and the list of existing groups. The upper half of
// the numbers belongs to keyed groups. So one bit of a row's key tells which key encrypts it,
// without a lookup. The engine hands out each number only once, so that a key is never used for
// anything else.

/// Groups of keyspaces with a key of their own.
package enum KeyedGroups {
  /// Their numbers, which are the numbers of keyspaces without the low twelve bits.
  package static let numbers: Range<UInt32> = (1 << 19)..<(1 << 20)
  /// The most groups at one time. Each costs a flush one more segment.
  package static let mostAtOnce = 32

  /// The keyed group of a row, derived from its key.
  @inline(__always)
  static func group(of key: RawSpan) -> UInt32? {
    let group = UInt32(keyHead(key) >> 44)
    return group >= numbers.lowerBound ? group : nil
  }
}

/// The keyed groups of a database, as listed in its manifest.
struct GroupList: Sendable, Equatable {
  /// All smaller numbers have been handed out.
  var next = KeyedGroups.numbers.lowerBound
  /// The existing groups, in ascending order.
  var live: [UInt32] = []
  /// The smallest generation of `KEYS` that has the keys of all of them. It is 0 if any is
  /// acceptable, as in a copy without the file.
  var generation: UInt64 = 0

  /// Whether a group has ever existed.
  var isUsed: Bool { next > KeyedGroups.numbers.lowerBound }

  /// The groups of both lists.
  func union(_ other: GroupList?) -> GroupList {
    guard let other else { return self }
    var list = self
    list.next = max(next, other.next)
    list.live = Set(live + other.live).sorted()
    list.generation = max(generation, other.generation)
    return list
  }

  func encode(into bytes: inout [UInt8]) {
    bytes.appendVarint(UInt64(next))
    for group in live { bytes.appendVarint(UInt64(group)) }
  }

  init() {}

  /// - Parameter generation: the start of the list, if it records a generation.
  init(_ reader: inout ByteReader, generation: UInt64 = 0) throws(MalformedBytes) {
    guard generation <= Bounds.greatestCounter else {
      throw MalformedBytes(at: 0, "a generation of keys that nothing can have come to")
    }
    self.generation = generation
    next = UInt32(try reader.count(atMost: Int(KeyedGroups.numbers.upperBound)))
    while !reader.isAtEnd {
      let start = reader.offset
      let group = UInt32(try reader.count(atMost: Int(UInt32.max)))
      guard KeyedGroups.numbers.contains(group), group < next, live.last ?? 0 < group,
        live.count < KeyedGroups.mostAtOnce
      else { throw MalformedBytes(at: start, "a group \(group) that there cannot be") }
      live.append(group)
    }
    guard next > KeyedGroups.numbers.lowerBound else {
      throw MalformedBytes(at: 0, "groups before the first")
    }
  }
}
