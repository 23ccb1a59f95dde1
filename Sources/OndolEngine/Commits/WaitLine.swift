// Waiters for the order of commits to reach some position. A plain value: the sequencer resumes the
// removed ones once its lock is free.

/// Waiters, each for a position.
struct WaitLine<Position: Comparable & Sendable, Waiter: Sendable>: Sendable {
  private var waiting: [(position: Position, waiter: Waiter)] = []

  /// The least position with a waiter.
  var earliest: Position? {
    waiting.isEmpty ? nil : waiting.lazy.map(\.position).min()
  }

  mutating func add(_ waiter: Waiter, for position: Position) {
    waiting.append((position, waiter))
  }

  /// Removes and returns the waiters for positions up to this one, in the order in which they came.
  mutating func take(through position: Position) -> [Waiter] {
    if waiting.isEmpty { return [] }
    var reached: [Waiter] = []
    waiting.removeAll { one in
      guard one.position <= position else { return false }
      reached.append(one.waiter)
      return true
    }
    return reached
  }

  mutating func takeAll() -> [Waiter] {
    defer { waiting = [] }
    return waiting.map(\.waiter)
  }
}
