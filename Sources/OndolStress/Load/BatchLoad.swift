// `load --batch`: writers that commit batches of rows to the engine without a pause, long enough
// that its upkeep falls behind if it can. Simultaneous waits show in the longest commits, so the
// limits of a run apply to these. Rows have random numbers from a larger range than a run writes,
// in four groups of keyspaces, and readers keep little in memory.

import ArgumentParser
import Foundation
import OndolEngine
import OndolTerminal
import OndolTestKit
import Synchronization

/// The rows to write, and for how long.
struct BatchLoadPlan: Sendable, Encodable {
  var batch = 50
  var writers = 16
  var valueLength = 200
  /// The range of random row numbers.
  var rows = 20_000_000
  var seconds = 60.0
  var durability = DurabilityName.process
  var limits = LatencyLimits()
}

extension DurabilityName {
  /// The durability in the engine's type.
  fileprivate var ofEngine: OndolEngine.Durability {
    switch self {
    case .memory: .memory
    case .process: .process
    case .power: .power
    }
  }
}

/// The options of `load` for batches.
struct BatchLoadOptions: ParsableArguments {
  @Option(help: "Commit this many rows at a time to the engine, instead of a scenario.")
  var batch: Int?

  @Option(help: "With --batch: the number of concurrent writers (16).")
  var writers: Int?

  @Option(help: "With --batch: bytes of a row's value (200).")
  var valueLength: Int?

  @Option(help: "With --batch: milliseconds that all except one in a thousand commits may take.")
  var limitP999: Double?

  @Option(help: "With --batch: milliseconds that the longest commit may take.")
  var limitWorst: Double?

  func validate() throws {
    let isAlone = writers == nil && valueLength == nil && limitP999 == nil && limitWorst == nil
    guard batch != nil || isAlone else {
      throw ValidationError(
        "--writers, --value-length, --limit-p999 and --limit-worst go with --batch")
    }
    guard (1...100_000).contains(batch ?? 1), (1...1_000).contains(writers ?? 1),
      (0...1 << 20).contains(valueLength ?? 0)
    else {
      throw ValidationError(
        "--batch is from 1 to 100000, --writers to 1000, --value-length from 0 to 1048576")
    }
    guard LatencyLimits(p999: limitP999, worst: limitWorst).areValid else {
      throw ValidationError("limits must be above 0")
    }
  }

  /// The plan; nil without `--batch`.
  func plan(_ options: LoadOptions) throws -> BatchLoadPlan? {
    guard let batch else { return nil }
    guard options.rate == nil, options.tasks == nil else {
      throw ValidationError("--rate and --tasks go with a scenario: --batch has --writers")
    }
    var plan = BatchLoadPlan()
    plan.batch = batch
    plan.writers = writers ?? plan.writers
    plan.valueLength = valueLength ?? plan.valueLength
    plan.seconds = options.seconds ?? plan.seconds
    plan.durability = options.durability ?? plan.durability
    plan.limits = LatencyLimits(p999: limitP999, worst: limitWorst)
    guard plan.seconds > 0, plan.seconds.isFinite else {
      throw ValidationError("--seconds must be above 0")
    }
    return plan
  }
}

/// The writers' result.
struct BatchLoadReport: Encodable {
  var plan: BatchLoadPlan
  var seed: UInt64
  var seconds, rowsPerSecond: Double
  var commits: UInt64
  /// Microseconds.
  var latency: LoadReport.Latency
  /// The largest number of runs in one shard.
  var mostRuns: Int
  /// Commits that found every memtable of a shard full.
  var stops: Int
  var isInterrupted: Bool
  /// Commits that threw, and figures above their limit.
  var faults: [String]

  var isSound: Bool { faults.isEmpty }

  var verdict: String {
    func milliseconds(_ microseconds: Double) -> String {
      LoadReport.number(microseconds / 1_000) + " ms"
    }
    return "batches: \(plan.writers) writers of \(plan.batch) rows, \(commits) commits in "
      + "\(LoadReport.number(seconds)) s, \(LoadReport.number(rowsPerSecond)) rows a second, "
      + "median \(milliseconds(latency.p50)), p99 \(milliseconds(latency.p99)), p99.9 "
      + "\(milliseconds(latency.p999)), worst \(milliseconds(latency.maximum)), at most \(mostRuns)"
      + " runs in a shard, \(stops) stops: \(isSound ? "sound" : "\(faults.count) faults")"
      + ", seed \(seed)"
      + (isInterrupted ? ", interrupted" : "")
  }
}

/// Writers that commit to one database without a pause.
final class BatchLoad: Sendable {
  private struct State: Sendable {
    var latencies = LatencyHistogram()
    var faults: [String] = []
    var mostRuns = 0
  }

  private let plan: BatchLoadPlan
  private let seed: UInt64
  private let state = Guarded(State())
  private let isStopped = Atomic(false)

  init(_ plan: BatchLoadPlan, seed: UInt64) {
    self.plan = plan
    self.seed = seed
  }

  /// Writes to a new database until the time is over or an interrupt comes.
  func run(at path: String) async throws -> BatchLoadReport {
    let interrupt = Interrupt(first: { [self] in isStopped.store(true, ordering: .relaxed) })
    defer { interrupt.end() }
    var options = EngineOptions()
    options.cacheSize = 32 << 20
    let engine = try await Engine.open(at: path, options: options)
    let start = ContinuousClock.now
    let end = start + .seconds(plan.seconds)
    await withTaskGroup(of: Void.self) { group in
      for writer in 0..<plan.writers {
        group.addTask { await self.write(writer, to: engine, until: end) }
      }
      group.addTask { await self.watch(engine, from: start) }
      // The last task to end is the one that only watches.
      for _ in 0..<plan.writers { await group.next() }
      group.cancelAll()
    }
    let elapsed = (ContinuousClock.now - start) / .seconds(1)
    Console.endProgress()
    let stops = engine.metrics.totals.stops
    try await engine.close()
    return report(after: elapsed, stops: stops, isInterrupted: interrupt.hasCome)
  }

  private func report(
    after seconds: Double, stops: Int, isInterrupted: Bool
  ) -> BatchLoadReport {
    let state = state.withLock { $0 }
    let commits = state.latencies.count
    return BatchLoadReport(
      plan: plan, seed: seed, seconds: seconds,
      rowsPerSecond: seconds > 0 ? Double(commits) * Double(plan.batch) / seconds : 0,
      commits: commits, latency: LoadReport.Latency(state.latencies), mostRuns: state.mostRuns,
      stops: stops, isInterrupted: isInterrupted,
      faults: state.faults + plan.limits.faults(of: state.latencies))
  }

  /// Runs one writer, which ends with the first commit that throws.
  private func write(
    _ writer: Int, to engine: Engine, until end: ContinuousClock.Instant
  ) async {
    var random = SeededRandom(seed: SeededRandom.derive(seed, writer))
    while ContinuousClock.now < end, !isStopped.load(ordering: .relaxed) {
      let batch = batch(of: writer, &random)
      let begin = ContinuousClock.now
      do {
        _ = try await engine.commit(batch, durability: plan.durability.ofEngine)
      } catch {
        state.withLock { $0.faults.append("a commit of writer \(writer): \(error)") }
        return
      }
      let latency = ContinuousClock.now - begin
      state.withLock { $0.latencies.record(latency) }
    }
  }

  private func batch(of writer: Int, _ random: inout SeededRandom) -> Batch {
    var batch = Batch()
    for _ in 0..<plan.batch {
      var key: [UInt8] = []
      key.appendBigEndian(UInt32(1 + writer % 4) << 12 | 1)
      key.appendBigEndian(UInt64(random.below(plan.rows)))
      let value = [UInt8](
        repeating: UInt8(truncatingIfNeeded: random.next()), count: plan.valueLength)
      batch.put(key.bytes, value.bytes)
    }
    return batch
  }

  /// Counts the runs ten times a second, and prints the progress every second.
  private func watch(_ engine: Engine, from start: ContinuousClock.Instant) async {
    var looks = 0
    while (try? await Task.sleep(for: .milliseconds(100))) != nil {
      let runs = engine.metrics.shards.map(\.runs).max() ?? 0
      let state = state.withLock { state in
        state.mostRuns = max(state.mostRuns, runs)
        return state
      }
      looks += 1
      guard looks % 10 == 0 else { continue }
      let worst = Double(state.latencies.maximum) / 1_000_000
      Console.progress(
        "batches: \(LoadReport.number((.now - start) / .seconds(1))) s, \(state.latencies.count) "
          + "commits, worst \(LoadReport.number(worst)) ms, \(runs) runs in a shard",
        number: looks / 10)
    }
  }
}
