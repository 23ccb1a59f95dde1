// The one search by halves for everything that is sorted and has places.

extension RandomAccessCollection where Index == Int {
  /// The place of the first element that `isBefore` does not hold of, or the end; it holds of none
  /// behind that.
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
