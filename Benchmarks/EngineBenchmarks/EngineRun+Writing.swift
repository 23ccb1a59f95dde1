// Writing to a settled, warm database, one user at a time: single documents with and without
// syncing, synced batches, and gets among puts. Each run reads its writes back.

import BenchmarkKit
import CPeers
import Peers

extension EngineRun {
  mutating func write() async throws {
    try await putUnsynced()
    try await putSynced()
    try await writeSyncedBatches()
    try await mixGetsAndPuts()
  }

  /// New documents, one commit each. The figure is the mean, so that it includes flushes and
  /// merges.
  private mutating func putUnsynced() async throws {
    guard plan.includes(.putProcess) else { return }
    let engine = try await open()
    try await warm(engine)
    let rows = rows(queries.putsProcess)
    let times = try await Counting.count(
      Workload.putProcess.rawValue, operations: rows.keys.count
    ) { try await engine.writeEach(rows).map { Double($0) / 1e3 } }
    note(
      .putProcess, times.reduce(0, +) / Double(times.count),
      checksum: fold([try await engine.get(rows.keys)]), spread: Spread(microseconds: times))
    try await engine.close()
  }

  /// New documents, one synced commit each, and after every ten of them the device's own synced
  /// writes of the same bytes. That is often enough to meet the same state of the device, and
  /// seldom enough that the engine does not have to wake up for each commit. The figure is the
  /// median, because the device's outliers would hide the engine.
  private mutating func putSynced() async throws {
    guard plan.includesAny(of: [.putPower, .deviceWrite, .putPowerRatio]) else { return }
    let engine = try await open(.main, .power)
    try await warm(engine)
    let device = try Device(
      lengthBytes: KeyList.keyLength + plan.valueLength, times: plan.putsPower, in: directory)
    let numbers = Array(queries.putsPower)
    let turns = stride(from: 0, to: numbers.count, by: 10).map { rows(numbers[$0...].prefix(10)) }
    var times: [Double] = []
    for turn in turns {
      times += try await engine.writeEach(turn).map { Double($0) / 1e3 }
      for _ in 0..<turn.keys.count { try device.write() }
    }
    let checksum = fold([try await engine.get(dataset.keys(numbers))])
    note(.putPower, median(times), checksum: checksum, spread: Spread(microseconds: times))
    note(.deviceWrite, device.medianMicroseconds)
    note(.putPowerRatio, median(times) / device.medianMicroseconds)
    try await engine.close()
  }

  private mutating func writeSyncedBatches() async throws {
    guard plan.includes(.batchPower) else { return }
    let engine = try await open(.main, .power)
    let numbers = queries.batchesPower
    let times = try await write(numbers, to: engine)
    note(
      .batchPower, Double(numbers.count) / times.reduce(0, +) * 1e6,
      checksum: fold([try await engine.get(dataset.keys(numbers))]),
      spread: Spread(microseconds: times))
    try await engine.close()
  }

  /// Groups of twenty operations: first gets of any document, then puts of new ones.
  private mutating func mixGetsAndPuts() async throws {
    guard plan.includes(.mixed), let readFraction = plan.readFraction else { return }
    let engine = try await open()
    try await warm(engine)
    let gets = Int((20 * readFraction).rounded())
    let turns = plan.mixedOperations / 20
    var reads: [KeyList] = []
    var writes: [RowList] = []
    var random = SplitMix(state: 20)
    for turn in 0..<turns {
      let numbers = (0..<gets).map { _ in Int.random(in: 0..<plan.documents, using: &random) }
      reads.append(dataset.keys(numbers))
      let first = queries.mixed.lowerBound + turn * (20 - gets)
      writes.append(rows(first..<first + 20 - gets))
    }
    let start = peer_now()
    for turn in 0..<turns {
      if gets > 0 { _ = try await engine.get(reads[turn]) }
      if gets < 20 { _ = try await engine.writeEach(writes[turn]) }
    }
    note(.mixed, Double(peer_now() - start) / Double(turns * 20))
    for row in writes where row.keys.count > 0 {
      try require(try await engine.get(row.keys), is: row.checksum, .mixed)
    }
    try await engine.close()
  }
}
