// The rows of a snapshot, read without suspension. Stage 3 of the read path, and the basis of
// writes. Data in memory is read on the caller, which keeps its actor. When a block must come from
// disk, the whole read starts again on one of the engine's threads for cold reads, so that no
// thread of the pool ever waits for a disk. There it may start yet again when it takes long
// while others wait. So code that reads rows changes nothing. Code that must not suspend (a
// `DatabaseSnapshot`, a transaction) blocks instead. A single document's row that a fast server
// returns at once is read on the caller, because switching threads would take longer.
//
// A long query must not run on its app's main actor, while a short one is finished before threads
// could be switched. So a query begins on its caller's actor, and starts again elsewhere when it
// turns out to be long.

internal import OndolEngine
internal import Synchronization

/// How much a read may look at on its caller's actor.
final class ShortRead: Sendable {
  /// Steps of `Rows.rowsOfStep` rows, or of as many documents as are looked up together: a few
  /// dozen microseconds each.
  private static let limit = 4

  private let steps = Atomic(0)

  /// The rows that it may look at.
  static let rowLimit = limit * Rows.rowsOfStep

  /// Counts a step; false when it was one too many.
  func takeStep() -> Bool {
    steps.add(1, ordering: .relaxed).newValue <= Self.limit
  }
}

/// The rows of one snapshot, and the catalog for them.
struct Rows: Sendable {
  let snapshot: Snapshot
  /// Where families are looked up; a transaction with writes has its own.
  let catalog: Catalog
  /// Whether a read may block the thread while it reads a block from disk. Otherwise it throws
  /// `DatabaseError.cold`.
  let mayBlock: Bool
  /// The read's turn on the threads for cold reads, when it has one.
  private let turn: ReadingTurn?
  /// How much it may look at, when it runs on an actor.
  private let shortRead: ShortRead?
  /// Whether cancelling its task ends a long walk. Not when others wait for its result.
  let canBeCancelled: Bool
  private let fixedMoment: Int64?
  /// Whether a single row may be awaited in place when a store answers at once. Not when there may
  /// be many, one after the other.
  private let asksAtOnce: Bool

  /// - Parameter moment: the value of `moment`; with nil, the current time at each use.
  init(
    _ snapshot: Snapshot, _ catalog: Catalog, mayBlock: Bool, asOf moment: Int64? = nil,
    turn: ReadingTurn? = nil, shortRead: ShortRead? = nil, canBeCancelled: Bool = false,
    asksAtOnce: Bool = false
  ) {
    self.snapshot = snapshot
    self.catalog = catalog
    self.mayBlock = mayBlock
    self.turn = turn
    self.shortRead = shortRead
    self.canBeCancelled = canBeCancelled
    fixedMoment = moment
    self.asksAtOnce = asksAtOnce
  }

  /// The time that decides which documents have expired, in microseconds since 1970.
  var moment: Int64 { fixedMoment ?? catalog.clock() }

  /// The same rows, at one moment: for code that looks at several documents.
  var atOneMoment: Rows {
    fixedMoment == nil
      ? Rows(
        snapshot, catalog, mayBlock: mayBlock, asOf: catalog.clock(), turn: turn,
        shortRead: shortRead, canBeCancelled: canBeCancelled) : self
  }

  /// The same rows, read while the thread waits.
  var blocking: Rows {
    Rows(snapshot, catalog, mayBlock: true, asOf: fixedMoment, canBeCancelled: canBeCancelled)
  }

  /// Whether the rows may be read in parts elsewhere: not while the read is tried on an actor.
  var mayBeInParts: Bool { shortRead == nil }

  /// How documents of the pattern must be upgraded; nil when none has an earlier schema, or the app
  /// has not declared an upgrade.
  func pendingUpgrade(of pattern: CollectionPattern, _ entry: CollectionEntry) -> PendingUpgrade? {
    catalog.schemas.pendingUpgrade(of: pattern, entry.schema, at: snapshot.sequence)
  }

  /// The rows that a walk covers between two steps.
  static let rowsOfStep = 64

  /// A walk must call this every `rowsOfStep` rows. Throws `DatabaseError.cold` when the walk must
  /// start again elsewhere, because others come first or it is too long for an actor. Throws
  /// `.cancelled` when its result is not wanted any more.
  @inline(never)
  func step() throws(DatabaseError) {
    guard let turn else {
      if canBeCancelled { try refuseWhenCancelled() }
      if let shortRead, !shortRead.takeStep() { throw .cold }
      return
    }
    try rethrowing { () throws(EngineError) in try turn.step(canBeCancelled: canBeCancelled) }
  }

  /// The number of rows in a range, when it is known without a walk over them; otherwise nil.
  func knownCount(of range: KeyRange) throws(DatabaseError) -> Int? {
    try step()
    let most = shortRead == nil ? Int.max : ShortRead.rowLimit
    return try rethrowing { () throws(EngineError) in
      try snapshot.rowCount(
        from: range.lower, to: range.upper, lookingAtMost: most, mayBlock: mayBlock)
    }
  }

  /// The value at `key`, or nil.
  func row(_ key: [UInt8]) throws(DatabaseError) -> [UInt8]? {
    var row: [UInt8]?
    try withRow(key) { row = $0.array }
    return row
  }

  /// Passes the value at `key` to `body`, if there is one.
  func withRow(_ key: [UInt8], _ body: (RawSpan) -> Void) throws(DatabaseError) {
    do throws(EngineError) {
      if try snapshot.withValue(of: key.bytes, mayBlock: mayBlock, body) != nil { return }
      if asksAtOnce, try snapshot.withValueAtOnce(of: key.bytes, body) != nil { return }
    } catch {
      throw DatabaseError(error)
    }
    throw .cold
  }

  /// The catalog's entry of a pattern's collections; nil when there are none.
  func entry(of pattern: CollectionPattern) throws(DatabaseError) -> CollectionEntry? {
    try catalog.family(pattern.root, in: self)?.collections[pattern]
  }
}

extension Database {
  /// Runs `body`, which reads rows of `snapshot` and changes nothing: here when they are in memory,
  /// otherwise on a thread for cold reads, where it may start again when it takes long.
  ///
  /// - Parameters:
  ///   - moment: see `Rows`.
  ///   - other: where families are looked up; the database's own catalog when nil.
  ///   - canBeCancelled: whether it ends with `.cancelled` when the task is cancelled.
  ///   - isOfOne: whether it reads one document, whose row may be awaited in place.
  func read<R: Sendable>(
    _ snapshot: Snapshot, asOf moment: Int64? = nil, with other: Catalog? = nil,
    canBeCancelled: Bool = false, isOfOne: Bool = false,
    _ body: @escaping @Sendable (Rows) throws(DatabaseError) -> R
  ) async throws(DatabaseError) -> R {
    let catalog = other ?? catalog
    do throws(DatabaseError) {
      return try body(
        Rows(
          snapshot, catalog, mayBlock: false, asOf: moment, canBeCancelled: canBeCancelled,
          asksAtOnce: isOfOne))
    } catch {
      guard error.isCold else { throw error }
    }
    if canBeCancelled { try refuseWhenCancelled() }
    return try await snapshot.readInTurns(failingWith: { DatabaseError($0) }) {
      (turn) throws(DatabaseError) in
      try body(
        Rows(
          snapshot, catalog, mayBlock: true, asOf: moment, turn: turn,
          canBeCancelled: canBeCancelled))
    }
  }

  /// Runs `body`, which reads current rows and changes nothing, for a query of the app: on the
  /// caller's actor as long as it is short, otherwise on a thread of the pool. Ends with
  /// `.cancelled` when the task is cancelled.
  ///
  /// - Parameter mayBeShort: whether trying it on the actor pays off.
  func query<R: Sendable>(
    mayBeShort: Bool, isolation actor: isolated (any Actor)? = #isolation,
    _ body: @escaping @Sendable (Rows) throws(DatabaseError) -> R
  ) async throws(DatabaseError) -> R {
    let snapshot = try engineSnapshot()
    // A caller without an actor blocks no other work.
    if mayBeShort, actor != nil {
      do throws(DatabaseError) {
        return try body(
          Rows(
            snapshot, catalog, mayBlock: false, shortRead: ShortRead(), canBeCancelled: true))
      } catch {
        guard error.isCold else { throw error }
      }
    }
    return try await queryElsewhere(snapshot, body)
  }

  @concurrent
  private func queryElsewhere<R: Sendable>(
    _ snapshot: Snapshot, _ body: @escaping @Sendable (Rows) throws(DatabaseError) -> R
  ) async throws(DatabaseError) -> R {
    try await read(snapshot, canBeCancelled: true, body)
  }
}
