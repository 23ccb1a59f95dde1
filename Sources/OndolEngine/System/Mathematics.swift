// The C library's functions of real numbers, for computed values of queries. Here, because only
// this folder imports the platform.

internal import OndolPlatform

/// Functions of doubles that Swift's standard library lacks.
package enum Mathematics {
  /// e to the power of `x`.
  package static func exponential(_ x: Double) -> Double { exp(x) }

  /// The natural logarithm.
  package static func logarithm(_ x: Double) -> Double { log(x) }

  /// The logarithm to the base of ten, exact for powers of ten.
  package static func decimalLogarithm(_ x: Double) -> Double { log10(x) }

  /// `base` to the power of `exponent`.
  package static func power(_ base: Double, _ exponent: Double) -> Double { pow(base, exponent) }
}
