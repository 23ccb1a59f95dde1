// The delay of writers as a table: nothing while upkeep keeps up, then steadily more.

import OndolTestKit
import Testing

@testable import OndolEngine

@Suite struct `The delay of writers` {
  private let delay = WriteDelay(EngineOptions())

  private static let debts: [(UpkeepDebt, Double)] = [
    (UpkeepDebt(), 0),
    (UpkeepDebt(sealedMemtables: 1, activeFill: 1), 0),
    (UpkeepDebt(sealedMemtables: 2, activeFill: 0.5), 0.25),
    (UpkeepDebt(sealedMemtables: 3, activeFill: 0), 0.5),
    (UpkeepDebt(sealedMemtables: 3, activeFill: 0.5), 0.75),
    (UpkeepDebt(sealedMemtables: 3, activeFill: 1), 1),
    (UpkeepDebt(flushedRuns: 16), 0),
    (UpkeepDebt(flushedRuns: 24), 0.5),
    (UpkeepDebt(flushedRuns: 32), 1),
    (UpkeepDebt(flushedRuns: 40), 1.25),
    (UpkeepDebt(excessBytes: 16 * (64 << 20)), 0),
    (UpkeepDebt(excessBytes: 40 * (64 << 20)), 0.5),
    (UpkeepDebt(sealedMemtables: 2, activeFill: 0.25, flushedRuns: 24), 0.5),
  ]

  @Test(arguments: debts)
  func `follows the debt that is nearest to its limit`(debt: UpkeepDebt, fullness: Double) {
    #expect(delay.fullness(debt) == fullness)
  }

  @Test func `is nothing, then doubles in equal steps, and is a microsecond a byte at most`() {
    #expect(delay.nanosecondsPerByte(0) == 0)
    #expect(abs(delay.nanosecondsPerByte(0.001) - 1) < 0.01)
    #expect(delay.nanosecondsPerByte(0.5) == 24)
    #expect(delay.nanosecondsPerByte(1) == 512)
    #expect(delay.nanosecondsPerByte(1.25) == 1_000)
    let delays = (17...32).map { runs in
      delay.nanosecondsPerByte(delay.fullness(UpkeepDebt(flushedRuns: runs)))
    }
    for (fewer, more) in zip(delays, delays.dropFirst()) {
      #expect((1.3...1.7).contains(more / fewer), "\(fewer) \(more)")
    }
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
    pressure.update(view)
    let delay = WriteDelay(options)
    let fill = Double(active.sizeBytes) / Double(active.capacity)
    return (pressure, view, delay.nanosecondsPerByte(delay.fullness(UpkeepDebt(activeFill: fill))))
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
}
