// The delay of writers as a table: nothing while upkeep keeps up, then steadily more.

import OndolTestKit
import Testing

@testable import OndolEngine

@Suite struct `The delay of writers` {
  private let delay = WriteDelay(EngineOptions())

  private static let debts: [(UpkeepDebt, memtables: Double, runs: Double)] = [
    (UpkeepDebt(), 0, 0),
    (UpkeepDebt(sealedMemtables: 0, activeFill: 1), 0, 0),
    (UpkeepDebt(sealedMemtables: 1, activeFill: 0.75), 0.25, 0),
    (UpkeepDebt(sealedMemtables: 2, activeFill: 0.5), 0.5, 0),
    (UpkeepDebt(sealedMemtables: 3, activeFill: 0.25), 0.75, 0),
    (UpkeepDebt(sealedMemtables: 3, activeFill: 1), 1, 0),
    (UpkeepDebt(flushedRuns: 16), 0, 0),
    (UpkeepDebt(flushedRuns: 24), 0, 0.5),
    (UpkeepDebt(flushedRuns: 32), 0, 1),
    (UpkeepDebt(flushedRuns: 40), 0, 1),
    (UpkeepDebt(excessBytes: 16 * (64 << 20)), 0, 0),
    (UpkeepDebt(excessBytes: 40 * (64 << 20)), 0, 0.5),
    (UpkeepDebt(flushedRuns: 20, excessBytes: 40 * (64 << 20)), 0, 0.5),
    (UpkeepDebt(sealedMemtables: 1, activeFill: 0.75, flushedRuns: 24), 0.25, 0.5),
  ]

  @Test(arguments: debts)
  func `knows how near each limit is`(debt: UpkeepDebt, memtables: Double, runs: Double) {
    #expect(delay.fullness(debt) == WriteDelay.Fullness(memtables: memtables, runs: runs))
  }

  /// Flushes of ten megabytes at 100 bytes a microsecond, one every half second: 20 arrive.
  private static func measured() -> UpkeepRates {
    var rates = UpkeepRates()
    for number in 1...40 as ClosedRange<Int64> {
      let end = number * 500_000
      rates.note(flushed: 10_000_000, from: end - 100_000, to: end)
    }
    return rates
  }

  @Test func `makes writers as fast as upkeep half way to a limit`() {
    let rates = Self.measured()
    func pace(memtables: Double = 0, runs: Double = 0) -> Double {
      1_000 / delay.nanosecondsPerByte(.init(memtables: memtables, runs: runs), rates)
    }
    #expect(pace().isInfinite)
    #expect(abs(pace(memtables: 0.5) - 100) < 1)
    #expect(abs(pace(memtables: 0.001) - 200) < 2)
    #expect(abs(pace(memtables: 1) - 1) < 0.1)
    // The first of the flushes has little time before it.
    #expect((20...21).contains(pace(runs: 0.5)))
    #expect((10...10.5).contains(pace(runs: 0.75)))
    #expect((5...5.25).contains(pace(runs: 1)))
    // The slower pace of the two.
    #expect(pace(memtables: 0.25, runs: 0.5) == pace(runs: 0.5))
    #expect(pace(memtables: 0.98, runs: 0.001) == pace(memtables: 0.98))
    for step in 0..<100 {
      #expect(pace(memtables: Double(step) / 100) >= pace(memtables: Double(step + 1) / 100))
    }
  }

  /// The first memtables of a load once filled without a delay, and all writers stopped for most of
  /// a second.
  @Test func `is guessed before anything was measured, and a microsecond a byte at most`() {
    let full = WriteDelay.Fullness(memtables: 1, runs: 1)
    let half = WriteDelay.Fullness(memtables: 0.5)
    #expect(delay.nanosecondsPerByte(half, UpkeepRates()) == 31.25)
    var slow = UpkeepRates()
    for number in 1...10 as ClosedRange<Int64> {
      slow.note(flushed: 1_000, from: number * 1_000_000, to: (number + 1) * 1_000_000)
    }
    #expect(delay.nanosecondsPerByte(full, slow) == 1_000)
  }

  @Test func `does not take a pause without writers for slow upkeep`() {
    var rates = Self.measured()
    let before = rates.arriving.bytesPerMicrosecond
    rates.note(flushed: 10_000_000, from: 7_200_000_000, to: 7_200_100_000)
    let after = rates.arriving.bytesPerMicrosecond
    #expect(after > 0.85 * before)
  }

  /// A pressure that causes delays, from a memtable that is nearly full.
  private func felt() -> (WritePressure, View, nanosecondsPerByte: Double) {
    var options = EngineOptions()
    options.sealedMemtables = 0
    let active = Memtable(capacity: 10_000)
    active.begin(SequenceNumber(rawValue: 1), log: .zero)
    for number in 0..<8 {
      active.add(
        [UInt8(number)].bytes, SequenceNumber(rawValue: 1), .put,
        [UInt8](repeating: 0, count: 1_100).bytes)
    }
    active.link()
    let view = View(
      shards: [ShardView(active: active)], reads: ReadingThreads(InlineWorkers()))
    let pressure = WritePressure(options, shards: 1)
    var rates = UpkeepRates()
    rates.note(flushed: 10_000_000, from: 0, to: 100_000)
    pressure.note(flushed: 10_000_000, from: 0, to: 100_000)
    pressure.update(view)
    let delay = WriteDelay(options)
    let fill = Double(active.sizeBytes) / Double(active.capacity)
    let fullness = delay.fullness(UpkeepDebt(activeFill: fill))
    return (pressure, view, delay.nanosecondsPerByte(fullness, rates))
  }

  /// The writer that came when a second had accumulated once waited it for all, and the others not
  /// at all.
  @Test func `is waited by each commit for itself, after those that came before`() {
    let (pressure, view, rate) = felt()
    #expect(pressure.isFelt)
    let bytes = 50_000
    let share = Int64(Double(bytes) * rate)
    #expect(share > 0)
    // They arrive at once.
    let waits = (1...200).map { _ in pressure.wait(before: bytes, in: view, at: 7_000_000) }
    for (index, wait) in waits.enumerated() {
      let owed = Int64(index + 1) * share
      #expect(wait == (owed < 1_000_000 ? 0 : min(owed, 200_000_000) / 1_000), "\(index)")
    }
    #expect(waits.last == 200_000)
    // After that, only its own.
    let later = pressure.wait(before: bytes, in: view, at: 9_000_000)
    #expect(later == (share < 1_000_000 ? 0 : share / 1_000))
  }

  @Test func `keeps writers to its pace, whatever the sizes of their commits`() {
    let (pressure, view, rate) = felt()
    var random = SeededRandom(seed: 5)
    var (now, bytes) = (Int64(1_000_000), 0)
    for _ in 0..<2_000 {
      let size = 1 + Int(random.next() % 20_000)
      bytes += size
      now += pressure.wait(before: size, in: view, at: now)
    }
    let due = Double(bytes) * rate / 1_000
    // A delay of less than a millisecond is still owed.
    #expect(abs(Double(now - 1_000_000) - due) < 3_000, "\(now - 1_000_000) of \(due) µs")
  }

  @Test func `does not wait for a clock that was set back`() {
    let (pressure, view, _) = felt()
    _ = pressure.wait(before: 1_000_000, in: view, at: 1 << 50)
    #expect(pressure.wait(before: 1_000, in: view, at: 1_000_000) <= 200_000)
    #expect(pressure.wait(before: 1_000, in: view, at: 2_000_000) <= 1_000)
  }

  // MARK: - Writers beside upkeep

  /// Whatever the pace of flushes, and although each takes up to three times as long as another,
  /// writers never find all memtables full, and no commit waits for much more than its part.
  @Test(arguments: [1.5, 30, 1_000])
  func `lets writers neither stop nor swing`(pace: Double) {
    var random = SeededRandom(seed: 11)
    var writers = ModelWriters(delay, pace: pace)
    for _ in 0..<20_000 { writers.commit(&random) }
    writers.forget()
    for _ in 0..<100_000 { writers.commit(&random) }
    #expect(writers.stops == 0)
    let part = Double(ModelWriters.commitSize) / pace
    #expect(writers.longestWait < 3 * part, "\(writers.longestWait) of \(part) µs")
    // Upkeep is busy nearly all of the time.
    #expect(writers.bytes / (writers.now - writers.start) > 0.8 * pace)
  }
}

/// Writers that fill the memtables of four shards in turn as fast as they may, and a thread that
/// flushes one memtable after the other, in the order in which they were sealed.
private struct ModelWriters {
  static let (capacity, commitSize) = (4 << 20, 10_600)

  private let delay: WriteDelay
  /// Bytes that are flushed in a microsecond, on average.
  private let pace: Double
  private var rates = UpkeepRates()
  private var shards = Array(repeating: UpkeepDebt(), count: 4)
  private var queue: [Int] = []
  private var (flushBegan, flushEnds) = (0.0, 0.0)
  private var next = 0
  private(set) var (now, start, bytes) = (0.0, 0.0, 0.0)
  /// Commits that found all memtables of their shard full.
  private(set) var stops = 0
  /// The longest delay of a commit for its own bytes.
  private(set) var longestWait = 0.0

  init(_ delay: WriteDelay, pace: Double) {
    (self.delay, self.pace) = (delay, pace)
  }

  /// Begins to count again.
  mutating func forget() { (start, bytes, stops, longestWait) = (now, 0, 0, 0) }

  mutating func commit(_ random: inout SeededRandom) {
    next = (next + 1) % shards.count
    let fullness = shards.map { delay.fullness($0).memtables }.max() ?? 0
    let size = Double(Self.commitSize)
    let wait = size * delay.nanosecondsPerByte(.init(memtables: fullness), rates) / 1_000
    longestWait = max(longestWait, wait)
    // Without a wait, they are a hundred times as fast as flushes.
    now += max(wait, size / pace / 100)
    while !queue.isEmpty, flushEnds <= now { endFlush(&random) }
    bytes += size
    shards[next].activeFill += size / Double(Self.capacity)
    if shards[next].activeFill >= 1 { seal(next, &random) }
  }

  private mutating func seal(_ shard: Int, _ random: inout SeededRandom) {
    if shards[shard].sealedMemtables == delay.sealedLimit { stops += 1 }
    while shards[shard].sealedMemtables == delay.sealedLimit { endFlush(&random) }
    shards[shard].sealedMemtables += 1
    shards[shard].activeFill = 0
    queue.append(shard)
    if queue.count == 1 { beginFlush(&random) }
  }

  private mutating func beginFlush(_ random: inout SeededRandom) {
    flushBegan = now
    flushEnds = now + Double(Self.capacity) / pace * (0.5 + Double(random.next() % 1_000) / 1_000)
  }

  private mutating func endFlush(_ random: inout SeededRandom) {
    now = max(now, flushEnds)
    rates.note(flushed: Self.capacity, from: Int64(flushBegan), to: Int64(flushEnds))
    shards[queue.removeFirst()].sealedMemtables -= 1
    if !queue.isEmpty { beginFlush(&random) }
  }
}
