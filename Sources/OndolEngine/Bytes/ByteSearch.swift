// Finds bytes within bytes, and what two have in common. Most places are passed over by looking for
// the first byte alone, in a loop that the compiler makes fast because nothing else is in it.

extension RawSpan {
  /// Whether `part` is in it.
  ///
  /// - Complexity: O(n), and the bytes of `part` for each place where its first byte is.
  package func contains(_ part: RawSpan) -> Bool {
    guard part.byteCount > 0 else { return true }
    let first = part.byte(at: 0)
    var start = 0
    while start + part.byteCount <= byteCount {
      let places = extracting(start..<(byteCount - part.byteCount + 1))
      guard let place = places.firstPlace(of: first) else { return false }
      start += place
      if extracting(droppingFirst: start).starts(with: part) { return true }
      start += 1
    }
    return false
  }

  /// How many bytes at the front are the same in both, counting no further than `limit`.
  func sharedPrefix(with other: RawSpan, atMost limit: Int) -> Int {
    let end = min(limit, min(byteCount, other.byteCount))
    var index = 0
    while index < end, byte(at: index) == other.byte(at: index) { index += 1 }
    return index
  }

  private func firstPlace(of byte: UInt8) -> Int? {
    unsafe withUnsafeBytes { unsafe $0.firstIndex(of: byte) }
  }
}
