// Fails every operation of many small workloads, once, for ever, or for want of space, and looks at
// what the store says and at what is there afterwards.
//
// A store may fail the step during which the fault struck, and any later one; what it may not do is
// lie. All it acknowledged is there after it was closed, killed or cut off, and what it reported as
// failed is there wholly or not at all. When a sync fails, the system forgets which bytes it had
// not saved, so a store that tries again and believes the second answer is found out by the power
// cut.

/// Breaks things under a store.
package struct FaultTest: Sendable {
  private static let inputOutputError: Int32 = 5
  private static let noSpace: Int32 = 28

  package var seed: UInt64
  let open: OpenSubject

  package init(seed: UInt64, open: @escaping OpenSubject) {
    self.seed = seed
    self.open = open
  }

  /// Fails operations until there have been `count` faults, or one broke a promise. Each fault
  /// counts as a point, each look at what it left as a crash.
  package func run(faults count: Int) -> CrashReport {
    var report = CrashReport()
    var number = 0
    while report.points < count, report.violation == nil {
      report.violation = run(workload: number, within: count, into: &report)
      number += 1
    }
    return report
  }

  /// Fails each operation of one workload, while `report` counts fewer than `limit` faults.
  package func run(
    workload number: Int, within limit: Int = .max, into report: inout CrashReport
  ) -> CrashViolation? {
    let workload = Workload(seed: SeededRandom.derive(seed, number))
    var random = SeededRandom(seed: SeededRandom.derive(workload.seed, -2))
    report.workloads += 1
    do throws(CrashTrial.Failure) {
      let life = random.next()
      let operations = try run(workload, seed: life, faults: []).fileSystem.operations
      for operation in 0..<operations where report.points < limit {
        let (fault, name) = draw(at: operation, &random)
        report.points += 1
        report.crashes += try look(
          atWhatIsLeftBy: run(workload, seed: life, faults: [fault]), &random,
          place: "\(name) at operation \(operation)")
      }
      return nil
    } catch {
      return CrashViolation(
        seed: seed, number: number, workload: workload, place: error.place, reason: error.reason)
    }
  }

  private func draw(at operation: Int, _ random: inout SeededRandom) -> (Fault, String) {
    let numbered = Set(OperationKind.allCases.filter(\.isNumbered))
    switch random.below(4) {
    case 0, 1:
      return (
        Fault(failing: numbered, from: operation, errno: Self.inputOutputError), "one EIO"
      )
    case 2:
      return (
        Fault(failing: numbered, from: operation, errno: Self.inputOutputError, isSticky: true),
        "EIO from now on"
      )
    default:
      return (
        Fault(
          failing: [.create, .write], from: operation, errno: Self.noSpace, isSticky: true),
        "ENOSPC from now on"
      )
    }
  }

  private struct Life {
    var fileSystem: SimulatedFileSystem
    var outcome: LifeOutcome
    var record: History.Record
  }

  private func run(
    _ workload: Workload, seed: UInt64, faults: [Fault]
  ) throws(CrashTrial.Failure) -> Life {
    let fileSystem = SimulatedFileSystem()
    fileSystem.inject(faults)
    let history = History(for: fileSystem)
    let outcome = try attempt("the life before it") {
      try LivingStore.live(
        workload.steps, on: fileSystem, history, seed: seed, options: workload.options,
        open: open)
    }
    if faults.isEmpty, let error = outcome.error {
      throw CrashTrial.Failure(place: "without a fault", reason: error)
    }
    return Life(fileSystem: fileSystem, outcome: outcome, record: history.value)
  }

  /// Opens what the life left: as it is, after a kill, and after power cuts.
  private func look(
    atWhatIsLeftBy life: Life, _ random: inout SeededRandom, place: String
  ) throws(CrashTrial.Failure) -> Int {
    let context = "\(place); the store said: \(life.outcome.error ?? "nothing")"
    var timeline = Timeline.empty
    if let fault = timeline.append(life.record) {
      throw CrashTrial.Failure(place: context, reason: fault)
    }
    let end = life.record.events.count
    let possible: (CrashKind) -> ClosedRange<Int> = { kind in
      timeline.possibleStates(after: end, crash: kind)
    }
    if let last = life.outcome.last,
      let fault = timeline.fault(in: last, allowing: timeline.newest...possible(.kill).upperBound)
    {
      throw CrashTrial.Failure(place: context, reason: "while open, \(fault)")
    }
    let storage = life.fileSystem.storage
    let disks: [(CrashKind, SimulatedStorage)] = [
      (.kill, storage.afterKill()),
      (.powerCut, storage.afterPowerCut(seed: random.next())),
      (.powerCut, storage.afterPowerCut(seed: random.next())),
    ]
    for (kind, disk) in disks {
      let place = "\(context), then \(kind)"
      let history = History(for: SimulatedFileSystem())
      let outcome = try attempt(place) {
        try LivingStore.live(
          [], on: SimulatedFileSystem(storage: disk), history, seed: random.next(),
          options: Workload(seed: 0).options, open: open)
      }
      guard let first = outcome.first, outcome.error == nil else {
        throw CrashTrial.Failure(
          place: place, reason: "it failed with: \(outcome.error ?? "no error at all")")
      }
      if let fault = timeline.fault(in: first, allowing: possible(kind)) {
        throw CrashTrial.Failure(place: place, reason: fault)
      }
    }
    return disks.count
  }

  private func attempt<R>(
    _ place: String, _ work: () throws -> R
  ) throws(CrashTrial.Failure) -> R {
    do {
      return try work()
    } catch {
      throw CrashTrial.Failure(place: place, reason: "\(error)")
    }
  }
}
