// What a session does beside sending and showing commits: it hears of what others commit, and of a
// store that has lost what is shown here; it keeps what is read from being forgotten, has the store
// forget the rest, and knows which other processes are there.

internal import Synchronization

extension RemoteSession {
  /// How long what this process reads is kept without a word from it: ten minutes.
  private static let lease: Int64 = 600_000_000
  /// How often it says a word in that time.
  private static let renewals: UInt64 = 20

  /// Microseconds after which the store is asked though nobody has told of anything.
  private static let longestWait: Int64 = 5_000_000

  /// Hears of what others commit.
  func listen() async {
    while !Task.isCancelled, line.failure == nil {
      let shown = window.point
      do throws(EngineError) {
        let newest = try await store.waitForCommits(behind: shown, atMost: Self.longestWait)
        if newest > shown.sequence { line.hear(of: newest) }
      } catch {
        // Nobody need ask for anything to be told that what is in memory is not true any more.
        if !line.isClosing { _ = loseHistory() }
        return
      }
      // Until the store was asked about it nothing else need be heard of.
      await line.waitUntilAsked()
    }
  }

  /// Whether the store answers, as the one who is told knows it.
  struct Reach: Sendable {
    /// Counts what the store has said of it.
    var turn = 0
    var observer: (@Sendable (_ isAway: Bool) -> Void)?
  }

  /// Has `observer` told when the store cannot be reached, and when it can be again and all that it
  /// had then is shown.
  func observeReach(_ observer: @escaping @Sendable (_ isAway: Bool) -> Void) {
    reach.withLock { $0.observer = observer }
    store.observeReach { [weak self] isAway in self?.note(isAway: isAway) }
  }

  private func note(isAway: Bool) {
    let turn = reach.withLock { reach in
      reach.turn += 1
      // Under the lock, so that what is told last is what is so.
      if isAway { reach.observer?(true) }
      return reach.turn
    }
    if !isAway { watchers.start { [self] in await comeBack(turn) } }
  }

  /// Shows what the store has before it is told that it answers again.
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

  /// Keeps what is read here from being forgotten, has the store forget the rest, and looks for
  /// what others have left. In the time of one lease it does so once thoroughly; when is left to
  /// chance, so that not all who share the database do so at once.
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

  /// Looks at how much there is to forget between two words to the store, and how many times the
  /// commits that are let be are enough not to wait for the next word.
  private static let looks: Int64 = 6
  private static let haste: UInt64 = 5

  /// Returns when the next word is due, or sooner, and then true, when so much is written meanwhile
  /// that versions would pile up.
  private func waitForUpkeep() async -> Bool {
    for _ in 0..<Self.looks {
      await environment.sleep(Self.lease / Int64(Self.renewals) / Self.looks)
      if Task.isCancelled { return false }
      if window.lag / Self.haste >= max(1, baseLag) { return true }
    }
    return false
  }

  /// Pins the oldest rows that somebody reads, and has the store forget what is over of history and
  /// what nobody can read of rows.
  func tidy() async {
    do throws(EngineError) {
      // A memtable takes long to fill, and as long nothing would be forgotten.
      if window.lag > baseLag { await line.rebase() }
      do throws(EngineError) {
        try await pinOldest()
      } catch {
        // The store has heard nothing of this process for too long. What is read from now on is
        // newer.
        guard case .superseded = error else { throw error }
        try await line.catchUp()
        await line.rebase()
        try await pinOldest()
      }
      try await trimHistory()
      while try await store.forget() > 0, !Task.isCancelled {}
    } catch {
      // The next time will do; a read that comes too late says so.
    }
  }

  /// Ends all when the store has forgotten what is read here, because nothing was heard of this
  /// process for longer than it is kept: then no try reads it any more.
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

  /// The newest commit of which nobody can see an older state, in any process.
  var retainedThrough: SequenceNumber {
    SequenceNumber(rawValue: pinned.load(ordering: .relaxed))
  }

  /// Microseconds without a word after which a process is taken to be gone: it has missed four.
  private static let silence: Int64 = 120_000_000

  /// The processes that are there, this one among them.
  func livingProcesses() async throws(EngineError) -> Set<Int64> {
    let found = try await insist { () async throws(EngineError) in
      try await store.processes(pinnedFor: Self.lease - Self.silence)
    }
    return found.union([process])
  }

  /// Has reads that begin from now on see nothing older than what is newest, and finds out what
  /// others still see.
  func advance() async throws(EngineError) {
    await line.rebase()
    try await insist { () async throws(EngineError) in try await pinOldest() }
    try await insist { () async throws(EngineError) in try await trimHistory() }
  }

  /// For how long what is newest is pinned at opening.
  static var firstLease: Int64 { lease }
}
