// Rare values, drawn for random documents and conditions beside the common ones: decimals, some of
// which equal integers or doubles, and arrays in arrays. There are few of them, so that they meet
// each other and the neighbouring numbers.

package import Ondol

extension SeededRandom {
  /// Decimals around the small integers and halves that other values are.
  package mutating func decimal() -> Value {
    let texts = ["0.1", "0.5", "1", "1.25", "2", "2.75", "-0.5", "3.1", "1e-20"]
    // Each text is a valid decimal.
    return DecimalValue(pick(texts)).map { .decimal($0) } ?? .null
  }

  /// An array of arrays, some of which are empty or hold a decimal.
  package mutating func grid() -> Value {
    .array(
      (0..<(1 + below(2))).map { _ in
        .array((0..<below(3)).map { _ in chance(1, in: 4) ? decimal() : .integer(Int64(below(3))) })
      })
  }

  /// A number: in one of eight cases a decimal, else an integer from 0 on.
  package mutating func number(below limit: Int) -> Value {
    chance(1, in: 8) ? decimal() : .integer(Int64(below(limit)))
  }

  /// An occasional element of an array of small integers: an array, or a decimal.
  package mutating func element(below limit: Int) -> Value {
    switch below(12) {
    case 0: grid()
    case 1: decimal()
    default: .integer(Int64(below(limit)))
    }
  }
}
