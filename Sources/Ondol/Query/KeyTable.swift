// Keys as bytes, side by side, each with a place from 0 on: what groups are found by. A key costs
// its bytes and some 30 more, and no allocation of its own.

internal import OndolEngine

/// Different byte keys, in the order in which they were added.
struct KeyTable: Sendable {
  private var bytes: [UInt8] = []
  /// Where each key ends in `bytes`.
  private var ends: [Int] = []
  /// An open hash table of at most three quarters: half of a key's hash above its place plus 1, and
  /// 0 where there is none. Its length is a power of two.
  private var slots: [UInt64] = []
  /// Documents choose the keys, so the hashes differ from process to process.
  private let seed = UInt64(bitPattern: Int64(Hasher().finalize()))

  /// The number of keys.
  var count: Int { ends.count }

  /// Bytes of memory for a key of that many bytes, on average.
  static func memoryBytes(_ length: Int) -> Int { length + 32 }

  /// A key.
  subscript(place: Int) -> RawSpan {
    @_lifetime(borrow self)
    get { bytes.bytes.extracting((place == 0 ? 0 : ends[place - 1])..<ends[place]) }
  }

  /// The place of a key; nil when it is not there.
  @inline(__always)
  func place(of key: RawSpan) -> Int? {
    guard !slots.isEmpty else { return nil }
    let hash = hash(key)
    var slot = Int(hash) & (slots.count - 1)
    while slots[slot] != 0 {
      if slots[slot] >> 32 == hash {
        let place = Int(slots[slot] & 0xffff_ffff) - 1
        if self[place].compare(key) == 0 { return place }
      }
      slot = (slot + 1) & (slots.count - 1)
    }
    return nil
  }

  /// Adds a key that is not there yet; returns its place.
  @inline(never)
  mutating func add(_ key: [UInt8]) -> Int {
    precondition(count < Int(UInt32.max) - 1, "keys are numbered by 32 bits")
    if 4 * (count + 1) > 3 * slots.count {
      var larger = [UInt64](repeating: 0, count: max(16, 2 * slots.count))
      for slot in slots where slot != 0 { Self.put(slot, into: &larger) }
      slots = larger
    }
    bytes += key
    ends.append(bytes.count)
    Self.put(hash(key.bytes) << 32 | UInt64(count), into: &slots)
    return count - 1
  }

  /// Half of the key's hash.
  @inline(__always)
  private func hash(_ key: RawSpan) -> UInt64 { KeyHash.hash(key, seed: seed) >> 32 }

  private static func put(_ slot: UInt64, into slots: inout [UInt64]) {
    var place = Int(slot >> 32) & (slots.count - 1)
    while slots[place] != 0 { place = (place + 1) & (slots.count - 1) }
    slots[place] = slot
  }
}
