// The range of numbers that are read from files. Anyone can write a number with a valid checksum,
// and arithmetic with it must not overflow. So numbers are compared with these bounds when they are
// decoded.

/// Bounds of numbers in files.
enum Bounds {
  /// The largest initial value of a counter that only increases. Code adds to such counters
  /// forever, so the initial value must leave room. No database lives long enough to come near the
  /// end.
  static let greatestCounter: UInt64 = 1 << 62

  /// No file has more bytes, rows or references than this. Sums over as many files as a manifest
  /// can list stay far from overflowing.
  static let largestAmount: UInt64 = 1 << 40
}
