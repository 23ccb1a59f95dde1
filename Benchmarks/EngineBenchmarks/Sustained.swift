// Writing without a pause, for as long as it takes an engine's upkeep to fall behind: what a writer
// has to wait at worst. Short runs hide this.

import CPeers
import Peers

/// How long writes took, in microseconds.
struct SustainedFigures: Codable {
  var documentsPerWrite: Int
  var documentsPerSecond: Double
  var p50: Double
  var p99: Double
  var p999: Double
  var longest: Double

  init(_ histogram: LatencyHistogram, documentsPerWrite: Int, seconds: Double) {
    self.documentsPerWrite = documentsPerWrite
    documentsPerSecond = Double(histogram.count * documentsPerWrite) / seconds
    p50 = histogram.microseconds(at: 0.5)
    p99 = histogram.microseconds(at: 0.99)
    p999 = histogram.microseconds(at: 0.999)
    longest = Double(histogram.longest) / 1e3
  }
}

/// Counts of durations, each kept to about one part in sixteen.
struct LatencyHistogram {
  private var counts = [Int](repeating: 0, count: 64 * 16)
  private(set) var count = 0
  private(set) var longest: UInt64 = 0

  mutating func add(_ nanoseconds: UInt64) {
    counts[Self.bucket(nanoseconds)] += 1
    count += 1
    longest = max(longest, nanoseconds)
  }

  /// The duration that `part` (0...1) of all do not exceed.
  func microseconds(at part: Double) -> Double {
    var rest = Int(Double(count) * part)
    for (bucket, count) in counts.enumerated() {
      rest -= count
      if rest < 0 { return min(Self.middle(bucket), Double(longest)) / 1e3 }
    }
    return Double(longest) / 1e3
  }

  /// The highest bit's place, and the four bits after it.
  private static func bucket(_ nanoseconds: UInt64) -> Int {
    guard nanoseconds >= 16 else { return Int(nanoseconds) }
    let exponent = 63 - nanoseconds.leadingZeroBitCount
    return (exponent - 3) * 16 + Int((nanoseconds >> UInt64(exponent - 4)) & 15)
  }

  private static func middle(_ bucket: Int) -> Double {
    guard bucket >= 16 else { return Double(bucket) }
    let width = Double(UInt64(1) << UInt64(bucket / 16 - 1))
    return (Double(16 + bucket % 16) + 0.5) * width
  }
}

extension EngineRun {
  static let sustainedBatches = [1, 100]
  private static let documentsPerTurn = 1_000

  /// One writer at full rate, unsynced, in commits of `documentsPerWrite`: random documents of the
  /// plan's number, so that the database grows to its size and is then overwritten.
  ///
  /// Between turns of a thousand documents the writer makes the next keys, which takes it a few
  /// hundredths of the time; the values are from a pool.
  @concurrent
  static func sustain(
    _ type: any KeyValueEngine.Type, _ plan: Plan, documentsPerWrite: Int, in directory: String
  ) async throws -> RunResult {
    var run = EngineRun(type, plan, directory)
    let engine = try await run.open(.sustained)
    var random = SplitMix(state: 60)
    var pool = run.pool(documentsPerWrite: documentsPerWrite)
    var histogram = LatencyHistogram()
    let start = peer_now()
    let end = start + UInt64(plan.sustainedSeconds * 1e9)
    var turn = 0
    while peer_now() < end {
      let part = turn % pool.count
      for index in pool[part].indices {
        pool[part][index].replaceKeys { _ in
          run.dataset.key(Int.random(in: 0..<plan.documents, using: &random))
        }
      }
      for rows in pool[part] {
        try await write(rows, as: documentsPerWrite, to: engine, &histogram)
      }
      turn += 1
    }
    let seconds = Double(peer_now() - start) / 1e9
    run.result.sustained = [
      SustainedFigures(histogram, documentsPerWrite: documentsPerWrite, seconds: seconds)
    ]
    try await engine.close()
    return run.result
  }

  /// Values for a few turns. Single documents of a turn are in one list, whose writes the engine
  /// times one by one.
  private func pool(documentsPerWrite: Int) -> [[RowList]] {
    let rowsPerList = documentsPerWrite == 1 ? Self.documentsPerTurn : documentsPerWrite
    return (0..<16).map { part in
      let first = part * Self.documentsPerTurn
      return stride(from: first, to: first + Self.documentsPerTurn, by: rowsPerList).map {
        rows($0..<$0 + rowsPerList)
      }
    }
  }

  private static func write(
    _ rows: RowList, as documentsPerWrite: Int, to engine: any KeyValueEngine,
    _ histogram: inout LatencyHistogram
  ) async throws {
    if documentsPerWrite == 1 {
      for time in try await engine.writeEach(rows) { histogram.add(time) }
    } else {
      let start = peer_now()
      try await engine.write(rows)
      histogram.add(peer_now() - start)
    }
  }
}
