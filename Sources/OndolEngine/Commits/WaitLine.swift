// Who waits for the line of commits to come to some place. A plain value: whoever is taken out is
// resumed by the sequencer, once its lock is free.

/// Those who wait, each for a position.
struct WaitLine<Position: Comparable & Sendable, Waiter: Sendable>: Sendable {
  private var waiting: [(position: Position, waiter: Waiter)] = []

  /// The least position that somebody waits for.
  var earliest: Position? {
    waiting.isEmpty ? nil : waiting.lazy.map(\.position).min()
  }

  mutating func add(_ waiter: Waiter, for position: Position) {
    waiting.append((position, waiter))
  }

  /// Takes out those who waited for a position up to this one, in the order in which they came.
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
