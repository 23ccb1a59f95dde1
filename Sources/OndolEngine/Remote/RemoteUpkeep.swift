// What a session does besides sending commits and making them visible. It listens for other
// processes' commits, and notices a store that has lost visible commits. It prevents the store from
// forgetting what is being read here, makes it forget the rest, and knows which other processes
// exist.

internal import Synchronization

extension RemoteSession {
  /// How long the store keeps what this process reads without hearing from it: ten minutes.
  private static let lease: Int64 = 600_000_000
  /// How often it renews this within that time.
  private static let renewals: UInt64 = 20

  /// Microseconds after which the store is asked even without an announcement.
  private static let longestWait: Int64 = 5_000_000

  /// Listens for other processes' commits.
  func listen() async {
    while !Task.isCancelled, line.failure == nil {
      let shown = window.point
      do throws(EngineError) {
        let newest = try await store.waitForCommits(behind: shown, atMost: Self.longestWait)
        if newest > shown.sequence { line.hear(of: newest) }
      } catch {
        // The state in memory is no longer valid, which must be reported even without a request.
        if !line.isClosing { _ = loseHistory() }
        return
      }
      // Until the store was asked about it, nothing else needs to be announced.
      await line.waitUntilAsked()
    }
  }

  /// Whether the store answers, as reported to the observer.
  struct Reach: Sendable {
    /// Counts the changes of this state.
    var turn = 0
    var observer: (@Sendable (_ isAway: Bool) -> Void)?
  }

  /// Notifies `observer` when the store becomes unreachable, and when it is reachable again and all
  /// its commits up to then are visible.
  func observeReach(_ observer: @escaping @Sendable (_ isAway: Bool) -> Void) {
    reach.withLock { $0.observer = observer }
    store.observeReach { [weak self] isAway in self?.note(isAway: isAway) }
  }

  private func note(isAway: Bool) {
    let turn = reach.withLock { reach in
      reach.turn += 1
      // Under the lock, so that the last notification has the current state.
      if isAway { reach.observer?(true) }
      return reach.turn
    }
    if !isAway { watchers.start { [self] in await comeBack(turn) } }
  }

  /// Makes the store's commits visible before the observer learns that it answers again.
  private func comeBack(_ turn: Int) async {
    while !Task.isCancelled, line.failure == nil, reach.withLock({ $0.turn }) == turn {
      do throws(EngineError) {
        try await line.catchUp()
        return reach.withLock { reach in
          if reach.turn == turn { reach.observer?(false) }
        }
      } catch {
        await environment.rest(Self.pauses.last)
      }
    }
  }

  /// Prevents the store from forgetting what is read here, makes it forget the rest, and looks for
  /// what other processes have left. It does so thoroughly once per lease. The time is random, so
  /// that not all processes that share the database do it at once.
  func keepPinned() async {
    var round = environment.random() % Self.renewals
    while !Task.isCancelled, line.failure == nil {
      let isEarly = await waitForUpkeep()
      if Task.isCancelled { return }
      await tidy()
      if isEarly { continue }
      round = (round + 1) % Self.renewals
      audience.withLock { $0.caretaker }?(round == 0)
    }
  }

  /// How often to check, between two renewals, how much there is to forget, and by which factor the
  /// commits must exceed the tolerated number to not wait for the next renewal.
  private static let looks: Int64 = 6
  private static let haste: UInt64 = 5

  /// Returns when the next renewal is due. It returns true earlier if so much is written meanwhile
  /// that versions would accumulate.
  private func waitForUpkeep() async -> Bool {
    for _ in 0..<Self.looks {
      await environment.sleep(Self.lease / Int64(Self.renewals) / Self.looks)
      if Task.isCancelled { return false }
      if window.lag / Self.haste >= max(1, baseLag) { return true }
    }
    return false
  }

  /// Pins the oldest rows in use, and makes the store forget history beyond the limits and rows
  /// that no reader can see.
  func tidy() async {
    do throws(EngineError) {
      // A memtable takes long to fill, and until then nothing would be forgotten.
      if window.lag > baseLag { await line.rebase() }
      do throws(EngineError) {
        try await pinOldest()
      } catch {
        // The store has not heard from this process for too long. From now on, reads use newer
        // rows.
        guard case .superseded = error else { throw error }
        try await line.catchUp()
        await line.rebase()
        try await pinOldest()
      }
      try await trimHistory()
      while try await store.forget() > 0, !Task.isCancelled {}
    } catch {
      // The next attempt is soon enough. A read that comes too late reports it.
    }
  }

  /// Ends everything if the store has forgotten what is read here, because it did not hear from
  /// this process for longer than the lease. No later attempt could read it.
  func refuseForgotten() async throws(EngineError) {
    do throws(EngineError) {
      try await pinOldest()
    } catch {
      guard case .superseded = error else { return }
      let failure = EngineError.outOfStep(
        reason: "\(store.name) has forgotten what this process reads, of which it heard nothing"
          + " for \(Self.lease / 60_000_000) minutes")
      fail(failure)
      throw failure
    }
  }

  private func pinOldest() async throws(EngineError) {
    guard let oldest = bases.oldest else { return }
    let pinned: SequenceNumber
    do throws(EngineError) {
      pinned = try await store.pin(oldest, for: process, microseconds: Self.lease)
    } catch {
      if case .notInHistory = error { throw loseHistory() }
      throw error
    }
    self.pinned.store(pinned.rawValue, ordering: .relaxed)
  }

  /// The newest commit of which no process can see an older state.
  var retainedThrough: SequenceNumber {
    SequenceNumber(rawValue: pinned.load(ordering: .relaxed))
  }

  /// Microseconds of silence after which a process is considered gone. It has then missed four
  /// renewals.
  private static let silence: Int64 = 120_000_000

  /// The existing processes, including this one.
  func livingProcesses() async throws(EngineError) -> Set<Int64> {
    let found = try await insist { () async throws(EngineError) in
      try await store.processes(pinnedFor: Self.lease - Self.silence)
    }
    return found.union([process])
  }

  /// Makes new reads see nothing older than what is newest now, and finds out what other processes
  /// still see.
  func advance() async throws(EngineError) {
    await line.rebase()
    try await insist { () async throws(EngineError) in try await pinOldest() }
    try await insist { () async throws(EngineError) in try await trimHistory() }
  }

  /// How long the newest commit is pinned at opening.
  static var firstLease: Int64 { lease }
}
