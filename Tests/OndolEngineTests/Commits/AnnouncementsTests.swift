// Announcements without an engine: each once, in order, and only of visible commits.

import OndolTestKit
import Testing

@testable import OndolEngine

@Suite struct AnnouncementsTests {
  private final class Note: Sendable {}

  private func announcement(_ sequence: UInt64) -> Announcement {
    Announcement(sequence: SequenceNumber(rawValue: sequence), time: 0, note: Note())
  }

  @Test(arguments: Seeds.first(10))
  func `Each is handed over once, in order, when it is visible`(seed: UInt64) {
    var random = OndolTestKit.SeededRandom(seed: seed)
    var announcements = Announcements()
    announcements.add(announcement(1))
    announcements.follower = { _ in }
    // Commits before the first follower are announced to nobody.
    var (placed, published): (UInt64, UInt64) = (1, 1)
    var told: [UInt64] = []
    var isDelivering = false
    for _ in 0..<300 {
      if random.below(2) == 0 {
        placed += 1
        announcements.add(announcement(placed))
      }
      if random.below(3) == 0 { published += UInt64(random.below(Int(placed - published) + 1)) }
      guard random.below(2) == 0 else { continue }
      // A caller that finds another one delivering gets nothing.
      if isDelivering {
        let other = announcements.take(
          through: SequenceNumber(rawValue: published), goingOn: false)
        expect(other?.announcements.count == nil, "SEED=\(seed)")
      }
      let next = announcements.take(
        through: SequenceNumber(rawValue: published), goingOn: isDelivering)
      isDelivering = next != nil
      told += next?.announcements.map(\.sequence.rawValue) ?? []
      #expect(told == Array(stride(from: 2, through: published, by: 1)), "SEED=\(seed)")
      let isDone = announcements.isDone(through: SequenceNumber(rawValue: published))
      // Announcements under way are not done yet.
      #expect(isDone == !isDelivering, "SEED=\(seed)")
    }
  }
}
