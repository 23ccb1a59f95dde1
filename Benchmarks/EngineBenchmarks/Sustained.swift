// Writing without a pause, long enough that an engine's upkeep falls behind: the longest waits of a
// writer, alone and among others. Short runs hide them.

import CPeers
import Peers

/// The writers, and the size of their commits.
struct SustainedShape: Codable {
  var writers = 1
  var documentsPerWrite: Int

  /// The name in rows of figures.
  var name: String { writers == 1 ? "\(documentsPerWrite)" : "\(writers)x\(documentsPerWrite)" }

  /// The place in a table.
  var order: (Int, Int) { (writers, documentsPerWrite) }

  /// In the third shape, waits for upkeep affect many writers at once.
  static let all = [
    SustainedShape(documentsPerWrite: 1), SustainedShape(documentsPerWrite: 100),
    SustainedShape(writers: 16, documentsPerWrite: 50),
  ]
}

/// The latencies of writes, in microseconds.
struct SustainedFigures: Codable {
  var shape: SustainedShape
  var documentsPerSecond: Double
  var p50: Double
  var p99: Double
  var p999: Double
  var longest: Double

  init(_ histogram: LatencyHistogram, _ shape: SustainedShape, seconds: Double) {
    self.shape = shape
    documentsPerSecond = Double(histogram.count * shape.documentsPerWrite) / seconds
    p50 = histogram.microseconds(at: 0.5)
    p99 = histogram.microseconds(at: 0.99)
    p999 = histogram.microseconds(at: 0.999)
    longest = Double(histogram.longest) / 1e3
  }
}

/// Counts of durations, each with a precision of about one part in sixteen.
struct LatencyHistogram {
  private var counts = [Int](repeating: 0, count: 64 * 16)
  private(set) var count = 0
  private(set) var longest: UInt64 = 0

  mutating func add(_ nanoseconds: UInt64) {
    counts[Self.bucket(nanoseconds)] += 1
    count += 1
    longest = max(longest, nanoseconds)
  }

  mutating func add(_ other: LatencyHistogram) {
    for (bucket, number) in other.counts.enumerated() { counts[bucket] += number }
    count += other.count
    longest = max(longest, other.longest)
  }

  /// The duration that `part` (0...1) of all durations do not exceed.
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
  private static let documentsPerTurn = 1_000

  /// Writers at full rate, unsynced, with commits of one shape: random documents within the plan's
  /// number, so that the database first grows to its size and is then overwritten.
  ///
  /// After a thousand documents a writer makes the next keys, which takes a few hundredths of its
  /// time. The values come from a pool.
  @concurrent
  static func sustain(
    _ type: any KeyValueEngine.Type, _ plan: Plan, _ shape: SustainedShape, in directory: String
  ) async throws -> RunResult {
    var run = EngineRun(type, plan, directory)
    let engine = try await run.open(.sustained)
    let dataset = run.dataset
    let start = peer_now()
    let end = start + UInt64(plan.sustainedSeconds * 1e9)
    let all = try await concurrently(
      shape.writers, onThreads: shape.writers > 1 && type.blocks
    ) { writer in
      let session = writer == 0 ? engine : try await engine.session()
      return try await write(shape, plan, dataset, to: session, seed: 60 + writer, until: end)
    }
    let seconds = Double(peer_now() - start) / 1e9
    var histogram = LatencyHistogram()
    for one in all { histogram.add(one) }
    run.result.sustained = [SustainedFigures(histogram, shape, seconds: seconds)]
    try await engine.close()
    return run.result
  }

  /// Runs one writer.
  private static func write(
    _ shape: SustainedShape, _ plan: Plan, _ dataset: Dataset, to engine: any KeyValueEngine,
    seed: Int, until end: UInt64
  ) async throws -> LatencyHistogram {
    var random = SplitMix(state: UInt64(seed))
    var pool = pool(dataset, documentsPerWrite: shape.documentsPerWrite)
    var histogram = LatencyHistogram()
    var turn = 0
    while peer_now() < end {
      let part = turn % pool.count
      for index in pool[part].indices {
        pool[part][index].replaceKeys { _ in
          dataset.key(Int.random(in: 0..<plan.documents, using: &random))
        }
      }
      for rows in pool[part] {
        try await write(rows, as: shape.documentsPerWrite, to: engine, &histogram)
      }
      turn += 1
    }
    return histogram
  }

  /// Values for a few turns. The single documents of a turn are in one list, whose writes the
  /// engine times one by one.
  private static func pool(_ dataset: Dataset, documentsPerWrite: Int) -> [[RowList]] {
    let rowsPerList = documentsPerWrite == 1 ? documentsPerTurn : documentsPerWrite
    return (0..<16).map { part in
      let first = part * documentsPerTurn
      return stride(from: first, to: first + documentsPerTurn, by: rowsPerList).map { start in
        var rows = RowList(valueLength: dataset.valueLength)
        for number in start..<start + rowsPerList { rows.append(number, of: dataset) }
        return rows
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
