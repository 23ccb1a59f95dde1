// Slows writers down before they would have to stop. When memtables fill faster than they are
// flushed, or flushed runs accumulate faster than they are merged, each commit waits in proportion
// to its size. Writers get a pace: a multiple of what upkeep was measured to achieve, which shrinks
// as the limit approaches. Half way to the limit, writers are exactly as fast as upkeep, so the
// debt settles there and every commit waits about equally long. A delay that is only guessed from
// the debt swings between too little and far too much.

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

/// Bytes for each microsecond, as measured lately. Earlier work counts less, the longer ago it was.
/// Before any work it is a cautious guess, which counts as much as a tenth of a second's work: the
/// first memtables of a load fill before one is flushed.
struct RecentRate: Sendable {
  /// Microseconds after which work counts for about a third.
  let window: Double
  private var bytes = 3_200_000.0
  private var microseconds = 100_000.0

  init(window: Int64) {
    self.window = Double(window)
  }

  /// Adds work that has just ended, and how long it took.
  mutating func add(bytes: Int, microseconds: Int64) {
    let time = Double(max(1, microseconds))
    let rest = Mathematics.exponential(-time / window)
    self.bytes = self.bytes * rest + Double(bytes)
    self.microseconds = self.microseconds * rest + time
  }

  var bytesPerMicrosecond: Double { bytes / microseconds }
}

/// What upkeep has achieved lately.
struct UpkeepRates: Sendable {
  /// Shorter than a memtable's share of a load, so that a device that slows down is noticed.
  private static let flushWindow: Int64 = 1_000_000
  /// Longer than most merges.
  private static let paceWindow: Int64 = 10_000_000
  /// A longer time between two flushes was not spent on a load.
  private static let longestGap: Int64 = 1_000_000

  /// How fast memtables are flushed while one waits for it, with the sync of the log before it.
  private(set) var flushing = RecentRate(window: flushWindow)
  /// How fast memtables arrive, averaged over merges that finished and merges that did not.
  private(set) var arriving = RecentRate(window: paceWindow)
  private var lastFlush: Int64?

  /// Records a flush of a memtable with this many bytes, which waited for it and others from
  /// `began`, in microseconds.
  mutating func note(flushed bytes: Int, from began: Int64, to ended: Int64) {
    let last = lastFlush ?? began
    lastFlush = ended
    flushing.add(bytes: bytes, microseconds: ended &- max(began, last))
    arriving.add(bytes: bytes, microseconds: min(ended &- last, Self.longestGap))
  }
}

/// The pure part: converts debt and rates to delay.
struct WriteDelay: Sendable {
  /// The delay that no debt exceeds: a pace of one megabyte a second.
  private static let mostNanoseconds = 1_000.0
  /// Writers outside this range of the pace would overtake upkeep, or leave it idle.
  private static let leastShareOfArriving = 0.25
  private static let leastShareOfFlushing = 0.01

  var sealedLimit: Int
  var runLimit: Int
  var baseSize: UInt64

  init(_ options: EngineOptions) {
    sealedLimit = options.sealedMemtables
    runLimit = options.runLimit
    baseSize = CompactionPolicy(options).baseSize
  }

  /// How near each limit is. At 0 no commit waits; at 1 the debt has its intended maximum.
  struct Fullness: Sendable, Equatable {
    var memtables = 0.0
    /// Flushed runs, or bytes that should have sunk to the lowest run.
    var runs = 0.0

    var isFelt: Bool { memtables > 0 || runs > 0 }
  }

  /// Memtables count once a quarter of those that a shard may have are full: what remains must last
  /// while a sync takes ten times as long as usual. Flushed runs count from twice to four times the
  /// number at which they are merged. Bytes that should have sunk count from sixteen to sixty-four
  /// times the size up to which they need not sink.
  func fullness(_ debt: UpkeepDebt) -> Fullness {
    let filled = Double(debt.sealedMemtables) + debt.activeFill
    let memtables = (4 * filled / Double(sealedLimit + 1) - 1) / 3
    let runs = Double(debt.flushedRuns - 2 * runLimit) / Double(2 * runLimit)
    let base = Double(baseSize)
    let levels = (Double(debt.excessBytes) - 16 * base) / (48 * base)
    return Fullness(memtables: min(1, max(0, memtables)), runs: min(1, max(0, runs, levels)))
  }

  /// Nanoseconds of delay for each byte of a commit.
  ///
  /// The pace is twice the measured rate where a limit begins to be felt, equals it half way, and
  /// shrinks to a small share of it at the limit. Memtables are held against the rate of flushes,
  /// which alone empty them. Merges empty runs, by amounts and at times of their own, so runs are
  /// held against the average rate at which they came.
  func nanosecondsPerByte(_ fullness: Fullness, _ rates: UpkeepRates) -> Double {
    func delay(_ fullness: Double, _ rate: RecentRate, least: Double) -> Double {
      guard fullness > 0 else { return 0 }
      let pace = rate.bytesPerMicrosecond * max(least, 2 * (1 - fullness))
      return min(1_000 / pace, Self.mostNanoseconds)
    }
    return max(
      delay(fullness.memtables, rates.flushing, least: Self.leastShareOfFlushing),
      delay(fullness.runs, rates.arriving, least: Self.leastShareOfArriving))
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

  private struct Known: Sendable {
    /// Each shard's debt without its memtables.
    var debts: [UpkeepDebt]
    var rates = UpkeepRates()
  }

  private let delay: WriteDelay
  private let felt = Atomic(false)
  private let known: Guarded<Known>
  /// When the part of the last commit has passed, in nanoseconds since 1970.
  private let isOver = Atomic<Int64>(0)

  init(_ options: EngineOptions, shards: Int) {
    delay = WriteDelay(options)
    known = Guarded(Known(debts: Array(repeating: UpkeepDebt(), count: shards)))
  }

  /// Whether commits may have to wait.
  var isFelt: Bool { felt.load(ordering: .relaxed) }

  /// Records a newly installed view. `changed` is the shard whose runs have changed.
  func update(_ view: View, changed: Int? = nil) {
    let isFelt = known.withLock { known in
      if let changed {
        let state = view.shards[changed].state
        known.debts[changed].flushedRuns = state.levelZero.count
        known.debts[changed].excessBytes = state.excessBytes
      }
      return zip(view.shards, known.debts).contains { shard, debt in
        var debt = debt
        // The active memtable fills without a change of the view.
        (debt.sealedMemtables, debt.activeFill) = (shard.sealed.count, 1)
        return delay.fullness(debt).isFelt
      }
    }
    felt.store(isFelt, ordering: .relaxed)
  }

  /// Records a flush of a memtable with this many bytes, which waited for it and others from
  /// `began`, in microseconds.
  func note(flushed bytes: Int, from began: Int64, to ended: Int64) {
    known.withLock { $0.rates.note(flushed: bytes, from: began, to: ended) }
  }

  /// The microseconds that a commit of this size should wait now; usually 0.
  ///
  /// - Parameter now: microseconds since 1970.
  func wait(before bytes: Int, in view: View, at now: Int64) -> Int64 {
    let share = Double(bytes) * nanosecondsPerByte(in: view)
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

  private func nanosecondsPerByte(in view: View) -> Double {
    known.withLock { known in
      var most = WriteDelay.Fullness()
      for (shard, debt) in zip(view.shards, known.debts) {
        var debt = debt
        debt.sealedMemtables = shard.sealed.count
        debt.activeFill = Double(shard.active.sizeBytes) / Double(max(1, shard.active.capacity))
        let fullness = delay.fullness(debt)
        most.memtables = max(most.memtables, fullness.memtables)
        most.runs = max(most.runs, fullness.runs)
      }
      return delay.nanosecondsPerByte(most, known.rates)
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
