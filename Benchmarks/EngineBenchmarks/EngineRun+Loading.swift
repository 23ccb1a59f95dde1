// Making databases: the load, its size, and five times overwriting everything.

import BenchmarkKit
import CPeers
import Peers

extension EngineRun {
  /// Loads, settles and closes the database. Then it makes the system write out its cache, for
  /// every engine alike, and measures the files.
  mutating func load() async throws {
    let engine = try await open()
    let times = try await write(0..<plan.documents, to: engine)
    noteMemory(.peakMemory, \.peakBytes)
    let start = peer_now()
    try await engine.settle()
    result.settleSeconds = Double(peer_now() - start) / 1e9

    let scan = try await engine.scan()
    guard scan.count == UInt64(plan.documents) else {
      throw PeerError(type.name, "load", "\(scan.count) documents instead of \(plan.documents)")
    }
    try await engine.close()
    writeOutEverything()
    note(
      .load, Double(plan.documents) / times.reduce(0, +) * 1e6, checksum: scan.checksum,
      spread: Spread(microseconds: times))
    note(.size, Double(allocatedBytes(below: path(of: .main))) / 1e6)
  }

  /// Writes the documents in batches and returns the microseconds of each.
  func write(
    _ numbers: some RandomAccessCollection<Int>, version: Int = 0, to engine: any KeyValueEngine
  ) async throws -> [Double] {
    var times: [Double] = []
    var rest = numbers[...]
    while !rest.isEmpty {
      let batch = rows(rest.prefix(Plan.documentsPerBatch), version: version)
      rest = rest.dropFirst(Plan.documentsPerBatch)
      let start = peer_now()
      try await engine.write(batch)
      times.append(Double(peer_now() - start) / 1e3)
    }
    return times
  }

  /// Overwrites every document of a separate database in random order, again and again, settles it
  /// and measures its files.
  mutating func overwrite() async throws {
    let engine = try await open(.overwritten)
    let numbers = 0..<plan.documentsOverwritten
    _ = try await write(numbers, to: engine)
    var random = SplitMix(state: 5)
    for version in 1...Plan.overwrites {
      _ = try await write(numbers.shuffled(using: &random), version: version, to: engine)
    }
    try await engine.settle()
    let checksum = try await engine.scan().checksum
    try await engine.close()
    writeOutEverything()
    note(
      .sizeOverwritten, Double(allocatedBytes(below: path(of: .overwritten))) / 1e6,
      checksum: checksum)
  }
}
