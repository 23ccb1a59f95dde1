// Fails one operation of many small workloads, once, and the life continues: the process repeats
// the failed call, as apps do, reopens the store if that does not help, does everything else and
// closes. Then the test opens the store twice without failures. Every acknowledged commit exists,
// and the subject's invariants hold.
//
// Other tests of faults stop at the first error, where this one begins: a store's memory of a
// failure, and its beliefs after it, show in its later work.

internal import OndolEngine

/// Injects one fault under a store that stays in use.
package struct GoOnTest: Sendable {
  package var seed: UInt64
  /// The number of a workload's faults to try, evenly spread; nil for all.
  package var faultsPerWorkload: Int?
  let open: OpenSubject

  package init(seed: UInt64, open: @escaping OpenSubject) {
    self.seed = seed
    self.open = open
  }

  /// Injects faults until there are `count`, or until one broke a promise. Each counts as a point,
  /// and each open after it as a crash.
  package func run(faults count: Int) -> CrashReport {
    CrashReport(until: { $0.points >= count }) { number, report in
      run(workload: number, within: count, into: &report)
    }
  }

  /// Injects faults into the seed's first workload.
  package func runOne() -> CrashReport {
    var report = CrashReport()
    report.violation = run(workload: 0, within: .max, into: &report)
    return report
  }

  private func run(
    workload number: Int, within limit: Int, into report: inout CrashReport
  ) -> CrashViolation? {
    let workload = Workload(seed: SeededRandom.derive(seed, number))
    var random = SeededRandom(seed: SeededRandom.derive(workload.seed, -3))
    let life = random.next()
    report.workloads += 1
    do throws(GoOnFailure) {
      let probes = Mishap.all.map { $0.fault(after: Self.never) }
      let whole = try live(workload, seed: life, faults: probes, isHarsh: false, "without a fault")
      let places = zip(Mishap.all, whole.faults).flatMap { mishap, left in
        (0..<(Self.never - left.after)).map { (mishap, $0) }
      }
      for (mishap, place) in random.evenlySpread(faultsPerWorkload, of: places)
      where report.points < limit {
        report.points += 1
        _ = try live(
          workload, seed: life, faults: [mishap.fault(after: place)], isHarsh: mishap.isHarsh,
          "\(mishap.name) \(place)")
        report.crashes += 2
      }
      return nil
    } catch {
      return CrashViolation(
        seed: seed, number: number, workload: workload, place: error.place, reason: error.reason)
    }
  }

  private static let never = 1 << 40

  /// Runs one life with its faults, and two opens after it. Returns the disk of the first.
  private func live(
    _ workload: Workload, seed: UInt64, faults: [Fault], isHarsh: Bool, _ name: String
  ) throws(GoOnFailure) -> SimulatedFileSystem {
    let fileSystem = SimulatedFileSystem()
    fileSystem.inject(faults)
    let model = Guarded(GoOnModel(isHarsh: isHarsh))
    try run(name, fileSystem, seed, workload.options, model) { life in
      try await life.live(workload.steps)
    }
    let place = "\(name), the \(fileSystem.struck ?? "one that never came")"
    let left = fileSystem.kill()
    for opening in 1...2 {
      try run(
        "\(place), opening \(opening) after it", left, seed &+ UInt64(opening), workload.options,
        model
      ) { life in
        try await life.look()
      }
    }
    return fileSystem
  }

  private func run(
    _ place: String, _ fileSystem: SimulatedFileSystem, _ seed: UInt64, _ options: SubjectOptions,
    _ model: Guarded<GoOnModel>, _ body: @escaping @Sendable (GoOnLife) async throws -> Void
  ) throws(GoOnFailure) {
    let log = Guarded<[String]>([])
    do {
      try SimulationExecutor.run(seed: seed) { [open] executor in
        let world = SimulatedWorld(fileSystem: fileSystem, seed: seed, threads: executor)
        let life = GoOnLife(
          open: { try await open(world.environment, options) }, model: model, log: log)
        try await body(life)
      }
    } catch {
      let heard = log.withLock { $0 }.prefix(6).joined(separator: "; ")
      throw GoOnFailure(
        place: "\(place), the \(fileSystem.struck ?? "one that never came"); heard: \(heard)",
        reason: "\(error)")
    }
  }
}

private struct GoOnFailure: Error {
  var place: String
  var reason: String
}

/// A way in which an operation fails once.
private struct Mishap {
  var name: String
  var kinds: Set<OperationKind>
  var file: FileClass?
  var errno: Int32
  var isShort = false
  /// Whether commits that need not survive a power cut may be lost with it.
  var isHarsh = true

  func fault(after place: Int) -> Fault {
    Fault(failing: kinds, of: file, after: place, errno: errno, isShort: isShort)
  }

  private static let changes: Set<OperationKind> = [
    .create, .open, .write, .sync, .syncDirectory, .remove, .reserve,
  ]

  static let all = [
    Mishap(name: "no descriptor, open", kinds: [.open, .create], errno: 24, isHarsh: false),
    Mishap(
      name: "no descriptor, list", kinds: [.read], file: .directory, errno: 24, isHarsh: false),
    Mishap(name: "no space", kinds: [.create, .reserve], errno: 28, isHarsh: false),
    Mishap(name: "no space, write", kinds: [.write], errno: 28),
    Mishap(name: "a short write", kinds: [.write], errno: 28, isShort: true),
    Mishap(name: "I/O error, read", kinds: [.read], errno: 5, isHarsh: false),
    Mishap(name: "I/O error", kinds: changes, errno: 5),
    Mishap(name: "interrupted, read", kinds: [.read], errno: 4, isHarsh: false),
    Mishap(name: "interrupted", kinds: changes, errno: 4),
  ]
}

/// The possible values of each key.
private struct GoOnModel: Sendable {
  /// Whether the fault may lose commits that need not survive a power cut.
  let isHarsh: Bool
  /// The last one is the newest.
  private var candidates: [[UInt8]: [[UInt8]?]] = [:]
  /// Keys whose newest value is acknowledged, but not yet safe.
  private var unsafe: Set<[UInt8]> = []

  init(isHarsh: Bool) {
    self.isHarsh = isHarsh
  }

  private static func results(_ changes: [Change]) -> [[UInt8]: [UInt8]?] {
    Dictionary(changes.map { ($0.key, $0.value) }) { _, last in last }
  }

  /// Records changes that may exist from now on, or not.
  mutating func began(_ changes: [Change]) {
    for (key, value) in Self.results(changes) {
      candidates[key, default: [nil]].append(value)
      unsafe.remove(key)
    }
  }

  /// Records that concurrent commits were acknowledged, all of them.
  ///
  /// - Parameter hasGoneOn: whether some of them had to be repeated, so that earlier acknowledged
  ///   commits that were not safe may be lost.
  mutating func acknowledged(_ commits: [Workload.Commit], hasGoneOn: Bool) {
    if commits.allSatisfy({ $0.durability == .power }) { saved() }
    var written: [[UInt8]: (values: [[UInt8]?], isSafe: Bool)] = [:]
    for commit in commits {
      for (key, value) in Self.results(commit.changes) {
        let isSafe = !isHarsh || commit.durability == .power
        written[key, default: ([], true)].values.append(value)
        if !isSafe { written[key]?.isSafe = false }
      }
    }
    for (key, (values, isSafe)) in written {
      if isSafe {
        candidates[key] = values
      } else {
        candidates[key, default: [nil]] += values
        if values.count == 1, !hasGoneOn { unsafe.insert(key) }
      }
    }
  }

  /// Everything acknowledged is safe.
  mutating func saved() {
    for key in unsafe { candidates[key] = candidates[key]?.suffix(1) }
    unsafe = []
  }

  /// The store was reopened, and unsafe commits may be lost.
  mutating func reopened() { unsafe = [] }

  /// Returns what is wrong with these rows; nil if nothing is.
  func fault(in rows: Rows) -> String? {
    for (key, values) in candidates where !values.contains(rows[key]) {
      return "at \(key) there is \(Self.text(rows[key])), and there may be "
        + values.map(Self.text).joined(separator: " or ")
    }
    let strangers = rows.keys.filter { candidates[$0] == nil }
    return strangers.isEmpty ? nil : "nobody wrote \(strangers)"
  }

  private static func text(_ value: [UInt8]?) -> String {
    value.map { "<\($0.count): \($0.prefix(8))>" } ?? "nothing"
  }
}

/// A store that is used whatever fails.
private struct GoOnLife: Sendable {
  let open: @Sendable () async throws -> any CrashSubject
  let model: Guarded<GoOnModel>
  let log: Guarded<[String]>

  private static let attempts = 5
  /// The number of attempts before the store is reopened.
  private static let patience = 2

  func live(_ steps: [Workload.Step]) async throws {
    var store = try await openInTheEnd()
    for step in steps { try await take(step, &store) }
    try await insist("contents", &store, check)
    await close(store)
  }

  /// Checks the state after the process has ended, without failures.
  func look() async throws {
    let store = try await open()
    try await check(store)
    try await store.verify()
    try await store.close()
  }

  private func check(_ store: any CrashSubject) async throws {
    let rows = try await store.contents().rows
    if let fault = model.withLock({ $0.fault(in: rows) }) { throw BrokenInvariant(fault) }
  }

  // MARK: - Recording

  private func note(_ what: String, _ error: any Error) {
    log.withLock { $0.append("\(what): \(error)") }
  }

  private func openInTheEnd() async throws -> any CrashSubject {
    for _ in 1..<Self.attempts {
      do {
        let store = try await open()
        try await glance(at: store)
        return store
      } catch let error as BrokenInvariant {
        throw error
      } catch {
        note("open", error)
      }
    }
    return try await open()
  }

  /// Reads everything once, as apps do after a failure and after an open. It may fail, but what it
  /// returns is right.
  private func glance(at store: any CrashSubject) async throws {
    do {
      try await check(store)
    } catch let error as BrokenInvariant {
      throw error
    } catch {
      note("glance", error)
    }
  }

  private func close(_ store: any CrashSubject) async {
    do {
      try await store.close()
      model.withLock { $0.saved() }
    } catch {
      note("close", error)
      // Closing again releases the directory, and says nothing about writes.
      try? await store.close()
    }
  }

  private func reopen(_ store: inout any CrashSubject) async throws {
    await close(store)
    model.withLock { $0.reopened() }
    store = try await openInTheEnd()
  }

  /// Repeats `work` until it succeeds.
  private func insist(
    _ what: String, _ store: inout any CrashSubject,
    _ work: (any CrashSubject) async throws -> Void
  ) async throws {
    for attempt in 1..<Self.attempts {
      do {
        return try await work(store)
      } catch let error as BrokenInvariant {
        throw error
      } catch {
        note(what, error)
      }
      try await glance(at: store)
      if attempt >= Self.patience { try await reopen(&store) }
    }
    try await work(store)
  }

  // MARK: - Steps

  private func take(_ step: Workload.Step, _ store: inout any CrashSubject) async throws {
    switch step {
    case .commit(let changes, let durability):
      try await commit([Workload.Commit(changes: changes, durability: durability)], &store)
    case .together(let commits, let alsoFlush):
      try await commit(commits, alsoFlush: alsoFlush, &store)
    case .synchronize: try await save("synchronize", &store) { try await $0.synchronize() }
    case .flush: try await save("flush", &store) { try await $0.flush() }
    case .settle: try await save("settle", &store) { try await $0.settle() }
    case .reopen: try await reopen(&store)
    }
  }

  private func save(
    _ what: String, _ store: inout any CrashSubject,
    _ work: (any CrashSubject) async throws -> Void
  ) async throws {
    try await insist(what, &store, work)
    model.withLock { $0.saved() }
  }

  /// Makes concurrent commits, and repeats the failed ones, one after another.
  private func commit(
    _ commits: [Workload.Commit], alsoFlush: Bool = false, _ store: inout any CrashSubject
  ) async throws {
    model.withLock { model in
      for commit in commits { model.began(commit.changes) }
    }
    let failed = try await together(commits, alsoFlush: alsoFlush, store)
    for place in failed {
      try await insist("commit again", &store) {
        _ = try await $0.commit(commits[place].changes, commits[place].durability)
      }
    }
    model.withLock { $0.acknowledged(commits, hasGoneOn: !failed.isEmpty) }
  }

  /// Returns the indexes of the failed ones.
  private func together(
    _ commits: [Workload.Commit], alsoFlush: Bool, _ store: any CrashSubject
  ) async throws -> [Int] {
    try await withThrowingTaskGroup(of: Int?.self) { group in
      for (place, commit) in commits.enumerated() {
        group.addTask {
          do {
            _ = try await store.commit(commit.changes, commit.durability)
            return nil
          } catch let error as BrokenInvariant {
            throw error
          } catch {
            note("commit", error)
            return place
          }
        }
      }
      if alsoFlush {
        group.addTask {
          do {
            try await store.flush()
          } catch let error as BrokenInvariant {
            throw error
          } catch {
            note("flush beside commits", error)
          }
          return nil
        }
      }
      var failed: [Int] = []
      for try await place in group { if let place { failed.append(place) } }
      return failed.sorted()
    }
  }
}
