// Groups of keyspaces that have a key of their own, and which there are. Their numbers tell: those
// of the upper half are keyed, so that one bit of a row's key says under which key it is sealed,
// and nothing has to be looked up. The engine gives the numbers out, each once, so that a key is
// never that of anything else.

/// Groups of keyspaces with a key of their own.
package enum KeyedGroups {
  /// Their numbers, which are those of keyspaces without the low twelve bits.
  package static let numbers: Range<UInt32> = (1 << 19)..<(1 << 20)
  /// So many there can be at once. Each costs a flush one more segment.
  package static let mostAtOnce = 32

  /// The keyed group that a row is in, by its key.
  @inline(__always)
  static func group(of key: RawSpan) -> UInt32? {
    let group = UInt32(keyHead(key) >> 44)
    return group >= numbers.lowerBound ? group : nil
  }
}

/// The keyed groups of a database, as its manifest has them.
struct GroupList: Sendable, Equatable {
  /// All smaller numbers have been given out.
  var next = KeyedGroups.numbers.lowerBound
  /// Those there are, ascending.
  var live: [UInt32] = []
  /// The least generation of `KEYS` that has the keys of all of them; 0 where any will do, as in a
  /// copy without the file.
  var generation: UInt64 = 0

  /// Whether there has ever been one.
  var isUsed: Bool { next > KeyedGroups.numbers.lowerBound }

  /// Whatever groups either has.
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

  /// - Parameter generation: what the list begins with, where it names one.
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
