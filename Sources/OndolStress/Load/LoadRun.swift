// Puts a database under load and measures the time. With a rate, operations are due at moments that
// do not depend on answers, and each latency counts from the due moment. When the database stands
// still for a second, all operations due in that second show it (a measurement that misses them
// suffers from coordinated omission). Without a rate each task starts the next operation at once.

import Foundation
import OndolEngine
import OndolTestKit

/// The measurements so far.
struct LoadTally: Sendable {
  struct Entry: Sendable {
    /// From the moment an operation was due to its end.
    var latency = LatencyHistogram()
    /// From its beginning to its end.
    var service = LatencyHistogram()
    var missed = 0
    var failed = 0
  }

  var entries: [OperationKind: Entry] = [:]
  /// The first errors and wrong answers.
  var faults: [String] = []
  var wrong = 0

  /// All operations together.
  var total: Entry {
    entries.values.reduce(into: Entry()) { total, entry in
      total.latency += entry.latency
      total.service += entry.service
      total.missed += entry.missed
      total.failed += entry.failed
    }
  }

  static func += (left: inout LoadTally, right: LoadTally) {
    for (kind, entry) in right.entries {
      left.entries[kind, default: Entry()].latency += entry.latency
      left.entries[kind, default: Entry()].service += entry.service
      left.entries[kind, default: Entry()].missed += entry.missed
      left.entries[kind, default: Entry()].failed += entry.failed
    }
    left.faults = Array((left.faults + right.faults).prefix(5))
    left.wrong += right.wrong
  }
}

/// One run of a scenario.
final class LoadRun: Sendable {
  private struct Schedule: Sendable {
    var next = 0
    var isStopped = false
  }

  let target: LoadDatabase
  let scenario: Scenario
  let seed: UInt64
  private let schedule = Guarded(Schedule())
  private let tallies: [Guarded<LoadTally>]
  private let clockwatcher = Turnstile()
  private let start = Guarded(ContinuousClock.now)
  private let end = Guarded<ContinuousClock.Instant?>(nil)

  /// The wait is watched more closely than by a timer for this long before an operation is due.
  private static let closeWatch = Duration.microseconds(400)

  init(_ target: LoadDatabase, seed: UInt64) {
    self.target = target
    self.seed = seed
    scenario = target.scenario
    tallies = (0..<target.scenario.tasks).map { _ in Guarded(LoadTally()) }
  }

  /// Ends the run after the operations that are under way.
  func stop() {
    schedule.withLock { $0.isStopped = true }
  }

  var tally: LoadTally {
    tallies.reduce(into: LoadTally()) { sum, tally in sum += tally.withLock { $0 } }
  }

  /// The duration of the run, so far or in total.
  var elapsed: Duration {
    (end.withLock { $0 } ?? .now) - start.withLock { $0 }
  }

  /// Runs to the end of the scenario, or until `stop`. Calls `progress` every second.
  func run(progress: @escaping @Sendable (LoadRun) -> Void = { _ in }) async {
    start.withLock { $0 = .now }
    await withTaskGroup(of: Void.self) { group in
      for worker in 0..<scenario.tasks {
        group.addTask { await self.work(worker) }
      }
      group.addTask {
        while (try? await Task.sleep(for: .seconds(1))) != nil { progress(self) }
      }
      // The last task to end is the one that only watches.
      for _ in 0..<scenario.tasks { await group.next() }
      end.withLock { $0 = .now }
      group.cancelAll()
    }
  }

  // MARK: - Workers

  private func work(_ worker: Int) async {
    var random = SeededRandom(seed: SeededRandom.derive(seed, worker))
    while let due = await takeTurn() {
      let kind = draw(&random)
      let begin = ContinuousClock.now
      var outcome: Result<OperationOutcome, any Error>
      do {
        outcome = .success(try await target.perform(kind, &random))
      } catch {
        outcome = .failure(error)
      }
      note(kind, outcome, due: due ?? begin, begin: begin, in: tallies[worker])
    }
  }

  /// Waits until the next operation is due, and returns that moment: an inner nil if it was due at
  /// once, nil if there are no more.
  private func takeTurn() async -> ContinuousClock.Instant?? {
    await clockwatcher.enter()
    defer { clockwatcher.leave() }
    let (number, isStopped) = schedule.withLock { schedule in
      defer { schedule.next += 1 }
      return (schedule.next, schedule.isStopped)
    }
    let start = start.withLock { $0 }
    if isStopped || number >= scenario.count ?? .max { return nil }
    let finish = start + .seconds(scenario.seconds)
    guard scenario.rate > 0 else { return .now < finish ? .some(nil) : nil }
    let due = start + .seconds(Double(number) / scenario.rate)
    guard due < finish else { return nil }
    while ContinuousClock.now < due {
      if schedule.withLock({ $0.isStopped }) { return nil }
      let left = due - .now
      if left > Self.closeWatch {
        try? await Task.sleep(for: min(left - Self.closeWatch, .milliseconds(100)))
      } else {
        await Task.yield()
      }
    }
    return due
  }

  private func draw(_ random: inout SeededRandom) -> OperationKind {
    let kinds = OperationKind.allCases.compactMap { kind in
      scenario.operations[kind].map { (kind, $0) }
    }
    let sum = kinds.reduce(0) { $0 + $1.1 }
    var place = Double(random.next() >> 11) * 0x1p-53 * sum
    for (kind, weight) in kinds {
      place -= weight
      if place < 0 { return kind }
    }
    return kinds.last?.0 ?? .get
  }

  private func note(
    _ kind: OperationKind, _ outcome: Result<OperationOutcome, any Error>,
    due: ContinuousClock.Instant, begin: ContinuousClock.Instant, in tally: Guarded<LoadTally>
  ) {
    let end = ContinuousClock.now
    tally.withLock { tally in
      var entry = tally.entries[kind] ?? LoadTally.Entry()
      entry.latency.record(end - due)
      entry.service.record(end - begin)
      var fault: String?
      switch outcome {
      case .success(.done): break
      case .success(.missed): entry.missed += 1
      case .success(.wrong(let reason)):
        tally.wrong += 1
        fault = reason
      case .failure(let error):
        entry.failed += 1
        fault = "\(kind.rawValue): \(error)"
      }
      tally.entries[kind] = entry
      if let fault, tally.faults.count < 5 { tally.faults.append(fault) }
    }
  }
}
