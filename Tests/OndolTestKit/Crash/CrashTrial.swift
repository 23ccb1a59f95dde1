// One workload of a crash test: its first life, and what comes back after each crash.

internal import OndolEngine

struct CrashTrial {
  struct Failure: Error {
    var place: String
    var reason: String
  }

  /// A life of the store, with the disk before each of its operations.
  struct Life {
    var timeline: Timeline
    var pictures: [Picture]
  }

  /// The end of a life, and what may be found after it.
  private struct Crash {
    var kind: CrashKind
    var place: String
    var possible: ClosedRange<Int>
    /// The oldest state possible if the power had been cut.
    var safe: Int
  }

  private let test: CrashTest
  private let workload: Workload
  private var random: SeededRandom

  init(test: CrashTest, workload: Workload) {
    self.test = test
    self.workload = workload
    random = SeededRandom(seed: SeededRandom.derive(workload.seed, -1))
  }

  /// Runs the workload from an empty disk to its end.
  mutating func firstLife() throws(Failure) -> Life {
    try live(
      on: SimulatedStorage(), steps: workload.steps, past: .empty,
      after: Crash(kind: .powerCut, place: "without a crash", possible: 0...0, safe: 0),
      keepingPictures: true)
  }

  /// Crashes `life` at `picture`, and perhaps what was recovered from it too. Returns how many
  /// crashes that were.
  mutating func crash(_ life: Life, at picture: Picture) throws(Failure) -> Int {
    let first = drawCrash(of: life, at: picture)
    let again = random.below(test.recoveriesPerSecondCrash) == 0
    let steps =
      again
      ? Workload.continuation(seed: random.next(), options: workload.options).steps : []
    let next = try live(
      on: drawDisk(after: first.kind, picture), steps: steps, past: life.timeline, after: first,
      keepingPictures: again)
    guard again, !next.pictures.isEmpty else { return 1 }

    let last = random.pick(next.pictures)
    var second = drawCrash(of: next, at: last)
    second.place = "\(first.place), then \(second.place)"
    _ = try live(
      on: drawDisk(after: second.kind, last), steps: [], past: next.timeline, after: second,
      keepingPictures: false)
    return 2
  }

  private mutating func drawCrash(of life: Life, at picture: Picture) -> Crash {
    let kind: CrashKind = random.chance(1, in: 6) ? .kill : .powerCut
    return Crash(
      kind: kind, place: "\(kind) before \(picture.summary)",
      possible: life.timeline.possibleStates(after: picture.note, crash: kind),
      safe: life.timeline.possibleStates(after: picture.note, crash: .powerCut).lowerBound)
  }

  private mutating func drawDisk(after kind: CrashKind, _ picture: Picture) -> SimulatedStorage {
    switch kind {
    case .powerCut: picture.storage.afterPowerCut(seed: random.next())
    case .kill: picture.storage.afterKill()
    }
  }

  // MARK: - Lives

  /// Opens the store on `disk`, checks that it is in one of the states possible after `crash`, does
  /// `steps` and closes it.
  private mutating func live(
    on disk: SimulatedStorage, steps: [Workload.Step], past: Timeline, after crash: Crash,
    keepingPictures: Bool
  ) throws(Failure) -> Life {
    let fileSystem = SimulatedFileSystem(storage: disk, sabotage: test.sabotage)
    if keepingPictures { fileSystem.keepPictures() }
    let history = History(for: fileSystem)
    let outcome: LifeOutcome
    do {
      outcome = try LivingStore.live(
        steps, on: fileSystem, history, seed: random.next(), options: workload.options,
        open: test.open)
    } catch {
      throw Failure(place: crash.place, reason: "\(error)")
    }
    guard let first = outcome.first, let last = outcome.last, outcome.error == nil else {
      throw Failure(
        place: crash.place, reason: "it failed with: \(outcome.error ?? "no error at all")")
    }
    if let fault = past.fault(in: first, allowing: crash.possible) {
      throw Failure(place: crash.place, reason: fault)
    }
    let state = Int(first.sequence)
    // What was found after a power cut is on the disk. What was found after a kill may be in the
    // system's memory only, until the recovery has made it safe.
    let safe = crash.kind == .powerCut ? state : min(crash.safe, state)
    var timeline = past.past(upTo: state, floors: [.powerCut: safe, .kill: state])
    let fault =
      timeline.append(history.value)
      ?? timeline.fault(in: last, allowing: timeline.newest...timeline.newest)
    if let fault {
      throw Failure(place: "\(crash.place), at the end of the life after it", reason: fault)
    }
    return Life(timeline: timeline, pictures: fileSystem.takePictures())
  }
}

extension Picture {
  fileprivate var summary: String { "operation \(operation), \(kind.rawValue) of \(file)" }
}
