// Statistics for people: how many commits there were and how long they took. Every sixteenth commit
// is timed, so that the others cost one addition.

internal import OndolEngine
internal import Synchronization

/// Counts commits, and times some.
final class CommitTimes: Sendable {
  /// One in this many is timed.
  private static let sampled = 16

  private let begun = Atomic(0)
  private let done = Atomic(0)
  /// By the power of two of their nanoseconds.
  private let buckets = Guarded([Int](repeating: 0, count: 64))

  /// Begins a commit: returns its start in microseconds if it is one that is timed.
  func begin(_ now: () -> Int64) -> Int64? {
    begun.wrappingAdd(1, ordering: .relaxed).oldValue % Self.sampled == 0 ? now() : nil
  }

  /// Ends a commit.
  func end(_ start: Int64?, _ now: () -> Int64) {
    done.wrappingAdd(1, ordering: .relaxed)
    guard let start else { return }
    // A clock that was set back gives no measurement.
    let nanoseconds = max(1, (now() - start) * 1_000)
    let bucket = 63 - nanoseconds.leadingZeroBitCount
    buckets.withLock { $0[bucket] += 1 }
  }

  var count: Int { done.load(ordering: .relaxed) }
  var latency: [Int] { buckets.withLock { $0 } }
}
