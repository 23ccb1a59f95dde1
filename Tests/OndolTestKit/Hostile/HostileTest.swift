// Damages a small database in every way that Damage.swift lists, with wrong and with corrected
// checksums, and reads everything. An answer is correct or refused, nothing traps, and nothing
// continues forever.
//
// There are two exceptions. With corrected checksums, values may differ. And an unclosed log ends
// at its last sound frame: for commits that nothing later vouches for, damage looks like a torn
// tail, as Docs/FileFormat.md describes.

/// The results of damages.
package struct HostileReport: Sendable, CustomStringConvertible {
  package var cases = 0
  /// Damages after which something was refused.
  package var refused = 0
  /// Damages after which every answer was correct.
  package var unharmed = 0
  /// Damages to the end of a log that were taken for a torn tail.
  package var tornTails = 0
  /// Damages with corrected checksums after which values differed.
  package var otherAnswers = 0
  package var violation: String?

  package init() {}

  /// The five counts in their order.
  package init(counts: [Int], violation: String?) {
    guard counts.count == 5 else { return }
    (cases, refused, unharmed) = (counts[0], counts[1], counts[2])
    (tornTails, otherAnswers) = (counts[3], counts[4])
    self.violation = violation
  }

  package var description: String {
    "\(cases) cases: \(refused) refused, \(unharmed) unharmed, \(tornTails) torn tails, "
      + "\(otherAnswers) other answers behind right checksums"
      + (violation.map { "; \($0)" } ?? "")
  }

  package static func += (left: inout HostileReport, right: HostileReport) {
    left.cases += right.cases
    left.refused += right.refused
    left.unharmed += right.unharmed
    left.tornTails += right.tornTails
    left.otherAnswers += right.otherAnswers
    left.violation = left.violation ?? right.violation
  }

  fileprivate mutating func add(_ outcome: HostileOutcome) {
    cases += 1
    switch outcome {
    case .refused: refused += 1
    case .unharmed: unharmed += 1
    case .tornTail: tornTails += 1
    case .otherAnswer: otherAnswers += 1
    }
  }
}

/// All damages to the databases of one seed.
package struct HostileTest: Sendable {
  /// A database to damage.
  private struct Stage: Sendable {
    var sample: HostileSample
    var other: HostileSample
    var damages: DamageList
    var resealing: Resealing
  }

  private let stages: [Stage]

  package init(seed: UInt64) throws {
    stages = try [true, false].map { closing in
      let sample = try HostileSample.make(seed: seed, closing: closing)
      return Stage(
        sample: sample, other: try HostileSample.make(seed: seed &+ 1, closing: closing),
        damages: DamageList(
          sample.files.sorted { $0.key < $1.key }.map { ($0.key, $0.value.count) }),
        resealing: Resealing(sample.files))
    }
  }

  /// The number of cases: each damage with wrong, and with corrected checksums.
  package var count: Int { stages.reduce(0) { $0 + 2 * $1.damages.count } }

  /// The files of the databases, for reports of the damaged part.
  package var inventory: String {
    stages.map { stage in
      (stage.sample.isClosed ? "closed: " : "open: ")
        + stage.sample.files.sorted { $0.key < $1.key }
        .map { "\($0.key) \($0.value.count)" }.joined(separator: ", ")
    }.joined(separator: "\n")
  }

  /// Runs the cases with these numbers, up to the first violation.
  package func run(_ numbers: some Sequence<Int>) -> HostileReport {
    var report = HostileReport()
    for number in numbers where report.violation == nil {
      do {
        report.add(try run(number))
      } catch {
        report.cases += 1
        report.violation = "case \(number), \(describe(number)): \(error)"
      }
    }
    return report
  }

  package func describe(_ number: Int) -> String {
    guard let (stage, damage, isResealed) = find(number) else { return "no case" }
    return "\(damage) in a database that was \(stage.sample.isClosed ? "closed" : "killed")"
      + (isResealed ? ", checksums made right" : "")
  }

  private func find(_ number: Int) -> (Stage, Damage, isResealed: Bool)? {
    var rest = number
    for stage in stages {
      if rest < 2 * stage.damages.count {
        return (stage, stage.damages[rest / 2], rest % 2 == 1)
      }
      rest -= 2 * stage.damages.count
    }
    return nil
  }

  private func run(_ number: Int) throws -> HostileOutcome {
    guard let (stage, damage, isResealed) = find(number),
      let bytes = stage.sample.files[damage.file]
    else { throw BrokenInvariant("there are \(count) cases") }
    let part = FileClass(name: damage.file)
    let other = stage.other.files.filter { FileClass(name: $0.key) == part }
      .min { $0.key < $1.key }?.value
    var files = stage.sample.files
    files[damage.file] = damage.apply(to: bytes, other: other)
    if isResealed { stage.resealing.seal(damage.file, in: &files) }
    let trial = HostileTrial(sample: stage.sample, isResealed: isResealed)
    return try trial.look(at: files, allowing: states(after: damage, part, stage.sample))
  }

  /// The possible states.
  private func states(
    after damage: Damage, _ part: FileClass, _ sample: HostileSample
  ) -> Range<Int> {
    let end = sample.states.count
    guard part == .log else { return (end - 1)..<end }
    switch damage.kind {
    // The last commit of an unclosed log has nothing after it.
    case .flip: return (sample.isClosed ? end - 1 : end - 2)..<end
    // Several commits may be gone, with everything that vouched for them.
    case .truncate, .zero, .double, .swap: return 0..<end
    case .remove, .exchange: return (end - 1)..<end
    }
  }
}
