// A number that several threads of a test change.

import Synchronization

final class Tally: Sendable {
  private let number: Atomic<Int>

  init(_ number: Int = 0) { self.number = Atomic(number) }

  var value: Int { number.load(ordering: .relaxed) }
  func increase() { number.add(1, ordering: .relaxed) }
  func set(_ value: Int) { number.store(value, ordering: .relaxed) }
}
