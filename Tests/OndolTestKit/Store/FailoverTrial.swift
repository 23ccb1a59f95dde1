// Three processes on one store whose server dies again and again, before or after it has handled a
// request. A standby takes over that has every acknowledged commit, and some of the others.
// Requests and answers are lost as well, groups arrive late, after their sender has given them up,
// and versions are forgotten.
//
// The promises hold whatever happens. An acknowledged commit exists once, under its reported
// number. A commit reported as not happened does not exist. Numbers have no gap. An addition to a
// guarded row is never lost. A listener or reader of the history receives every commit, in order.

internal import OndolEngine

/// The counts of a trial.
package struct FailoverCounts: Sendable {
  package var failovers = 0
  /// Commits that dead servers had and their standbys did not. Nobody had received them.
  package var lostWithServers = 0
  package var commits = 0
  /// Answers and requests that were lost.
  package var silences = 0
  /// Groups that were committed after their sender had given them up.
  package var late = 0
  /// Commits that were reported as not happened.
  package var refused = 0

  package init() {}

  package static func += (left: inout FailoverCounts, right: FailoverCounts) {
    left.failovers += right.failovers
    left.lostWithServers += right.lostWithServers
    left.commits += right.commits
    left.silences += right.silences
    left.late += right.late
    left.refused += right.refused
  }
}

/// A broken promise.
package struct FailoverFault: Error, CustomStringConvertible {
  package let description: String
}

package struct FailoverTrial: Sendable {
  private static let processes = 3
  private static let writers = 2
  /// The keyspace of all rows, and the row that all add to.
  private static let keyspace: [UInt8] = [0, 1, 0, 0]
  private static let counter = keyspace + [255]

  private let seed: UInt64
  private let failovers: Int
  private let store: SimulatedStore
  private let environment: Environment

  /// A commit as its writer was told.
  private struct Told: Sendable {
    var key: [UInt8]
    /// Nil if it was reported as not happened.
    var sequence: SequenceNumber?
    var addsOne: Bool
  }

  /// Marks commits that listeners receive.
  private final class Note: Sendable {}

  /// Runs until the server has died this many times.
  package static func run(seed: UInt64, failovers: Int) throws -> FailoverCounts {
    try SimulationExecutor.run(seed: seed) { executor in
      let world = SimulatedWorld(seed: seed, threads: executor)
      // The server has a clock of its own. In the other one a pause of half a minute takes no time,
      // so a slow process would be considered dead.
      let machine = SimulatedWorld(seed: seed ^ 1, threads: executor)
      defer { withExtendedLifetime((world, machine)) {} }
      let store = SimulatedStore(
        seed: seed, environment: machine.environment, faults: StoreFaults(delay: 2_000))
      return try await FailoverTrial(
        seed: seed, failovers: failovers, store: store, environment: world.environment
      ).run()
    }
  }

  private func run() async throws -> FailoverCounts {
    var engines: [Engine] = []
    var listeners: [Listener] = []
    var options = EngineOptions()
    options.historyRetention = HistoryRetention(microseconds: .max, bytes: .max)
    // Small, so that bases move.
    options.memtableSize = 4 << 10
    for _ in 0..<Self.processes {
      let engine = try await Engine.open(on: store, options: options, environment: environment)
      engines.append(engine)
      listeners.append(Listener(to: engine))
    }
    store.faults = StoreFaults(
      lostRequests: 30, lostAnswers: 60, lateRequests: 60, failovers: 100, delay: 2_000)
    let (told, heard) = try await withThrowingTaskGroup(of: ([Told], [LoggedCommit]).self) {
      [engines] tasks in
      for (number, engine) in engines.enumerated() {
        for writer in 0..<Self.writers {
          tasks.addTask { (try await write(to: engine, number * Self.writers + writer), []) }
        }
      }
      tasks.addTask {
        await forget(engines)
        return ([], [])
      }
      tasks.addTask { ([], try await follow(engines[0])) }
      return try await tasks.reduce(into: ([Told](), [LoggedCommit]())) { all, some in
        all.0 += some.0
        all.1 += some.1
      }
    }
    store.faults = .none
    for engine in engines { _ = try await engine.refresh() }
    let commits = try await history(of: engines[1], behind: CommitPoint(sequence: .zero, time: 0))
    try check(commits, told, heard)
    for (listener, engine) in zip(listeners, engines) {
      await engine.finishAnnouncing(through: store.head.sequence)
      try listener.check(through: store.head.sequence, seed)
    }
    for engine in engines { try await engine.close() }
    return counts(commits, told)
  }

  private func counts(_ commits: [LoggedCommit], _ told: [Told]) -> FailoverCounts {
    var counts = FailoverCounts()
    let trips = store.trips
    (counts.failovers, counts.lostWithServers) = (trips.failovers, trips.lostCommits)
    (counts.silences, counts.late) = (trips.silences, trips.late)
    counts.commits = commits.count
    counts.refused = told.count { $0.sequence == nil }
    return counts
  }

  private var isOver: Bool { store.trips.failovers >= failovers }

  // MARK: - Tasks

  /// Makes commits one after another, each with a key of its own. Every third adds one to a row.
  private func write(to engine: Engine, _ writer: Int) async throws -> [Told] {
    var told: [Told] = []
    while !isOver {
      let number = told.count
      let key = Self.keyspace + [UInt8(writer), UInt8(number >> 8 & 255), UInt8(number & 255)]
      let addsOne = number % 3 == 2
      var sequence: SequenceNumber?
      do throws(EngineError) {
        sequence = try await commit(key, addsOne, to: engine).sequence
      } catch {
        guard case .unreachable = error else { throw error }
      }
      told.append(Told(key: key, sequence: sequence, addsOne: addsOne))
    }
    return told
  }

  private func commit(
    _ key: [UInt8], _ addsOne: Bool, to engine: Engine
  ) async throws(EngineError) -> CommitReceipt {
    while true {
      var batch = Batch()
      batch.put(key.bytes, key.bytes)
      batch.annotate(key.bytes)
      batch.note = Note()
      if addsOne {
        let snapshot = try engine.snapshot()
        let value = Self.number(try snapshot.getBlocking(Self.counter)) + 1
        batch.put(Self.counter.bytes, Self.bytes(value).bytes)
        batch.basis = snapshot.sequence
        batch.guardUnchanged(Self.counter.bytes)
      }
      do throws(EngineError) {
        return try await engine.commit(batch, durability: .power)
      } catch {
        guard error == .stale else { throw error }
      }
    }
  }

  private static func bytes(_ value: Int) -> [UInt8] {
    [16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
  }

  private static func number(_ bytes: [UInt8]?) -> Int {
    (bytes ?? []).reduce(0) { $0 << 8 | Int($1) }
  }

  /// Makes the store forget, from time to time, versions that nothing reads any more.
  private func forget(_ engines: [Engine]) async {
    var turn = 0
    while !isOver {
      turn += 1
      let engine = engines[turn % engines.count]
      try? await engine.flush(shardOf: Self.counter)
      await engine.forgetVersions()
      await environment.rest(20_000)
    }
  }

  /// Reads the history as it comes.
  private func follow(_ engine: Engine) async throws -> [LoggedCommit] {
    var history = engine.history(after: CommitPoint(sequence: .zero, time: 0))
    var heard: [LoggedCommit] = []
    while !isOver {
      do throws(EngineError) {
        heard += try await history.next()
      } catch {
        // The first time nothing waits.
        guard case .unreachable = error else { throw error }
      }
      await environment.rest(3_000)
    }
    return heard
  }

  private func history(
    of engine: Engine, behind point: CommitPoint
  ) async throws -> [LoggedCommit] {
    var history = engine.history(after: point)
    var commits: [LoggedCommit] = []
    while case let some = try await history.next(), !some.isEmpty { commits += some }
    return commits
  }

  // MARK: - Checks

  private func fault(_ description: String) -> FailoverFault {
    FailoverFault(description: "seed \(seed): \(description)")
  }

  private func check(
    _ commits: [LoggedCommit], _ told: [Told], _ heard: [LoggedCommit]
  ) throws {
    guard commits.map(\.point.sequence.rawValue) == Array(1...store.head.sequence.rawValue),
      zip(commits, commits.dropFirst()).allSatisfy({ $0.point.time < $1.point.time })
    else { throw fault("numbers or times are out of order") }
    guard heard == Array(commits.prefix(heard.count)) else {
      throw fault("a history that was read as it came is not the one there is")
    }
    var places: [[UInt8]: [SequenceNumber]] = [:]
    for commit in commits {
      places[commit.annotations.first ?? [], default: []].append(commit.point.sequence)
    }
    let rows = try store.rows(
      from: Self.keyspace, to: [], reversed: false, atMost: .max, asOf: store.head)
    let numbers = Dictionary(uniqueKeysWithValues: rows.map { ($0.key, $0.sequence) })
    for commit in told {
      let expected = commit.sequence.map { [$0] } ?? []
      guard places[commit.key] ?? [] == expected, numbers[commit.key] == commit.sequence else {
        throw fault(
          "\(commit.key) was told to be at \(expected) and is at \(places[commit.key] ?? []), its"
            + " row at \(String(describing: numbers[commit.key]))")
      }
    }
    guard commits.count == told.count(where: { $0.sequence != nil }) else {
      throw fault("\(commits.count) commits, and others were acknowledged")
    }
    let added = told.count { $0.addsOne && $0.sequence != nil }
    let value = rows.first { $0.key == Self.counter }?.value.suffix(3)
    guard Self.number(value.map { Array($0) }) == added else {
      throw fault("\(added) were added to a row that says \(String(describing: value))")
    }
  }
}

/// Receives commits and checks that each comes, in order.
private final class Listener: Sendable {
  private struct State {
    var last = SequenceNumber.zero
    var fault: String?
  }

  private let state = Guarded(State())

  init(to engine: Engine) {
    engine.follow { [state] announcement in
      Self.take(announcement.sequence, behind: nil, state)
    }
    engine.observeRefreshes { [state] step in
      Self.take(step.after.sequence, behind: step.before.sequence, state)
    }
  }

  /// - Parameter before: the commit after which a step begins; the previous one if it is a commit.
  private static func take(
    _ sequence: SequenceNumber, behind before: SequenceNumber?, _ state: Guarded<State>
  ) {
    state.withLock { state in
      let before = before ?? SequenceNumber(rawValue: sequence.rawValue - 1)
      if before != state.last || sequence <= before {
        state.fault =
          "told of \(sequence.rawValue) behind \(before.rawValue), and before of"
          + " \(state.last.rawValue)"
      }
      state.last = sequence
    }
  }

  func check(through last: SequenceNumber, _ seed: UInt64) throws {
    let state = state.withLock { $0 }
    if let fault = state.fault { throw FailoverFault(description: "seed \(seed): \(fault)") }
    guard state.last == last else {
      throw FailoverFault(
        description: "seed \(seed): told up to \(state.last.rawValue) of \(last.rawValue)")
    }
  }
}
