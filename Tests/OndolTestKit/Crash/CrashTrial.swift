// One workload of a crash test: its first life, and the recovery after each crash.

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
    /// Whether all states of its past are known. They are not if it began with several commits that
    /// had been reported as failed.
    var knowsItsPast: Bool
  }

  /// The end of a life, and the possible states after it.
  struct Crash {
    var kind: CrashKind
    var place: String
    var possible: ClosedRange<Int>
    /// The oldest possible state after a power cut.
    var safe: Int

    /// A crash after the first `events` of the timeline.
    init(_ kind: CrashKind, of timeline: Timeline, after events: Int, place: String) {
      self.kind = kind
      self.place = place
      possible = timeline.possibleStates(after: events, crash: kind)
      safe = timeline.possibleStates(after: events, crash: .powerCut).lowerBound
    }
  }

  private let open: OpenSubject
  private let sabotage: Sabotage?
  private var random: SeededRandom

  init(seed: UInt64, sabotage: Sabotage? = nil, open: @escaping OpenSubject) {
    self.open = open
    self.sabotage = sabotage
    random = SeededRandom(seed: seed)
  }

  /// Runs the workload from an empty disk to its end.
  mutating func firstLife(_ workload: Workload) throws(Failure) -> Life {
    let past = Timeline.empty
    return try live(
      workload, on: SimulatedStorage(), past: past,
      after: Crash(.powerCut, of: past, after: 0, place: "without a crash"), keepingPictures: true)
  }

  /// Crashes `life` at `picture`, checks the recovery, and perhaps crashes that as well. Returns
  /// the number of crashes.
  mutating func crash(
    _ life: Life, at picture: Picture, again: Bool
  ) throws(Failure) -> Int {
    let crash = drawCrash(of: life, at: picture, after: "")
    return try recover(
      on: drawDisk(after: crash.kind, picture.storage), past: life.timeline, after: crash,
      crashingAgain: again)
  }

  /// Opens the store on `disk`, compares it with its past, and perhaps continues a little and
  /// crashes it again, at a random moment. Returns the number of crashes by then.
  mutating func recover(
    on disk: SimulatedStorage, past: Timeline, after crash: Crash, crashingAgain: Bool
  ) throws(Failure) -> Int {
    var workload = Workload.continuation(seed: random.next())
    if !crashingAgain { workload.steps = [] }
    let next = try live(
      workload, on: disk, past: past, after: crash, keepingPictures: crashingAgain)
    guard crashingAgain, next.knowsItsPast, !next.pictures.isEmpty else { return 1 }
    let picture = random.pick(next.pictures)
    let second = drawCrash(of: next, at: picture, after: crash.place + ", then ")
    workload.steps = []
    _ = try live(
      workload, on: drawDisk(after: second.kind, picture.storage), past: next.timeline,
      after: second, keepingPictures: false)
    return 2
  }

  private mutating func drawCrash(
    of life: Life, at picture: Picture, after place: String
  ) -> Crash {
    let kind: CrashKind = random.chance(1, in: 6) ? .kill : .powerCut
    return Crash(
      kind, of: life.timeline, after: picture.note,
      place: "\(place)\(kind) before \(picture.summary)")
  }

  mutating func drawDisk(
    after kind: CrashKind, _ storage: SimulatedStorage
  ) -> SimulatedStorage {
    switch kind {
    case .powerCut: storage.afterPowerCut(seed: random.next())
    case .kill: storage.afterKill()
    }
  }

  // MARK: - Lives

  /// Opens the store on `disk`, checks that it is in one of the possible states after `crash`, does
  /// the steps of `workload` and closes it.
  private mutating func live(
    _ workload: Workload, on disk: SimulatedStorage, past: Timeline, after crash: Crash,
    keepingPictures: Bool
  ) throws(Failure) -> Life {
    let fileSystem = SimulatedFileSystem(storage: disk, sabotage: sabotage)
    if keepingPictures { fileSystem.keepPictures() }
    let history = History(for: fileSystem)
    let outcome = try attempt(
      workload, on: fileSystem, history, seed: random.next(), place: crash.place)
    guard let first = outcome.first, let last = outcome.last, outcome.error == nil else {
      throw Failure(
        place: crash.place, reason: "it failed with: \(outcome.error ?? "no error at all")")
    }
    if let fault = past.fault(in: first, allowing: crash.possible) {
      throw Failure(place: crash.place, reason: fault)
    }
    let state = Int(first.sequence)
    // State that was found after a power cut is on the disk. State that was found after a kill may
    // be only in the system's memory, until the recovery has made it safe.
    let safe = crash.kind == .powerCut ? state : min(crash.safe, state)
    var timeline = past.admitting(first)
      .past(upTo: state, floors: [.powerCut: safe, .kill: state])
    let fault =
      timeline.append(history.value)
      ?? timeline.fault(in: last, allowing: timeline.newest...timeline.newest)
    if let fault {
      throw Failure(
        place: "\(crash.place), at the end of the life after it, which began after commit \(state)"
          + " and did:\n\(workload)\nThe workload before it:", reason: fault)
    }
    return Life(
      timeline: timeline, pictures: fileSystem.takePictures(),
      knowsItsPast: state <= past.newest + 1)
  }

  /// Runs one life, whatever its result.
  func attempt(
    _ workload: Workload, on fileSystem: SimulatedFileSystem, _ history: History, seed: UInt64,
    place: String
  ) throws(Failure) -> LifeOutcome {
    let outcome: LifeOutcome
    do {
      outcome = try LivingStore.live(
        workload.steps, on: fileSystem, history, seed: seed, options: workload.options, open: open)
    } catch {
      throw Failure(place: place, reason: "\(error)")
    }
    if let broken = outcome.brokenInvariant { throw Failure(place: place, reason: broken) }
    return outcome
  }
}

extension Picture {
  fileprivate var summary: String { "operation \(operation), \(kind.rawValue) of \(file)" }
}
