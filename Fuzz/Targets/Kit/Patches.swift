// Damage. A file's checksums would stop a fuzzer at the door, so it damages the file first and has
// the checksums made right again: what is behind the door must hold against that as well.

extension [UInt8] {
  /// Overwrites some bytes; which, and with what, `input` says.
  package mutating func damage(_ input: inout FuzzInput) {
    guard !isEmpty, count < 1 << 16 else { return }
    for _ in 0..<input.below(12) {
      let place = input.below(count)
      switch input.below(4) {
      case 0: self[place] ^= 1 << UInt8(input.below(8))
      case 1: self[place] = input.byte()
      case 2: overwrite(place, input.edge(), count: 4)
      default: overwrite(place, input.edge(), count: 8)
      }
    }
    switch input.below(8) {
    case 1: removeLast(input.below(count))
    case 2: self += input.take(input.below(64))
    default: break
    }
  }

  private mutating func overwrite(_ place: Int, _ word: UInt64, count width: Int) {
    for index in 0..<Swift.min(width, count - place) {
      self[place + index] = UInt8(truncatingIfNeeded: word >> UInt64(8 * index))
    }
  }
}
