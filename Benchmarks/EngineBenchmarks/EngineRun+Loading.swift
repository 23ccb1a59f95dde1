// Making databases: the load, the weighing, and the overwriting of everything five times.

import BenchmarkKit
import CPeers
import Peers

extension EngineRun {
  /// Loads, settles and closes; then lets the system write out what it holds, for every engine
  /// alike, and weighs the files.
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

  /// Writes the documents in batches and gives back how many microseconds each took.
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

  /// Overwrites every document of a database of its own in random order, again and again, settles
  /// and weighs it.
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
