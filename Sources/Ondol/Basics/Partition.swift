// The binary search for all sorted collections.

extension RandomAccessCollection where Index == Int {
  /// The place of the first element for which `isBefore` is false, or the end. It must be false for
  /// all later elements.
  ///
  /// - Complexity: O(log count).
  @inline(__always)
  func partition(_ isBefore: (Element) -> Bool) -> Int {
    var (low, high) = (startIndex, endIndex)
    while low < high {
      let middle = low + (high - low) / 2
      if isBefore(self[middle]) { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
