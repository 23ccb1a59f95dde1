// Keys for children that come in the order in which they were made: eight characters of time and
// twelve of chance, of an alphabet that is ordered as its bytes are. Of two that are made in one
// millisecond, or while the clock stands or goes back, the later one's chance is the earlier one's
// plus one, so every key is behind all before it.

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
        // As many keys as there are in one millisecond: the next one is borrowed.
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

  /// Adds one; false when there is no greater number of as many digits.
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
