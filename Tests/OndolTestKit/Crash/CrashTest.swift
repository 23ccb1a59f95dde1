// Cuts the power at every operation of many small workloads, and checks what recovers.
//
// One run of a workload makes a picture of the disk before each of its operations. The test draws
// several damaged disks from each picture, opens the store on each and compares it with the model.
// It pictures some of these recoveries as well, continues them for a few steps, cuts them at a
// random operation, and compares the next recovery too. Everything follows from the seed.

/// The result of a crash test.
package struct CrashReport: Sendable, CustomStringConvertible {
  /// Lives that ended in a power cut or a kill, including the second ones.
  package var crashes = 0
  /// The number of different operations of different workloads before which that happened.
  package var points = 0
  package var workloads = 0
  package var violation: CrashViolation?

  package var description: String {
    "\(crashes) crashes at \(points) points of \(workloads) workloads: "
      + (violation.map { "\($0)" } ?? "no violation")
  }
}

extension CrashReport {
  /// Runs one workload after another until `isEnough`, or until one broke a promise.
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

/// A broken promise.
package struct CrashViolation: Error, Sendable, CustomStringConvertible {
  package var seed: UInt64
  /// The number of the seed's workload.
  package var number: Int
  package var workload: Workload
  /// The operation before which the crash came, and its description.
  package var place: String
  package var reason: String

  package var description: String {
    "SEED=\(seed) WORKLOAD=\(number): \(reason)\n\(place)\n\(workload)"
  }
}

package struct CrashTest: Sendable {
  package var seed: UInt64
  /// A promise that the disk breaks. The test must then find a violation.
  package var sabotage: Sabotage?
  /// The number of a workload's operations with a crash before them, evenly spread; nil for all of
  /// them.
  package var operationsPerWorkload: Int?
  /// Disks to draw for each operation.
  package var damagesPerOperation = 3
  /// One recovery in this many crashes again.
  package var recoveriesPerSecondCrash = 3
  let open: OpenSubject

  package init(seed: UInt64, sabotage: Sabotage? = nil, open: @escaping OpenSubject) {
    self.seed = seed
    self.sabotage = sabotage
    self.open = open
  }

  /// Crashes until there are `count` crashes or one broke a promise, and then reduces that
  /// workload.
  package func run(crashes count: Int) -> CrashReport {
    var report = crashUntilBroken(count)
    report.violation = report.violation.map(shrink)
    return report
  }

  /// Works as `run(crashes:)`, for a store that is known to break a promise: it does not reduce the
  /// violation.
  package func crashUntilBroken(_ count: Int) -> CrashReport {
    CrashReport(until: { $0.crashes >= count }) { number, report in
      run(workload: number, within: count, into: &report)
    }
  }

  /// Crashes the seed's first workload at each of its operations, and reduces a violation.
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

  /// Removes steps as long as some crash still breaks a promise: first all steps after some step,
  /// because a crash does not depend on later ones, then ranges of them.
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

  /// Crashes `workload` more thoroughly than `run` does, and the more thoroughly the shorter it is.
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
