// Slows writers down before they would have to stop. When memtables fill faster than they are
// flushed, or flushed runs accumulate faster than they are merged, each commit waits in proportion
// to its size. The wait grows as the limit approaches. Somewhere before the limit, writers are as
// slow as the upkeep, so they see a steady pace instead of a stall. The delay doubles in equal
// steps, so that one run more or less changes the pace by the same ratio at any point.

internal import Synchronization

/// How far a shard's upkeep has fallen behind.
struct UpkeepDebt: Sendable, Equatable {
  /// Full memtables that wait for their flush, and how full the active one is, from 0 to 1.
  var sealedMemtables = 0
  var activeFill = 0.0
  var flushedRuns = 0
  /// Bytes above the lowest run in excess of the lowest run's own size.
  var excessBytes: UInt64 = 0
}

/// The pure part: converts debt to delay.
struct WriteDelay: Sendable {
  /// How often the delay doubles on the way to the limit. It starts at one nanosecond per byte.
  private static let doublings = 9.0
  private static let mostNanoseconds = 1_000.0
  /// Beyond the limit, the delay continues to grow up to this fullness.
  private static let mostFullness = 1.25

  var sealedLimit: Int
  var runLimit: Int
  var baseSize: UInt64

  init(_ options: EngineOptions) {
    sealedLimit = options.sealedMemtables
    runLimit = options.runLimit
    baseSize = CompactionPolicy(options).baseSize
  }

  /// How near the limit is. At 0 no commit waits; at 1 the debt has its intended maximum.
  ///
  /// Memtables count once half of those that a shard may have are full. Flushed runs count from
  /// twice to four times the number at which they are merged. Bytes that should have sunk count
  /// from sixteen to sixty-four times the size up to which they need not sink.
  func fullness(_ debt: UpkeepDebt) -> Double {
    let filled = Double(debt.sealedMemtables) + debt.activeFill
    let memtables = 2 * filled / Double(sealedLimit + 1) - 1
    let runs = Double(debt.flushedRuns - 2 * runLimit) / Double(2 * runLimit)
    let base = Double(baseSize)
    let levels = (Double(debt.excessBytes) - 16 * base) / (48 * base)
    return min(Self.mostFullness, max(0, memtables, runs, levels))
  }

  /// Nanoseconds of delay for each byte of a commit.
  func nanosecondsPerByte(_ fullness: Double) -> Double {
    guard fullness > 0 else { return 0 }
    let steps = fullness * Self.doublings
    let whole = steps.rounded(.down)
    // Interpolates linearly between two powers.
    let delay = Double(sign: .plus, exponent: Int(whole), significand: 1 + (steps - whole))
    return min(Self.mostNanoseconds, delay)
  }
}

/// The current pressure. Without pressure, a commit spends one atomic load on it.
///
/// All commits share one leaky bucket. Each adds the delay for its own bytes to the delays added
/// before, and waits until its part has passed. So commits proceed at the pace of the upkeep, one
/// after the other, and each waits only for its own bytes.
final class WritePressure: Sendable {
  /// Shorter waits are left to later commits, because timers are not that precise.
  private static let leastSleep: Int64 = 1_000_000
  /// The longest wait, regardless of the debt. The rest is forgiven.
  private static let longestSleep: Int64 = 200_000_000

  private let delay: WriteDelay
  private let felt = Atomic(false)
  /// Each shard's debt without its memtables.
  private let debts: Guarded<[UpkeepDebt]>
  /// When the part of the last commit has passed, in nanoseconds since 1970.
  private let isOver = Atomic<Int64>(0)

  init(_ options: EngineOptions, shards: Int) {
    delay = WriteDelay(options)
    debts = Guarded(Array(repeating: UpkeepDebt(), count: shards))
  }

  /// Whether commits may have to wait.
  var isFelt: Bool { felt.load(ordering: .relaxed) }

  /// Records a newly installed view. `changed` is the shard whose runs have changed.
  func update(_ view: View, changed: Int? = nil) {
    let isFelt = debts.withLock { debts in
      if let changed {
        let state = view.shards[changed].state
        debts[changed].flushedRuns = state.levelZero.count
        debts[changed].excessBytes = state.excessBytes
      }
      return zip(view.shards, debts).contains { shard, debt in
        var debt = debt
        // The active memtable fills without a change of the view.
        (debt.sealedMemtables, debt.activeFill) = (shard.sealed.count, 1)
        return delay.fullness(debt) > 0
      }
    }
    felt.store(isFelt, ordering: .relaxed)
  }

  /// The microseconds that a commit of this size should wait now; usually 0.
  ///
  /// - Parameter now: microseconds since 1970.
  func wait(before bytes: Int, in view: View, at now: Int64) -> Int64 {
    let share = Double(bytes) * delay.nanosecondsPerByte(fullness(of: view))
    let now = now.multipliedReportingOverflow(by: 1_000).partialValue
    let latest = now &+ Self.longestSleep
    var last = isOver.load(ordering: .relaxed)
    while true {
      // A clock that was set back must not make commits wait for it.
      let start = min(max(last, now), latest)
      let end = min(start &+ Int64(min(share, Double(Self.longestSleep))), latest)
      let (isExchanged, current) = isOver.weakCompareExchange(
        expected: last, desired: end, ordering: .relaxed)
      if isExchanged { return end &- now < Self.leastSleep ? 0 : (end &- now) / 1_000 }
      last = current
    }
  }

  private func fullness(of view: View) -> Double {
    debts.withLock { debts in
      zip(view.shards, debts).map { shard, debt in
        var debt = debt
        debt.sealedMemtables = shard.sealed.count
        debt.activeFill = Double(shard.active.sizeBytes) / Double(max(1, shard.active.capacity))
        return delay.fullness(debt)
      }.max() ?? 0
    }
  }
}

extension ShardState {
  /// Bytes above the lowest run in excess of the lowest run's own size.
  fileprivate var excessBytes: UInt64 {
    guard let lowest = runs.last?.sizeBytes else { return 0 }
    let upper = sizeBytes - lowest
    return upper > lowest ? upper - lowest : 0
  }
}
