// Finds bytes within bytes, and the common prefix of two byte sequences. The search skips most
// positions by looking for the first byte alone, in a loop that the compiler makes fast because it
// contains nothing else.

extension RawSpan {
  /// Whether the bytes contain `part`.
  ///
  /// - Complexity: O(n), plus the bytes of `part` for each position of its first byte.
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

  /// The length of the common prefix, counted up to `limit`.
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
