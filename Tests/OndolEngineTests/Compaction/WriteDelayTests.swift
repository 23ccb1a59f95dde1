// The delay of writers as a table: nothing while upkeep keeps up, then steadily more.

import OndolTestKit
import Testing

@testable import OndolEngine

@Suite struct `The delay of writers` {
  private let delay = WriteDelay(EngineOptions())

  private static let debts: [(UpkeepDebt, Double)] = [
    (UpkeepDebt(), 0),
    (UpkeepDebt(sealedMemtables: 2, activeFill: 0.9), 0),
    (UpkeepDebt(sealedMemtables: 3, activeFill: 0), 0),
    (UpkeepDebt(sealedMemtables: 3, activeFill: 0.5), 0.5),
    (UpkeepDebt(sealedMemtables: 3, activeFill: 1), 1),
    (UpkeepDebt(flushedRuns: 16), 0),
    (UpkeepDebt(flushedRuns: 24), 0.5),
    (UpkeepDebt(flushedRuns: 40), 1),
    (UpkeepDebt(excessBytes: 16 * (64 << 20)), 0),
    (UpkeepDebt(excessBytes: 40 * (64 << 20)), 0.5),
    (UpkeepDebt(sealedMemtables: 3, activeFill: 0.25, flushedRuns: 24), 0.5),
  ]

  @Test(arguments: debts)
  func `follows the debt that is nearest to its limit`(debt: UpkeepDebt, fullness: Double) {
    #expect(delay.fullness(debt) == fullness)
  }

  @Test func `is nothing, then four nanoseconds a byte half-way, and a microsecond at most`() {
    #expect(delay.nanosecondsPerByte(0) == 0)
    #expect(delay.nanosecondsPerByte(0.5) == 4)
    #expect(delay.nanosecondsPerByte(0.9) > 35)
    #expect(delay.nanosecondsPerByte(0.9) < 37)
    #expect(delay.nanosecondsPerByte(0.9999) == 1_000)
    #expect(delay.nanosecondsPerByte(1) == 1_000)
    let steps = (0...100).map { delay.nanosecondsPerByte(Double($0) / 100) }
    #expect(steps == steps.sorted())
  }

  @Test func `is saved up to a millisecond and then slept at once`() {
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
    #expect(pressure.isFelt)
    let waits = (0..<1_000).map { _ in pressure.wait(before: 1_000, in: view) }
    let slept = waits.filter { $0 > 0 }
    #expect(slept.allSatisfy { $0 >= 1_000 })
    #expect(slept.count > 10)
    #expect(slept.count < 500)
  }
}
