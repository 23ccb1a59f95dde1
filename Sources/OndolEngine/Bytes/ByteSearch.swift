// Bytes within bytes.

internal import OndolPlatform

extension RawSpan {
  /// Whether `part` is in it.
  ///
  /// - Complexity: O(n), and the bytes of `part` for each place where its first byte is.
  package func contains(_ part: RawSpan) -> Bool {
    guard part.byteCount > 0 else { return true }
    let first = Int32(part.byte(at: 0))
    var rest = self
    while rest.byteCount >= part.byteCount {
      let places = rest.byteCount - part.byteCount + 1
      let found: Int? = unsafe rest.withUnsafeBytes { bytes in
        // Safe: there are so many bytes, and one at least.
        guard let start = bytes.baseAddress, let place = unsafe memchr(start, first, places) else {
          return nil
        }
        return unsafe UnsafeRawPointer(place) - start
      }
      guard let place = found else { return false }
      rest = rest.extracting(droppingFirst: place)
      if rest.starts(with: part) { return true }
      rest = rest.extracting(droppingFirst: 1)
    }
    return false
  }
}
