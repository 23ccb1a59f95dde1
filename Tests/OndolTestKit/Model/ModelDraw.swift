// The writes and reads of a model trial. Keys have the shapes that have broken stores before:
// prefixes of each other, nothing except a keyspace, zeros and high bytes at the end, long ones
// that agree almost to the end, and the same ones again and again.

internal import OndolEngine

/// A change in the form of a batch: the stamps' places are not filled in yet.
struct DrawnChange: Sendable {
  var key: [UInt8]
  /// Nil deletes.
  var value: [UInt8]?
  var keyStamp: (offset: Int, form: StampForm)?
  var valueStamp: (offset: Int, form: StampForm)?

  /// The change as the commit made it.
  func stamped(_ receipt: CommitReceipt) -> Change {
    Change(
      key: Self.stamp(key, keyStamp, receipt),
      value: value.map { Self.stamp($0, valueStamp, receipt) })
  }

  private static func stamp(
    _ bytes: [UInt8], _ stamp: (offset: Int, form: StampForm)?, _ receipt: CommitReceipt
  ) -> [UInt8] {
    guard let stamp else { return bytes }
    let number: UInt64 =
      switch stamp.form {
      case .sequence: receipt.sequence.rawValue.byteSwapped
      case .time: UInt64(bitPattern: receipt.time).byteSwapped
      case .orderedTime: UInt64(bitPattern: receipt.time) ^ (1 << 63)
      case .descendingTime: ~(UInt64(bitPattern: receipt.time) ^ (1 << 63))
      }
    var bytes = bytes
    for index in 0..<8 {
      bytes[stamp.offset + index] = UInt8(truncatingIfNeeded: number >> (56 - 8 * index))
    }
    return bytes
  }
}

/// Draws changes, keys and bounds.
struct ModelDraw: Sendable {
  /// The number of groups of keyspaces, with three in each.
  static let groups: UInt32 = 6

  var random: SeededRandom
  /// Keys written before, to be used again.
  var known: [[UInt8]] = []

  mutating func durability() -> Durability {
    random.pick([.memory, .memory, .process, .process, .process, .power])
  }

  /// The changes of one commit: mostly few, sometimes many or none.
  mutating func changes() -> [DrawnChange] {
    let count =
      switch random.below(40) {
      case 0: 0
      case 1...4: 10 + random.below(50)
      default: 1 + random.below(6)
      }
    var changes: [DrawnChange] = []
    for _ in 0..<count {
      var change = change()
      // The same key twice in a commit: the last one counts.
      if let last = changes.last, random.chance(1, in: 16) {
        change.key = last.key
        change.keyStamp = last.keyStamp
      }
      changes.append(change)
    }
    return changes
  }

  private mutating func change() -> DrawnChange {
    if random.chance(1, in: 24) { return stampedChange() }
    let key = random.chance(1, in: 2) ? metKey() : newKey()
    return DrawnChange(key: key, value: random.chance(3, in: 10) ? nil : value())
  }

  private mutating func stampedChange() -> DrawnChange {
    let forms: [StampForm] = [.sequence, .time, .orderedTime, .descendingTime]
    var change = DrawnChange(key: keyspace(), value: value() + random.bytes(8))
    change.valueStamp = (random.below((change.value ?? []).count - 7), random.pick(forms))
    if random.chance(1, in: 2) {
      change.keyStamp = (change.key.count + 1, random.pick(forms))
      change.key += [0x73] + random.bytes(8 + random.below(3))
    }
    return change
  }

  // MARK: - Keys

  /// A key that was written before, if there is one.
  mutating func metKey() -> [UInt8] {
    known.isEmpty ? newKey() : random.pick(known)
  }

  mutating func newKey() -> [UInt8] {
    keyspace() + suffix()
  }

  /// A key near one written before, or anywhere, for searches.
  mutating func probe(group: UInt32) -> [UInt8] {
    var key = random.chance(3, in: 4) ? metKey() : newKey()
    switch random.below(5) {
    case 0: key.append(random.pick([0, 0x61, 0xFF]))
    case 1 where key.count > 4: key.removeLast()
    case 2 where key.count > 4: key[key.count - 1] &+= random.pick([1, 255])
    default: break
    }
    return Self.groupStart(group).prefix(2) + [Self.groupStart(group)[2] | key[2] & 0xF]
      + key.dropFirst(3)
  }

  private mutating func keyspace() -> [UInt8] {
    var key: [UInt8] = []
    let group = UInt32(random.below(Int(Self.groups)))
    key.appendBigEndian(group << 12 | random.pick([0, 1, 0xFFF] as [UInt32]))
    return key
  }

  private mutating func suffix() -> [UInt8] {
    switch random.below(12) {
    case 0: []
    case 1...5: [0x6B] + Array("\(random.below(40))".utf8)
    case 6...7: [UInt8](repeating: 0x61, count: random.below(12))
    case 8: [UInt8](repeating: random.pick([0, 0xFF]), count: 1 + random.below(9))
    case 9: [UInt8](repeating: 0x70, count: 100 + random.below(400)) + random.bytes(2)
    default: random.bytes(random.below(20))
    }
  }

  /// The least key of a group of keyspaces, which all belong to one shard.
  static func groupStart(_ group: UInt32) -> [UInt8] {
    var key: [UInt8] = []
    key.appendBigEndian(group << 12)
    return key
  }

  static func shard(of key: [UInt8], count: Int) -> Int {
    let keyspace = key.prefix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    return Int(keyspace >> 12) % count
  }

  // MARK: - Values

  /// From nothing to several kibibytes, sometimes many; half of them are compressible.
  private mutating func value() -> [UInt8] {
    let count =
      switch random.below(60) {
      case 0: (20 << 10) + random.below(80 << 10)
      case 1...4: 1 + random.below(6 << 10)
      case 5...9: 0
      default: random.below(80)
      }
    if random.chance(1, in: 2) {
      return [UInt8](repeating: UInt8(random.below(256)), count: count)
    }
    let tile = random.bytes(min(count, 509))
    var value: [UInt8] = []
    value.reserveCapacity(count + tile.count)
    while value.count < count { value += tile }
    value.removeLast(value.count - count)
    return value
  }
}
