// A store in memory, which behaves as a server on a network does and a test cannot force it to: it
// answers late, loses an answer after the commit is made, or a request before it, and moves to a
// standby without the newest commits. A seed decides everything random.

package import OndolEngine

/// The faults of a simulated store, each in a number of a thousand calls.
package struct StoreFaults: Sendable {
  /// Requests that do not arrive.
  package var lostRequests = 0
  /// Commits that are made, but whose answer is lost.
  package var lostAnswers = 0
  /// Commits whose sender gets no answer, and that are made some time later.
  package var lateRequests = 0
  /// Calls at which the server dies, before or after it has handled the request, and a standby
  /// takes over that has everything that survives a power cut.
  package var failovers = 0
  /// The longest duration of a call, in microseconds.
  package var delay: Int64 = 0

  package init(
    lostRequests: Int = 0, lostAnswers: Int = 0, lateRequests: Int = 0, failovers: Int = 0,
    delay: Int64 = 0
  ) {
    self.lostRequests = lostRequests
    self.lostAnswers = lostAnswers
    self.lateRequests = lateRequests
    self.failovers = failovers
    self.delay = delay
  }

  package static let none = StoreFaults()
}

/// The number of each kind of request to a store.
package struct StoreTrips: Sendable, Equatable {
  package var appends = 0
  package var commits = 0
  package var histories = 0
  /// Answers and requests that were lost.
  package var silences = 0
  /// Groups that arrived after their sender had given them up.
  package var late = 0
  package var failovers = 0
  /// Commits that a standby lacked when it took over.
  package var lostCommits = 0
}

/// A `RemoteStore` in memory.
package final class SimulatedStore: RemoteStore {
  let state: Guarded<SimulatedServer>
  private let identity: DatabaseIdentity
  private let news = Guarded<(@Sendable () async -> Void)?>(nil)
  let environment: Environment

  package var name: String { "a simulated store" }

  package init(seed: UInt64, environment: Environment = .memory(), faults: StoreFaults = .none) {
    var random = SeededRandom(seed: seed)
    identity = DatabaseIdentity(low: random.next(), high: random.next())
    var state = SimulatedServer(random: random)
    state.faults = faults
    self.state = Guarded(state)
    self.environment = environment
  }

  // MARK: - Controls for tests

  package var trips: StoreTrips { state.withLock { $0.trips } }

  /// The reads that `body` makes on its own thread, without background reads: an open still looks
  /// for the remains of dead processes while its first reads run.
  package static func reads(of body: () throws -> Void) rethrows -> Int {
    let reads = Guarded(0)
    try $ownReads.withValue(reads, operation: body)
    return reads.withLock { $0 }
  }

  @TaskLocal private static var ownReads: Guarded<Int>?

  /// Runs before each answer to a request for commits.
  package func beforeNews(_ body: @escaping @Sendable () async -> Void) {
    news.withLock { $0 = body }
  }

  package var faults: StoreFaults {
    get { state.withLock { $0.faults } }
    set { state.withLock { $0.faults = newValue } }
  }

  /// Whether it is unreachable.
  package var isAway: Bool {
    get { state.withLock { $0.isAway } }
    set {
      let observers = state.withLock { state in
        defer { state.isAway = newValue }
        return state.isAway == newValue ? [] : state.reachObservers
      }
      for observer in observers { observer(newValue) }
    }
  }

  package func observeReach(_ observer: @escaping @Sendable (_ isAway: Bool) -> Void) {
    state.withLock { $0.reachObservers.append(observer) }
  }

  /// The number of kept versions.
  package var versionCount: Int {
    state.withLock { $0.versions.values.reduce(0) { $0 + $1.count } }
  }

  /// The remembered commits, in order.
  package var newestCommits: [RemoteCommit] { state.withLock { $0.log.map(\.commit) } }

  /// The newest commit.
  package var head: CommitPoint { state.withLock { $0.head } }

  /// Loses the newest commits, at most the existing and not yet forgotten ones: those that a
  /// standby has not received when it takes over.
  package func loseNewest(_ count: Int) {
    let woken = state.withLock { state in
      state.loseNewest(count)
      state.durable = min(state.durable, state.head.sequence)
      return state.takeWaiters()
    }
    for continuation in woken { continuation.resume() }
  }

  // MARK: - Commits

  package func open(_ process: Int64) async throws(EngineError) -> RemoteHead {
    try await travel()
    let now = environment.now()
    return state.withLock { state in
      state.pins[process] = SimulatedServer.Pin(
        sequence: state.head.sequence, until: now + 600_000_000)
      state.durable = state.head.sequence
      return RemoteHead(identity: identity, point: state.head)
    }
  }

  package func append(_ group: RemoteGroup) async throws(EngineError) -> RemoteAppend {
    guard group.annotations.isEmpty || group.annotations.count == group.commits.count else {
      throw .invalid(reason: "\(group.annotations.count) annotations")
    }
    try await travel(with: group)
    let now = environment.now()
    let (outcome, life, woken) = state.withLock {
      state -> (RemoteAppend, Int, [CheckedContinuation<Void, Never>]) in
      state.trips.appends += 1
      let outcome = state.append(group, at: now)
      return (outcome, state.trips.failovers, state.takeWaiters())
    }
    for continuation in woken { continuation.resume() }
    let isLost = state.withLock { state in
      state.failOverPerhaps()
      // A server that no longer exists does not answer.
      if state.trips.failovers != life { return true }
      let isLost = state.random.chance(state.faults.lostAnswers, in: 1000)
      // If the answer is lost, it is unknown whether the standby has it.
      if case .done(let first) = outcome, group.isDurable, !isLost || state.random.chance(1, in: 2)
      {
        let last = first.sequence.rawValue + UInt64(group.commits.count) - 1
        state.durable = max(state.durable, SequenceNumber(rawValue: last))
      }
      return isLost
    }
    if isLost { throw silence() }
    return outcome
  }

  package func outcome(
    of part: Int64, from origin: Int64
  ) async throws(EngineError) -> CommitPoint? {
    try await travel()
    return state.withLock { state in
      state.fenced.insert(origin)
      state.durable = state.head.sequence
      return state.log.first { $0.part == part && $0.commit.origin == origin }?.commit.point
    }
  }

  package func commits(
    behind point: CommitPoint, atMost count: Int
  ) async throws(EngineError) -> RemoteNews {
    try await travel()
    await news.withLock { $0 }?()
    return try state.withLock { state throws(EngineError) in
      state.trips.commits += 1
      guard state.knows(point) else {
        throw .notInHistory(reason: "\(name) has no commit \(point.sequence.rawValue)")
      }
      let behind = state.log.drop { $0.commit.point.sequence <= point.sequence }
      let told = behind.prefix(count).map(\.commit)
      if let last = told.last { state.durable = max(state.durable, last.point.sequence) }
      return RemoteNews(commits: told, newest: state.head.sequence)
    }
  }

  package func waitForCommits(
    behind point: CommitPoint, atMost microseconds: Int64
  ) async throws(EngineError) -> SequenceNumber {
    await withTaskGroup(of: Void.self) { [environment] tasks in
      tasks.addTask { [self] in await waitForCommit(behind: point) }
      tasks.addTask { await environment.rest(microseconds) }
      await tasks.next()
      tasks.cancelAll()
    }
    let (head, isLost) = state.withLock { ($0.head.sequence, $0.hasLost(point)) }
    if isLost { throw .notInHistory(reason: "\(name) has no commit \(point.sequence.rawValue)") }
    return head
  }

  private func waitForCommit(behind point: CommitPoint) async {
    let number = state.withLock { state in
      state.lastWaiter += 1
      return state.lastWaiter
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          if Task.isCancelled || state.head.sequence > point.sequence { return true }
          if state.hasLost(point) { return true }
          state.waiters[number] = SimulatedServer.Waiter(point: point, continuation: continuation)
          return false
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      let waiter = state.withLock { $0.waiters.removeValue(forKey: number) }
      waiter?.continuation.resume()
    }
  }

  // MARK: - Rows

  package func rows(
    from lower: [UInt8], to upper: [UInt8], reversed: Bool, atMost count: Int,
    asOf base: CommitPoint
  ) throws(EngineError) -> [RemoteRow] {
    try state.withLock { state throws(EngineError) in
      Self.ownReads?.withLock { $0 += 1 }
      try state.refuse(base, name)
      let start = state.place(of: lower)
      let end = upper.isEmpty ? state.keys.count : max(start, state.place(of: upper))
      var rows: [RemoteRow] = []
      var places = reversed ? Array((start..<end).reversed()) : Array(start..<end)
      places.removeAll { state.row(at: state.keys[$0], base.sequence) == nil }
      for place in places.prefix(count) {
        if let row = state.row(at: state.keys[place], base.sequence) { rows.append(row) }
      }
      return reversed ? rows.reversed() : rows
    }
  }

  package func rows(
    at keys: [[UInt8]], asOf base: CommitPoint
  ) throws(EngineError) -> [RemoteRow] {
    try state.withLock { state throws(EngineError) in
      Self.ownReads?.withLock { $0 += 1 }
      try state.refuse(base, name)
      return keys.compactMap { state.row(at: $0, base.sequence) }
    }
  }

  /// Answers only sometimes.
  package func rowsAtOnce(
    at keys: [[UInt8]], asOf base: CommitPoint
  ) throws(EngineError) -> [RemoteRow]? {
    try state.withLock { state throws(EngineError) in
      guard state.random.chance(1, in: 2) else { return nil }
      Self.ownReads?.withLock { $0 += 1 }
      try state.refuse(base, name)
      return keys.compactMap { state.row(at: $0, base.sequence) }
    }
  }

  // MARK: - Versions

  package func pin(
    _ point: CommitPoint, for process: Int64, microseconds: Int64
  ) async throws(EngineError) -> SequenceNumber {
    try await travel()
    let now = environment.now()
    return try state.withLock { state throws(EngineError) in
      guard point.sequence >= state.floor.sequence else { throw .superseded(file: name) }
      guard state.knows(point) else {
        throw .notInHistory(reason: "\(name) has no commit \(point.sequence.rawValue)")
      }
      state.pins[process] = SimulatedServer.Pin(
        sequence: point.sequence, until: now + microseconds)
      return state.oldestPin(at: now)
    }
  }

  package func processes(
    pinnedFor microseconds: Int64
  ) async throws(EngineError) -> Set<Int64> {
    try await travel()
    let now = environment.now()
    return state.withLock { Set($0.pins.filter { $0.value.until > now + microseconds }.keys) }
  }

  package func forget() async throws(EngineError) -> Int {
    try await travel()
    let now = environment.now()
    return state.withLock { $0.forget(at: now) }
  }

  package func history(
    behind sequence: SequenceNumber, atMost count: Int
  ) async throws(EngineError) -> RemoteHistory {
    try await travel()
    return state.withLock { state in
      state.trips.histories += 1
      let behind = state.history.drop { $0.annotation.point.sequence <= sequence }
      let own = state.history.last { $0.annotation.point.sequence == sequence }
      let next = behind.first { $0.annotation.point.sequence == sequence.next }
      let head = state.head.sequence == sequence ? state.head.time : nil
      return RemoteHistory(
        head: state.head, time: own?.annotation.point.time ?? next?.before ?? head,
        annotations: behind.prefix(count).map(\.annotation))
    }
  }

  package func trimHistory(
    to retention: HistoryRetention?
  ) async throws(EngineError) -> SequenceNumber {
    try await travel()
    let now = environment.now()
    return state.withLock { $0.trimHistory(to: retention, now: now) }
  }

  package func drop(_ keyspaces: [UInt32]) async throws(EngineError) {
    try await travel()
    state.withLock { state in
      state.dropped += keyspaces.map { ($0, state.head.sequence) }
    }
  }

  package func skip(to point: CommitPoint) async throws(EngineError) -> Bool {
    try await travel()
    return state.withLock { state in
      guard point.sequence > state.head.sequence, point.time > state.head.time else { return false }
      state.log = []
      state.history = []
      state.durable = point.sequence
      state.head = point
      state.floor = point
      for key in state.keys { _ = state.trim(key) }
      state.keys.removeAll { state.versions[$0] == nil }
      return true
    }
  }

  package func remove(_ process: Int64) async throws(EngineError) -> Bool {
    try await travel()
    let now = environment.now()
    return state.withLock { state in
      if state.pins.contains(where: { $0.key != process && $0.value.until > now }) { return false }
      let (faults, random) = (state.faults, state.random)
      state = SimulatedServer(random: random)
      state.faults = faults
      return true
    }
  }

  package func synchronize() async throws(EngineError) {
    try await travel()
    state.withLock { $0.durable = $0.head.sequence }
  }

  package func close(_ process: Int64) async {
    state.withLock { $0.pins[process] = nil }
  }

  /// The number of processes for which it keeps old versions of rows.
  package var processesWithPins: Int { state.withLock { $0.pins.count } }

  // MARK: - The network

  /// Sometimes loses an answer on its way.
  func loseAnswer() throws(EngineError) {
    let isLost = state.withLock { $0.random.chance($0.faults.lostAnswers, in: 1000) }
    if isLost { throw silence() }
  }

  private func silence() -> EngineError {
    state.withLock { $0.trips.silences += 1 }
    return .unreachable(reason: "a simulated store does not answer")
  }

  /// - Parameter group: the group that may arrive late.
  func travel(with group: RemoteGroup? = nil) async throws(EngineError) {
    let now = environment.now()
    let (isLost, delay, woken) = state.withLock { state in
      let delay = state.faults.delay
      state.failOverPerhaps()
      state.takeLate(at: now)
      var isLost = state.isAway || state.random.chance(state.faults.lostRequests, in: 1000)
      if let group, state.random.chance(state.faults.lateRequests, in: 1000) {
        state.late.append(group)
        isLost = true
      }
      return (isLost, delay == 0 ? 0 : Int64(state.random.below(Int(delay))), state.takeWaiters())
    }
    for continuation in woken { continuation.resume() }
    if delay > 0 { await environment.rest(delay) }
    if isLost { throw silence() }
  }
}
