// Keys for children in the order of their creation: eight characters of time and twelve random
// ones, in an alphabet that has the order of its bytes. For a second key in the same millisecond,
// or while the clock stands still or goes back, the random part is the previous one plus one. So
// every key comes after all earlier ones.

internal import OndolEngine

/// Makes the keys of `childByAutoId`.
final class PushIDs: Sendable {
  private struct State {
    /// Milliseconds since 1970.
    var time: Int64 = -1
    /// Twelve digits in base 64, the highest first.
    var chance: [UInt8] = []
  }

  private static let alphabet = Array(
    "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz".utf8)
  private static let chanceLength = 12
  private static let timeLength = 8

  private let state = Guarded(State())

  /// The next key.
  ///
  /// - Parameters:
  ///   - now: microseconds since 1970.
  ///   - random: a number from 0 on, below the one given.
  func next(now: Int64, random: (Int64) -> Int64) -> String {
    let fresh = (0..<Self.chanceLength).map { _ in UInt8(truncatingIfNeeded: random(64) & 63) }
    let (time, chance) = state.withLock { state in
      let milliseconds = max(0, now / 1_000)
      if milliseconds > state.time {
        state.time = milliseconds
        state.chance = fresh
      } else if !Self.increment(&state.chance) {
        // All keys of this millisecond are used: the next millisecond is borrowed.
        state.time += 1
        state.chance = fresh
      }
      return (state.time, state.chance)
    }
    var key: [UInt8] = []
    for index in 0..<Self.timeLength {
      key.append(Self.alphabet[Int(time >> Int64(6 * (Self.timeLength - 1 - index))) & 63])
    }
    key += chance.map { Self.alphabet[Int($0)] }
    return String(decoding: key, as: UTF8.self)
  }

  /// Adds one; false when there is no greater number with as many digits.
  private static func increment(_ digits: inout [UInt8]) -> Bool {
    for index in digits.indices.reversed() {
      if digits[index] < 63 {
        digits[index] += 1
        return true
      }
      digits[index] = 0
    }
    return false
  }
}
