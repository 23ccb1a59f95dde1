// Cuts the power at every operation of many small workloads, and looks at what comes back.
//
// One run of a workload leaves a picture of the disk before each of its operations. From each
// picture several damaged disks are drawn; on each the store is opened and compared with the model.
// Some of these recoveries are themselves pictured, go on with a few more steps, and are cut at a
// random operation; what comes back then is compared too. Everything follows from the seed.

/// What a crash test did.
package struct CrashReport: Sendable, CustomStringConvertible {
  /// Lives ended by a power cut or a kill, the second ones included.
  package var crashes = 0
  /// Different operations of different workloads before which that happened.
  package var points = 0
  package var workloads = 0
  package var violation: CrashViolation?

  package var description: String {
    "\(crashes) crashes at \(points) points of \(workloads) workloads: "
      + (violation.map { "\($0)" } ?? "no violation")
  }
}

extension CrashReport {
  /// Runs one workload after the other until `isEnough`, or one broke a promise.
  init(
    until isEnough: (CrashReport) -> Bool, _ run: (Int, inout CrashReport) -> CrashViolation?
  ) {
    self.init()
    var number = 0
    while !isEnough(self), violation == nil {
      violation = run(number, &self)
      number += 1
    }
  }
}

/// A promise broken.
package struct CrashViolation: Error, Sendable, CustomStringConvertible {
  package var seed: UInt64
  /// Which of the seed's workloads.
  package var number: Int
  package var workload: Workload
  /// The operation before which the crash came, and what it would have been.
  package var place: String
  package var reason: String

  package var description: String {
    "SEED=\(seed) WORKLOAD=\(number): \(reason)\n\(place)\n\(workload)"
  }
}

package struct CrashTest: Sendable {
  package var seed: UInt64
  /// A promise that the disk breaks; the test should then find a violation.
  package var sabotage: Sabotage?
  /// Operations of a workload before which it is crashed, evenly spread; all of them when nil.
  package var operationsPerWorkload: Int?
  /// Disks drawn for each operation.
  package var damagesPerOperation = 3
  /// One recovery in this many is crashed again.
  package var recoveriesPerSecondCrash = 3
  let open: OpenSubject

  package init(seed: UInt64, sabotage: Sabotage? = nil, open: @escaping OpenSubject) {
    self.seed = seed
    self.sabotage = sabotage
    self.open = open
  }

  /// Crashes until there have been `count` of them or one broke a promise, which is then made
  /// small.
  package func run(crashes count: Int) -> CrashReport {
    var report = crashUntilBroken(count)
    report.violation = report.violation.map(shrink)
    return report
  }

  /// As `run(crashes:)`, for a store that is known to break a promise: the violation is left as it
  /// is.
  package func crashUntilBroken(_ count: Int) -> CrashReport {
    CrashReport(until: { $0.crashes >= count }) { number, report in
      run(workload: number, within: count, into: &report)
    }
  }

  /// Crashes the seed's first workload at each of its operations; a violation is made small.
  package func runOne() -> CrashReport {
    var report = CrashReport()
    report.violation = run(workload: 0, into: &report).map(shrink)
    return report
  }

  /// Crashes one workload at each of its operations, while `report` counts fewer than `limit`
  /// crashes.
  package func run(
    workload number: Int, within limit: Int = .max, into report: inout CrashReport
  ) -> CrashViolation? {
    enumerate(
      Workload(seed: SeededRandom.derive(seed, number)), number, within: limit, into: &report)
  }

  private func enumerate(
    _ workload: Workload, _ number: Int, within limit: Int, into report: inout CrashReport
  ) -> CrashViolation? {
    let trialSeed = SeededRandom.derive(workload.seed, -1)
    var trial = CrashTrial(seed: trialSeed, sabotage: sabotage, open: open)
    var random = SeededRandom(seed: SeededRandom.derive(workload.seed, -2))
    report.workloads += 1
    do throws(CrashTrial.Failure) {
      let life = try trial.firstLife(workload)
      for picture in random.evenlySpread(operationsPerWorkload, of: life.pictures)
      where report.crashes < limit {
        report.points += 1
        for _ in 0..<damagesPerOperation {
          report.crashes += try trial.crash(
            life, at: picture, again: random.below(recoveriesPerSecondCrash) == 0)
        }
      }
      return nil
    } catch {
      return CrashViolation(
        seed: seed, number: number, workload: workload, place: error.place, reason: error.reason)
    }
  }

  /// Leaves out steps as long as some crash still breaks a promise: first all behind some step,
  /// since a crash knows nothing of what would have come, then stretches of them.
  private func shrink(_ violation: CrashViolation) -> CrashViolation {
    var smallest = violation
    var budget = 40_000
    var length = 1
    while length < smallest.workload.steps.count, budget > 0 {
      var candidate = smallest.workload
      candidate.steps.removeSubrange(length...)
      if let found = search(candidate, violation.number, &budget) {
        smallest = found
        break
      }
      length *= 2
    }
    length = max(1, smallest.workload.steps.count / 2)
    while length >= 1 {
      var start = 0
      while start < smallest.workload.steps.count, budget > 0 {
        var candidate = smallest.workload
        let end = min(start + length, candidate.steps.count)
        candidate.steps.removeSubrange(start..<end)
        if let found = search(candidate, violation.number, &budget) {
          smallest = found
        } else {
          start += length
        }
      }
      length /= 2
    }
    return smallest
  }

  /// Crashes `workload` more thoroughly than `run` does, the more so the shorter it is.
  private func search(
    _ workload: Workload, _ number: Int, _ budget: inout Int
  ) -> CrashViolation? {
    var thorough = self
    thorough.damagesPerOperation *= 8 * max(1, 16 / max(1, workload.steps.count))
    thorough.recoveriesPerSecondCrash = 1
    var report = CrashReport()
    let found = thorough.enumerate(workload, number, within: budget, into: &report)
    budget -= report.crashes + 1
    return found
  }
}
