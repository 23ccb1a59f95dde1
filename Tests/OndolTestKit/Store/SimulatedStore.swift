// A store in memory, which does what a server on a network does and a test cannot have it do: it
// answers late, loses an answer on its way after the commit is made, or a request before it, and
// moves to a standby that has not heard of the newest commits. Chance comes from a seed.

package import OndolEngine

/// What goes wrong with a simulated store, in so many of a thousand calls.
package struct StoreFaults: Sendable {
  /// Requests that do not arrive.
  package var lostRequests = 0
  /// Commits that are made, and of which the answer is lost.
  package var lostAnswers = 0
  /// Microseconds that a call takes at most.
  package var delay: Int64 = 0

  package init(lostRequests: Int = 0, lostAnswers: Int = 0, delay: Int64 = 0) {
    self.lostRequests = lostRequests
    self.lostAnswers = lostAnswers
    self.delay = delay
  }

  package static let none = StoreFaults()
}

/// How often a store was asked for what.
package struct StoreTrips: Sendable, Equatable {
  package var appends = 0
  package var commits = 0
  package var ranges = 0
  package var keys = 0

  /// Round trips for reading rows.
  package var reads: Int { ranges + keys }
}

/// A `RemoteStore` in memory.
package final class SimulatedStore: RemoteStore {
  fileprivate struct Version {
    var sequence: SequenceNumber
    /// Nil when the row was deleted.
    var value: [UInt8]?
  }

  fileprivate struct Logged {
    var commit: RemoteCommit
    var part: Int64
  }

  fileprivate struct Pin {
    var sequence: SequenceNumber
    var until: Int64
  }

  fileprivate struct Waiter {
    var sequence: SequenceNumber
    var continuation: CheckedContinuation<Void, Never>
  }

  fileprivate struct State {
    /// In the order of their bytes.
    var keys: [[UInt8]] = []
    /// Of each key, oldest first.
    var versions: [[UInt8]: [Version]] = [:]
    /// Behind the floor.
    var log: [Logged] = []
    var head = CommitPoint(sequence: .zero, time: 0)
    /// The newest commit of which no older version is told any more.
    var floor = CommitPoint(sequence: .zero, time: 0)
    /// Origins that may commit no more.
    var fenced: Set<Int64> = []
    var pins: [Int64: Pin] = [:]
    /// Keyspaces that are no more, with the newest commit when they went.
    var dropped: [(keyspace: UInt32, at: SequenceNumber)] = []
    var waiters: [UInt64: Waiter] = [:]
    var lastWaiter: UInt64 = 0
    var trips = StoreTrips()
    var faults = StoreFaults.none
    var random: SeededRandom
  }

  private let state: Guarded<State>
  private let identity: DatabaseIdentity
  private let environment: Environment

  package var name: String { "a simulated store" }

  package init(seed: UInt64, environment: Environment = .memory(), faults: StoreFaults = .none) {
    var random = SeededRandom(seed: seed)
    identity = DatabaseIdentity(low: random.next(), high: random.next())
    var state = State(random: random)
    state.faults = faults
    self.state = Guarded(state)
    self.environment = environment
  }

  // MARK: - What tests do to it

  package var trips: StoreTrips { state.withLock { $0.trips } }

  package var faults: StoreFaults {
    get { state.withLock { $0.faults } }
    set { state.withLock { $0.faults = newValue } }
  }

  /// Versions that it keeps.
  package var versionCount: Int {
    state.withLock { $0.versions.values.reduce(0) { $0 + $1.count } }
  }

  /// The commits that are not forgotten, in order.
  package var newestCommits: [RemoteCommit] { state.withLock { $0.log.map(\.commit) } }

  /// The newest commit.
  package var head: CommitPoint { state.withLock { $0.head } }

  /// Loses the newest commits, as many as are there and not yet forgotten at most: what a standby
  /// has not heard of when it takes over.
  package func loseNewest(_ count: Int) {
    state.withLock { state in
      for _ in 0..<min(count, state.log.count) {
        let lost = state.log.removeLast().commit
        for row in lost.rows {
          state.versions[row.key]?.removeAll { $0.sequence == lost.point.sequence }
        }
      }
      state.head = state.log.last?.commit.point ?? state.floor
    }
  }

  // MARK: - Commits

  package func open(_ process: Int64) async throws(EngineError) -> RemoteHead {
    try await travel()
    let now = environment.now()
    return state.withLock { state in
      state.pins[process] = Pin(sequence: state.head.sequence, until: now + 600_000_000)
      return RemoteHead(identity: identity, point: state.head)
    }
  }

  package func append(_ group: RemoteGroup) async throws(EngineError) -> RemoteAppend {
    try await travel()
    let now = environment.now()
    let (outcome, isLost, woken) = state.withLock {
      state -> (RemoteAppend, Bool, [CheckedContinuation<Void, Never>]) in
      state.trips.appends += 1
      let outcome = state.append(group, at: now)
      let isLost = state.random.chance(state.faults.lostAnswers, in: 1000)
      return (outcome, isLost, state.takeWaiters())
    }
    for continuation in woken { continuation.resume() }
    if isLost { throw Self.silence }
    return outcome
  }

  package func outcome(
    of part: Int64, from origin: Int64
  ) async throws(EngineError) -> CommitPoint? {
    try await travel()
    return state.withLock { state in
      state.fenced.insert(origin)
      return state.log.first { $0.part == part && $0.commit.origin == origin }?.commit.point
    }
  }

  package func commits(
    behind point: CommitPoint, atMost count: Int
  ) async throws(EngineError) -> [RemoteCommit] {
    try await travel()
    return try state.withLock { state throws(EngineError) in
      state.trips.commits += 1
      guard state.knows(point) else {
        throw .notInHistory(reason: "\(name) has no commit \(point.sequence.rawValue)")
      }
      let behind = state.log.drop { $0.commit.point.sequence <= point.sequence }
      return behind.prefix(count).map(\.commit)
    }
  }

  package func waitForCommits(
    behind sequence: SequenceNumber, atMost microseconds: Int64
  ) async -> SequenceNumber {
    await withTaskGroup(of: Void.self) { [environment] tasks in
      tasks.addTask { [self] in await waitForCommit(behind: sequence) }
      tasks.addTask { await environment.rest(microseconds) }
      await tasks.next()
      tasks.cancelAll()
    }
    return head.sequence
  }

  private func waitForCommit(behind sequence: SequenceNumber) async {
    let number = state.withLock { state in
      state.lastWaiter += 1
      return state.lastWaiter
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          if Task.isCancelled || state.head.sequence > sequence { return true }
          state.waiters[number] = Waiter(sequence: sequence, continuation: continuation)
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
      state.trips.ranges += 1
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
      state.trips.keys += 1
      try state.refuse(base, name)
      return keys.compactMap { state.row(at: $0, base.sequence) }
    }
  }

  // MARK: - Versions

  package func pin(
    _ sequence: SequenceNumber, for process: Int64, microseconds: Int64
  ) async throws(EngineError) -> SequenceNumber {
    try await travel()
    let now = environment.now()
    return try state.withLock { state throws(EngineError) in
      guard sequence >= state.floor.sequence else { throw .superseded(file: name) }
      state.pins[process] = Pin(sequence: sequence, until: now + microseconds)
      return state.oldestPin(at: now)
    }
  }

  package func forget() async throws(EngineError) -> Int {
    try await travel()
    let now = environment.now()
    return state.withLock { $0.forget(at: now) }
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
      state = State(random: random)
      state.faults = faults
      return true
    }
  }

  package func synchronize() async throws(EngineError) { try await travel() }

  package func close(_ process: Int64) async {
    state.withLock { $0.pins[process] = nil }
  }

  // MARK: - The network

  private static let silence = EngineError.unreachable(reason: "a simulated store does not answer")

  private func travel() async throws(EngineError) {
    let (isLost, delay) = state.withLock { state in
      let delay = state.faults.delay
      return (
        state.random.chance(state.faults.lostRequests, in: 1000),
        delay == 0 ? 0 : Int64(state.random.below(Int(delay)))
      )
    }
    if delay > 0 { await environment.rest(delay) }
    if isLost { throw Self.silence }
  }
}

extension SimulatedStore.State {
  fileprivate mutating func append(_ group: RemoteGroup, at now: Int64) -> RemoteAppend {
    guard knows(group.known), !fenced.contains(group.origin) else { return .otherHistory }
    let isChanged = log.reversed().prefix { $0.commit.point.sequence > group.known.sequence }
      .contains { logged in logged.commit.rows.contains { group.guards($0.key) } }
    if isChanged { return .conflict }
    let first = CommitPoint(sequence: head.sequence.next, time: max(now, head.time + 1))
    var point = first
    for writes in group.commits {
      var commit = RemoteCommit(point: point, origin: group.origin, rows: [])
      for write in writes {
        var key = write.key
        for stamp in write.keyStamps { _ = key.stamp(stamp, with: point) }
        let value = write.value.map { RemoteValue.time(point.time) + $0 }
        put(key, SimulatedStore.Version(sequence: point.sequence, value: value))
        commit.rows.append((key, value))
      }
      log.append(SimulatedStore.Logged(commit: commit, part: group.part))
      head = point
      point = CommitPoint(sequence: point.sequence.next, time: point.time + 1)
    }
    return .done(first)
  }

  private mutating func put(_ key: [UInt8], _ version: SimulatedStore.Version) {
    if versions[key] == nil { keys.insert(key, at: place(of: key)) }
    versions[key, default: []].append(version)
  }

  /// Whether a commit is, or was, one of this store's.
  fileprivate func knows(_ point: CommitPoint) -> Bool {
    if point == floor { return true }
    var (low, high) = (0, log.count)
    while low < high {
      let middle = (low + high) / 2
      let isBefore = log[middle].commit.point.sequence < point.sequence
      if isBefore { low = middle + 1 } else { high = middle }
    }
    return low < log.count && log[low].commit.point == point
  }

  fileprivate mutating func takeWaiters() -> [CheckedContinuation<Void, Never>] {
    let awake = waiters.filter { $0.value.sequence < head.sequence }
    for number in awake.keys { waiters[number] = nil }
    return awake.sorted { $0.key < $1.key }.map(\.value.continuation)
  }

  /// The place of the first key from `key` on.
  fileprivate func place(of key: [UInt8]) -> Int {
    var (low, high) = (0, keys.count)
    while low < high {
      let middle = (low + high) / 2
      if keys[middle].lexicographicallyPrecedes(key) { low = middle + 1 } else { high = middle }
    }
    return low
  }

  fileprivate func row(at key: [UInt8], _ sequence: SequenceNumber) -> RemoteRow? {
    guard let version = versions[key]?.last(where: { $0.sequence <= sequence }),
      let value = version.value
    else { return nil }
    return RemoteRow(key: key, sequence: version.sequence, value: value)
  }

  fileprivate func refuse(_ base: CommitPoint, _ name: String) throws(EngineError) {
    if base.sequence < floor.sequence { throw .superseded(file: name) }
    guard knows(base) else {
      throw .poisoned(reason: "\(name) has no commit \(base.sequence.rawValue)")
    }
  }

  fileprivate mutating func oldestPin(at now: Int64) -> SequenceNumber {
    pins = pins.filter { $0.value.until > now }
    return pins.values.map(\.sequence).min() ?? head.sequence
  }

  fileprivate mutating func forget(at now: Int64) -> Int {
    let oldest = oldestPin(at: now)
    guard oldest > floor.sequence,
      let last = log.last(where: { $0.commit.point.sequence <= oldest })?.commit.point
    else { return 0 }
    let gone = log.prefix { $0.commit.point.sequence <= last.sequence }
    log.removeFirst(gone.count)
    floor = last
    var count = 0
    for key in Set(gone.flatMap { $0.commit.rows.map(\.key) }) { count += trim(key) }
    let (over, kept) = (
      dropped.filter { $0.at <= floor.sequence }, dropped.filter { $0.at > floor.sequence }
    )
    dropped = kept
    for (keyspace, _) in over {
      let prefix = (0..<4).map { UInt8(truncatingIfNeeded: keyspace >> (24 - 8 * $0)) }
      for key in keys where key.starts(with: prefix) {
        count += versions[key]?.count ?? 0
        versions[key] = nil
      }
    }
    keys.removeAll { versions[$0] == nil }
    return count
  }

  /// Lets go of what nobody can see of a key.
  fileprivate mutating func trim(_ key: [UInt8]) -> Int {
    guard var known = versions[key] else { return 0 }
    let before = known.count
    let visible = known.lastIndex { $0.sequence <= floor.sequence } ?? 0
    known.removeFirst(visible)
    if let first = known.first, first.sequence <= floor.sequence, first.value == nil {
      known.removeFirst()
    }
    versions[key] = known.isEmpty ? nil : known
    return before - known.count
  }
}

extension RemoteGroup {
  fileprivate func guards(_ key: [UInt8]) -> Bool {
    guardedKeys.contains(key)
      || guardedRanges.contains { range in
        !key.lexicographicallyPrecedes(range.lower)
          && (range.upper.isEmpty || key.lexicographicallyPrecedes(range.upper))
      }
  }
}
