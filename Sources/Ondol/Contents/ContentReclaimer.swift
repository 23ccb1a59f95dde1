// Reclaims contents without a holder, a few at a time, in the background. Rows list what to look
// at: a release for each content that lost a holder, a lease for each that has none yet. So a crash
// loses nothing, and the next session continues where the last one stopped.
//
// A content is reclaimed in one commit, which removes its location and guards everything that was
// checked: its holders, its lease, its location. A concurrent commit that adds a holder guards the
// location, so one of the two is refused. The conditions for that commit are:
//
//   - no live row holds it, its lease is over, and nothing in this process reads or stages it;
//   - its last release is older than the grace period;
//   - that release is flushed in every view in use: no snapshot, and no state that a power cut
//     would restore, is older;
//   - that release is before the history that can be read again, if there is one.
//
// Files are removed afterwards, when that commit is on the device: see ContentReclaimer+Packs.

internal import Logging
internal import OndolEngine

/// The result of one pass.
package struct ReclaimReport: Sendable, Equatable {
  /// Contents reclaimed.
  package var contents = 0
  /// Bytes of files that were removed or became smaller.
  package var bytes: UInt64 = 0
  /// Files removed.
  package var files = 0
  /// Contents moved to other packs.
  package var moved = 0
}

/// Reclaims the contents of one database.
struct ContentReclaimer: Sendable {
  struct State: Sendable {
    /// When the timer fires.
    var next: Int64?
    /// Microseconds until contents that are still visible to a reader are checked again.
    var patience = ContentReclaimer.leastPatience
    /// Bytes of each pack that no location refers to, as far as known.
    var dead: [FileNumber: UInt64] = [:]
    /// Whether the packs and files of earlier sessions have been surveyed.
    var hasSurveyed = false
    /// Files to remove.
    var doomed: [ContentFile] = []
    var total = ReclaimReport()
  }

  let store: ContentStore

  /// Contents that are checked in one snapshot and reclaimed in one commit.
  static let together = 64
  /// Microseconds of pause between two steps, so that other work gets the device.
  static let rest: Int64 = 2_000
  /// Microseconds until contents that are still visible to a reader are checked again; doubled each
  /// time.
  static let leastPatience: Int64 = 10_000_000
  private static let mostPatience: Int64 = 600_000_000

  init(_ store: ContentStore) {
    self.store = store
  }

  var engine: Engine { store.engine }
  var environment: Environment { store.environment }
  var logger: Logger { store.options.logger }
  var state: Guarded<State> { store.reclaiming }
  private var grace: Int64 { store.options.blobGracePeriod.microseconds }

  /// Everything reclaimed since the database was opened.
  var total: ReclaimReport { state.withLock { $0.total } }

  // MARK: - Schedule

  /// Makes the timer fire at `time` at the latest.
  func expect(by time: Int64) {
    if engine.isReadOnly { return }
    let isSooner = state.withLock { state in
      if let next = state.next, next <= time { return false }
      state.next = time
      return true
    }
    guard isSooner else { return }
    // Weak, so that a timer for tomorrow does not keep a released database alive.
    engine.startInBackground { [weak store, environment] in
      while environment.now() < time {
        if Task.isCancelled { return }
        await environment.sleep(time - environment.now())
      }
      await store?.reclaimer.run(dueAt: time)
    }
  }

  /// Schedules a check of contents that have just lost a holder, for the time when they may be
  /// reclaimed.
  func noteRelease() { expect(by: environment.now() &+ grace) }

  private func run(dueAt time: Int64) async {
    let isMine = state.withLock { state in
      guard state.next == time else { return false }
      state.next = nil
      return true
    }
    guard isMine, !Task.isCancelled else { return }
    do throws(DatabaseError) {
      _ = try await reclaim()
    } catch {
      guard error.code != .cancelled, error.code != .failedPrecondition else { return }
      logger.error("contents could not be reclaimed", metadata: ["error": "\(error)"])
      // Until the database is opened again nothing can be reclaimed.
      guard engine.failure == nil else { return }
      expect(by: environment.now() &+ Self.leastPatience)
    }
  }

  /// Reclaims what is due, and frees space; then sets the timer for the rest. One pass at a time.
  @concurrent
  func reclaim() async throws(DatabaseError) -> ReclaimReport {
    try await takeTurn()
    defer { endTurn() }
    var report = ReclaimReport()
    var agenda = Agenda()
    try await survey(&report)
    try await lookAtReleases(&agenda, &report)
    try await lookAtLeases(&agenda, &report)
    try await removeLooseParts(&agenda, &report)
    try await makeRoom(&report)
    state.withLock { state in
      state.total.contents += report.contents
      state.total.bytes += report.bytes
      state.total.files += report.files
      state.total.moved += report.moved
    }
    if agenda.mustWait { agenda.note(environment.now() &+ patience(after: report)) }
    if let next = agenda.next { expect(by: next) }
    return report
  }

  /// How long to wait for readers to release contents.
  private func patience(after report: ReclaimReport) -> Int64 {
    state.withLock { state in
      let isStuck = report == ReclaimReport()
      state.patience =
        isStuck ? min(2 * state.patience, Self.mostPatience) : Self.leastPatience
      return state.patience
    }
  }

  /// Waits until no pass is running, and makes later passes wait for `endTurn()`. Code that stores
  /// contents without a holder also uses it, for as long as it takes.
  func takeTurn() async throws(DatabaseError) {
    try await store.turns.acquire(.reclaiming)
  }

  func endTurn() {
    store.turns.release(.reclaiming)
  }

  /// When the next work is due.
  struct Agenda {
    private(set) var next: Int64?
    /// Readers still see contents that could be reclaimed, for an unknown time.
    var mustWait = false

    mutating func note(_ time: Int64) { next = min(next ?? time, time) }
  }

  // MARK: - Reclaiming

  private func lookAtReleases(
    _ agenda: inout Agenda, _ report: inout ReclaimReport
  ) async throws(DatabaseError) {
    var begin: BlobDigest?
    var hasFlushed = false
    repeat {
      let due = environment.now() &- grace
      let found = try await store.read { [begin] (rows) throws(DatabaseError) in
        try rows.releases(after: begin, notAfter: due)
      }
      begin = found.last
      if let wait = found.next { agenda.note(wait &+ grace) }
      if !hasFlushed, let newest = found.newest, newest > retained {
        hasFlushed = true
        try await store.withEngine { (engine) throws(EngineError) in
          try await engine.flush(shardOf: ContentKey.locations.prefix)
        }
      }
      try await lookAt(found.digests, &agenda, &report)
    } while begin != nil
  }

  private func lookAtLeases(
    _ agenda: inout Agenda, _ report: inout ReclaimReport
  ) async throws(DatabaseError) {
    var begin: BlobDigest?
    repeat {
      let now = environment.now()
      let found = try await store.read { [begin] (rows) throws(DatabaseError) in
        try rows.leases(after: begin, notAfter: now)
      }
      begin = found.last
      if let wait = found.next { agenda.note(wait) }
      try await lookAt(found.digests, &agenda, &report)
    } while begin != nil
  }

  /// Releases up to this one are no longer visible to any reader.
  private var retained: SequenceNumber {
    let views = engine.retainedThrough(shardOf: ContentKey.locations.prefix)
    return min(views, engine.historyStart ?? views)
  }

  private func lookAt(
    _ digests: [BlobDigest], _ agenda: inout Agenda, _ report: inout ReclaimReport
  ) async throws(DatabaseError) {
    if digests.isEmpty { return }
    try refuseWhenCancelled("the rest is reclaimed later")
    if try await !lookAtOnce(digests, &agenda, &report) {
      // Another commit came in between, for one of them.
      for digest in digests where try await !lookAtOnce([digest], &agenda, &report) {
        agenda.mustWait = true
      }
    }
    await environment.rest(Self.rest)
  }

  /// Checks some contents and commits the result; false when something changed meanwhile.
  private func lookAtOnce(
    _ digests: [BlobDigest], _ agenda: inout Agenda, _ report: inout ReclaimReport
  ) async throws(DatabaseError) -> Bool {
    let doomed = digests.filter { store.uses.beginGivingUp($0) }
    if doomed.count < digests.count { agenda.mustWait = true }
    defer { for digest in doomed { store.uses.endGivingUp(digest) } }
    let (retained, now, grace) = (retained, environment.now(), grace)
    let verdicts = try await store.read { (rows) throws(DatabaseError) in
      try ContentVerdicts(on: doomed, retained: retained, releasedBy: now &- grace, now, rows)
    }
    if verdicts.mustWait { agenda.mustWait = true }
    guard !verdicts.batch.isEmpty else { return true }
    guard try await engine.commitUnlessStale(verdicts.batch, durability: .power) != nil else {
      return false
    }
    if verdicts.hasNewReleases { agenda.note(now &+ grace) }
    note(verdicts.givenUp)
    report.contents += verdicts.givenUp.count
    return true
  }

  /// Records what happened to the bytes of reclaimed contents.
  private func note(_ locations: [ContentLocation]) {
    state.withLock { state in
      for location in locations {
        switch location {
        // Parts have rows of their own.
        case .inline, .parts, .away: break
        case .pack(let place): state.dead[place.pack, default: 0] += location.storedBytes
        case .file(let place):
          state.doomed.append(
            ContentFile(kind: .content, number: place.file, sizeBytes: place.length))
        }
      }
    }
  }
}

extension ContentStore {
  /// Runs `body` and converts its error into the public one.
  func withEngine(
    _ body: (Engine) async throws(EngineError) -> Void
  ) async throws(DatabaseError) {
    try await rethrowing { () async throws(EngineError) in try await body(engine) }
  }
}
