// Fails every operation of many small workloads, once, permanently, or for lack of space, and
// checks the store's answers and its state afterwards.
//
// A store may fail the step in which the fault struck, and any later one, but it must not lie.
// Everything that it acknowledged exists after a close, a kill or a power cut, and everything that
// it reported as failed exists whole or not at all. When a sync fails, the system forgets which
// bytes it had not saved. The power cut exposes a store that tries again and believes the second
// answer.

/// Injects faults under a store.
package struct FaultTest: Sendable {
  private static let inputOutputError: Int32 = 5
  private static let noSpace: Int32 = 28

  package var seed: UInt64
  /// Whether every operation fails in every way, and not in a random one.
  package var isExhaustive = false
  /// The number of a workload's faults to try, evenly spread; nil for all.
  package var faultsPerWorkload: Int?
  let open: OpenSubject

  package init(seed: UInt64, open: @escaping OpenSubject) {
    self.seed = seed
    self.open = open
  }

  /// Fails operations until there are `count` faults, or until one broke a promise. Each fault
  /// counts as a point, and each check of its result as a crash.
  package func run(faults count: Int) -> CrashReport {
    CrashReport(until: { $0.points >= count }) { number, report in
      run(workload: number, within: count, into: &report)
    }
  }

  /// Fails each operation of the seed's first workload.
  package func runOne() -> CrashReport {
    var report = CrashReport()
    report.violation = run(workload: 0, into: &report)
    return report
  }

  /// Fails each operation of one workload, while `report` counts fewer than `limit` faults.
  package func run(
    workload number: Int, within limit: Int = .max, into report: inout CrashReport
  ) -> CrashViolation? {
    let workload = Workload(seed: SeededRandom.derive(seed, number))
    var random = SeededRandom(seed: SeededRandom.derive(workload.seed, -2))
    var trial = CrashTrial(seed: SeededRandom.derive(workload.seed, -1), open: open)
    report.workloads += 1
    do throws(CrashTrial.Failure) {
      let life = random.next()
      let whole = try run(workload, seed: life, trial, faults: [], place: "without a fault")
      if let error = whole.outcome.error {
        throw CrashTrial.Failure(place: "without a fault", reason: error)
      }
      let places = places(in: whole.fileSystem, &random)
      for place in random.evenlySpread(faultsPerWorkload, of: places)
      where report.points < limit {
        report.points += 1
        let left = try run(
          workload, seed: life, trial, faults: [place.fault], place: place.name)
        report.crashes += try look(at: left, &trial, place: place.name)
      }
      return nil
    } catch {
      return CrashViolation(
        seed: seed, number: number, workload: workload, place: error.place, reason: error.reason)
    }
  }

  // MARK: - Faults

  /// A fault and its name.
  private struct Place {
    var fault: Fault
    var name: String
  }

  /// A fault for each operation of the run, and for some of the reads.
  private func places(
    in fileSystem: SimulatedFileSystem, _ random: inout SeededRandom
  ) -> [Place] {
    let reads = fileSystem.count(of: .read)
    let skip = max(1, reads * 4 / max(1, fileSystem.operations))
    let numbered = (0..<fileSystem.operations).flatMap { operation in
      isExhaustive
        ? Way.allCases.map { place(operation, $0) }
        : [place(operation, random.pick([.once, .once, .forEver, .full]))]
    }
    return numbered
      + stride(from: random.below(skip), to: reads, by: skip).map { read in
        let isSticky = random.chance(1, in: 4)
        return Place(
          fault: Fault(
            failing: [.read], after: read, errno: Self.inputOutputError, isSticky: isSticky),
          name: "EIO at read \(read)\(isSticky ? " and after" : "")")
      }
      + (0..<fileSystem.count(of: .reserve)).map { number in
        let isSticky = !random.chance(1, in: 4)
        return Place(
          fault: Fault(
            failing: [.reserve, .create], after: number, errno: Self.noSpace, isSticky: isSticky),
          name: "ENOSPC at allocation \(number)\(isSticky ? " and after" : "")")
      }
  }

  /// The ways in which an operation can fail.
  private enum Way: CaseIterable {
    case once
    case forEver
    /// The disk is full from that operation on.
    case full
  }

  private func place(_ operation: Int, _ way: Way) -> Place {
    switch way {
    case .once, .forEver:
      Place(
        fault: Fault(
          failing: Set(OperationKind.allCases.filter(\.isNumbered)), from: operation,
          errno: Self.inputOutputError, isSticky: way == .forEver),
        name: "EIO at operation \(operation)\(way == .forEver ? " and after" : "")")
    case .full:
      Place(
        fault: Fault(
          failing: [.create, .write, .reserve], from: operation, errno: Self.noSpace, isSticky: true
        ),
        name: "ENOSPC from operation \(operation) on")
    }
  }

  // MARK: - Lives

  private struct Life {
    var fileSystem: SimulatedFileSystem
    var outcome: LifeOutcome
    var record: History.Record
  }

  private func run(
    _ workload: Workload, seed: UInt64, _ trial: CrashTrial, faults: [Fault], place: String
  ) throws(CrashTrial.Failure) -> Life {
    let fileSystem = SimulatedFileSystem()
    fileSystem.inject(faults)
    let history = History(for: fileSystem)
    let outcome: LifeOutcome
    do throws(CrashTrial.Failure) {
      outcome = try trial.attempt(
        workload, on: fileSystem, history, seed: seed, place: place)
    } catch {
      var error = error
      error.place += ", the \(fileSystem.struck ?? "one that never came")"
      throw error
    }
    return Life(fileSystem: fileSystem, outcome: outcome, record: history.value)
  }

  /// Compares the store's answers with its work, and opens its files: unchanged, to continue and be
  /// cut off later, and after power cuts.
  private func look(
    at life: Life, _ trial: inout CrashTrial, place: String
  ) throws(CrashTrial.Failure) -> Int {
    let context = "\(place); the store said: \(life.outcome.error ?? "nothing")"
    var timeline = Timeline.empty
    if let fault = timeline.append(life.record) {
      throw CrashTrial.Failure(place: context, reason: fault)
    }
    let end = life.record.events.count
    let newest = timeline.possibleStates(after: end, crash: .kill).upperBound
    if let last = life.outcome.last,
      let fault = timeline.fault(in: last, allowing: timeline.newest...newest)
    {
      throw CrashTrial.Failure(place: context, reason: "while open, \(fault)")
    }
    var crashes = 0
    for kind in [.kill, .kill, .powerCut, .powerCut] as [CrashKind] {
      let crash = CrashTrial.Crash(
        kind, of: timeline, after: end, place: "\(context), then \(kind)")
      crashes += try trial.recover(
        on: trial.drawDisk(after: kind, life.fileSystem.storage), past: timeline, after: crash,
        crashingAgain: kind == .kill)
    }
    return crashes
  }
}
