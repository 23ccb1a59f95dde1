// What a commit does when others come first. Most let the other commit finish and derive again. One
// that runs the app's code, or replaces much of the tree, pauses for a short random time, and from
// the third attempt on closes gates, so that it does not lose for ever.

internal import OndolEngine

/// The attempts of one commit.
struct Contention {
  /// Attempts before gates are closed.
  private static let freeAttempts = 3
  /// Microseconds of the first pause between two attempts, and of the longest.
  private static let firstPause: Int64 = 50
  private static let longestPause: Int64 = 10_000

  /// The most attempts; nil for a commit that closes no gates and tries for ever.
  private let limit: Int?
  private let mayGiveUp: Bool
  /// Whether gates were closed for it before it began.
  private var holdsGates = false
  private var attempts = 0
  private var start: Int64 = 0
  private var times = AttemptTimes()
  private var gates = ClosedGates()

  init(_ kind: CommitKind) {
    switch kind {
    case .transaction(let attempts, let holdsGates):
      limit = max(1, attempts)
      mayGiveUp = true
      self.holdsGates = holdsGates
    case .tree:
      limit = .max
      mayGiveUp = false
    case .documents, .catalog, .renaming, .upkeep:
      limit = nil
      mayGiveUp = false
    }
  }

  /// Whether gates hold other writers.
  var hasGates: Bool { gates.isAny || holdsGates }

  /// Begins an attempt.
  mutating func begin(in database: Database) {
    if limit != nil { start = database.now() }
  }

  /// Lets the commits that came first finish.
  ///
  /// Throws `.aborted` when that was the last attempt, or when the gates have held other writers
  /// for as long as they may.
  mutating func giveWay(
    for roots: Set<ExactText>, in database: Database
  ) async throws(DatabaseError) {
    guard let limit else { return await Task.yield() }
    attempts += 1
    times.note(database.now() - start, isGated: gates.isAny)
    guard attempts < limit else {
      throw DatabaseError(
        .aborted,
        "other commits changed what the transaction had read, \(attempts) times; read less in it,"
          + " or allow more attempts")
    }
    let longest = min(Self.firstPause << min(attempts, 10), Self.longestPause)
    await database.rest(database.random(below: longest))
    guard attempts >= Self.freeAttempts else { return }
    end(in: database)
    if mayGiveUp { try times.refuseWhenOver() }
    gates = try await database.closeGates(roots, wait: times.wait)
  }

  /// Opens the closed gates.
  mutating func end(in database: Database) {
    database.openGates(gates)
    gates = ClosedGates()
  }
}

/// How long the attempts of one transaction have taken, in microseconds.
private struct AttemptTimes {
  private var longest: Int64 = 0
  private var gated: Int64 = 0

  /// Records an attempt that lost. Setting the clock meanwhile does no harm.
  mutating func note(_ time: Int64, isGated: Bool) {
    let time = min(max(time, 0), Gates.longestWait)
    longest = max(longest, time)
    if isGated { gated += time }
  }

  /// How long the gates hold other writers.
  var wait: Int64 { min(max(2 * longest, Gates.shortestWait), Gates.longestWait) }

  /// Throws when the gates have held other writers for long enough.
  func refuseWhenOver() throws(DatabaseError) {
    guard gated >= Gates.longestClosure else { return }
    throw DatabaseError(
      .aborted,
      "other writers have stood aside for \(Gates.longestClosure / 1_000_000) seconds, and still"
        + " the transaction did not come to its commit; its body takes longer than"
        + " \(Gates.longestWait / 1_000_000) seconds, or waits for a write that stands aside for it"
    )
  }
}
