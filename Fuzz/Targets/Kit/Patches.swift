// Damage. A file's checksums would stop a fuzzer at once, so the target damages the file and then
// corrects the checksums. The code after the checks must withstand that damage as well.

extension [UInt8] {
  /// Overwrites some bytes. `input` decides which, and with what.
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
