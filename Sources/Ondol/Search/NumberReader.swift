// Reads numbers from an array, as `ByteReader` does from borrowed bytes. The loops over postings
// use it, because a call into the engine's module for each number would cost more than the number.

internal import OndolEngine

/// A cursor over an array of bytes. Every number must be in its shortest form.
struct NumberReader {
  let bytes: [UInt8]
  private(set) var offset: Int

  init(_ bytes: [UInt8], at offset: Int = 0) {
    self.bytes = bytes
    self.offset = offset
  }

  var remaining: Int { bytes.count - offset }
  var isAtEnd: Bool { offset >= bytes.count }

  /// A number of at most `limit`.
  @inline(__always)
  mutating func number(atMost limit: Int) throws(MalformedBytes) -> Int {
    guard offset < bytes.count else { throw tooShort() }
    let byte = bytes[offset]
    guard byte >= 0x80 || Int(byte) > limit else {
      offset += 1
      return Int(byte)
    }
    return try longNumber(atMost: limit)
  }

  private mutating func longNumber(atMost limit: Int) throws(MalformedBytes) -> Int {
    let start = offset
    var value: UInt64 = 0
    var shift: UInt64 = 0
    while true {
      guard offset < bytes.count, shift < 63 else { throw tooShort() }
      let byte = bytes[offset]
      offset += 1
      value |= UInt64(byte & 0x7f) << shift
      if byte < 0x80 {
        guard byte != 0 || shift == 0 else {
          throw MalformedBytes(at: start, "a number longer than needed")
        }
        break
      }
      shift += 7
    }
    guard value <= UInt64(limit) else {
      throw MalformedBytes(at: start, "\(value) where at most \(limit) is possible")
    }
    return Int(value)
  }

  private func tooShort() -> MalformedBytes {
    MalformedBytes(at: offset, "ends within a number")
  }

  /// The positions of the next `count` bytes, which it skips.
  @inline(__always)
  mutating func take(_ count: Int) throws(MalformedBytes) -> Range<Int> {
    guard count >= 0, count <= remaining else {
      throw MalformedBytes(at: offset, "\(count) bytes wanted, \(remaining) left")
    }
    let start = offset
    offset += count
    return start..<offset
  }

  /// Skips that many numbers without reading them.
  @inline(__always)
  mutating func skip(_ count: Int) throws(MalformedBytes) {
    var left = count
    while left > 0 {
      guard offset < bytes.count else { throw tooShort() }
      if bytes[offset] < 0x80 { left -= 1 }
      offset += 1
    }
  }
}

extension [UInt8] {
  /// The first eight bytes of a part as a number with the same order.
  @inline(__always)
  func head(of range: Range<Int>) -> UInt64 {
    var head: UInt64 = 0
    let end = Swift.min(range.upperBound, range.lowerBound + 8)
    for place in range.lowerBound..<end { head = head << 8 | UInt64(self[place]) }
    let count = end - range.lowerBound
    return count < 8 ? head << UInt64(8 * (8 - count)) : head
  }

  /// Bytewise order of two parts.
  func compare(_ left: Range<Int>, _ right: Range<Int>) -> Int {
    let whole = bytes
    return whole.extracting(left).compare(whole.extracting(right))
  }
}
