// How far numbers go that are read from files. Anybody can write a number whose checksum fits, and
// what is added to one must not overflow: so numbers are compared with these where they are
// decoded.

/// Bounds of numbers in files.
enum Bounds {
  /// Numbers that only go up begin here and are added to ever after, so what they begin with must
  /// leave room. No database lives long enough to come near.
  static let greatestCounter: UInt64 = 1 << 62

  /// No file has more bytes, rows or references than this: sums over any number of files that a
  /// manifest can name stay far from overflowing.
  static let largestAmount: UInt64 = 1 << 40
}
