// An external store that keeps a database's rows, in versions, and puts commits in one order: a
// server, or a simulation of one. It is called when data is not in memory, and to commit; never for
// a cached row. So it is accessed through a protocol, unlike everything on a row's fast path.
//
// A store guarantees: a commit is whole or absent; numbers ascend by one, and their order is the
// order in which commits become visible to every process; the rows as of a number never change; a
// group is refused when a row it guards has changed after its basis.

/// A key and the store's value for it.
package struct RemoteRow: Sendable, Equatable {
  package var key: [UInt8]
  /// The commit that wrote it.
  package var sequence: SequenceNumber
  /// The bytes of a `RemoteValue`.
  package var value: [UInt8]

  package init(key: [UInt8], sequence: SequenceNumber, value: [UInt8]) {
    self.key = key
    self.sequence = sequence
    self.value = value
  }
}

/// A place in a key, eight bytes, for the commit's number or time.
package struct RemoteStamp: Sendable, Equatable {
  package var offset: Int
  package var form: StampForm

  package init(offset: Int, form: StampForm) {
    self.offset = offset
    self.form = form
  }
}

/// A row that a commit puts or deletes.
package struct RemoteWrite: Sendable, Equatable {
  package var key: [UInt8]
  package var keyStamps: [RemoteStamp] = []
  /// A `RemoteValue` without its time, which the store adds at its beginning; nil when the row is
  /// deleted.
  package var value: [UInt8]?

  package init(key: [UInt8], keyStamps: [RemoteStamp] = [], value: [UInt8]?) {
    self.key = key
    self.keyStamps = keyStamps
    self.value = value
  }
}

/// Commits that are sent to a store together: consecutively all of them, or none.
package struct RemoteGroup: Sendable {
  /// The sender, and the group's number for that sender, by which its outcome is found after a lost
  /// answer.
  package var origin: Int64
  package var part: Int64
  /// The newest commit that the sender knows. A store whose history lacks it refuses the group.
  package var known: CommitPoint
  /// Rows that must not have changed after `known`.
  package var guardedKeys: [[UInt8]] = []
  /// Ranges in which no row may have changed after `known`; no bound when `upper` is empty.
  package var guardedRanges: [(lower: [UInt8], upper: [UInt8])] = []
  /// The rows of each commit, each key once.
  package var commits: [[RemoteWrite]] = []
  /// Each commit's annotation beside its rows, as `RemoteValue` without its time: for all of them,
  /// or for none. The store keeps it outside the rows.
  package var annotations: [[UInt8]] = []
  /// Whether the answer waits until the group survives a power cut.
  package var isDurable = true

  package init(origin: Int64, part: Int64, known: CommitPoint) {
    self.origin = origin
    self.part = part
    self.known = known
  }
}

/// The result of a group.
package enum RemoteAppend: Sendable, Equatable {
  /// The number and the time of its first commit; each further one has the next values of both.
  case done(CommitPoint)
  /// A guarded row has changed, and nothing was written.
  case conflict
  /// The store lacks the newest commit that the sender knows: it has lost some, or is another
  /// store.
  case otherHistory
}

/// Commits that a store returns, and the newest one that it had by then.
package struct RemoteNews: Sendable, Equatable {
  package var commits: [RemoteCommit]
  /// A process that has seen it has seen every commit that the store had when it was asked.
  package var newest: SequenceNumber

  package init(commits: [RemoteCommit], newest: SequenceNumber) {
    self.commits = commits
    self.newest = newest
  }
}

/// A commit as a store returns it.
package struct RemoteCommit: Sendable, Equatable {
  package var point: CommitPoint
  package var origin: Int64
  /// The values that it put, as `RemoteValue`, and nil for rows that it deleted; each key once.
  package var rows: [(key: [UInt8], value: [UInt8]?)]

  package init(
    point: CommitPoint, origin: Int64, rows: [(key: [UInt8], value: [UInt8]?)]
  ) {
    self.point = point
    self.origin = origin
    self.rows = rows
  }

  package static func == (left: RemoteCommit, right: RemoteCommit) -> Bool {
    left.point == right.point && left.origin == right.origin
      && left.rows.elementsEqual(right.rows) { $0.key == $1.key && $0.value == $1.value }
  }
}

/// A store's answer when it is opened.
package struct RemoteHead: Sendable {
  package var identity: DatabaseIdentity
  /// The newest commit, which survives a power cut.
  package var point: CommitPoint

  package init(identity: DatabaseIdentity, point: CommitPoint) {
    self.identity = identity
    self.point = point
  }
}

/// A commit's annotation beside its rows.
package struct RemoteAnnotation: Sendable, Equatable {
  package var point: CommitPoint
  /// A `RemoteValue` without its time.
  package var bytes: [UInt8]

  package init(point: CommitPoint, bytes: [UInt8]) {
    self.point = point
    self.bytes = bytes
  }
}

/// A store's history after a commit, as of one moment.
package struct RemoteHistory: Sendable, Equatable {
  /// The newest commit.
  package var head: CommitPoint
  /// The time of the commit after which this is; nil when it is not known any more.
  package var time: Int64?
  /// The annotations of later commits that have one and are kept, in order.
  package var annotations: [RemoteAnnotation]

  package init(head: CommitPoint, time: Int64?, annotations: [RemoteAnnotation]) {
    self.head = head
    self.time = time
    self.annotations = annotations
  }
}

/// A store for the rows of a database.
///
/// Calls throw `.unreachable` when there is no answer, and may be repeated. For `append`, that
/// error leaves the outcome open; `outcome(of:)` determines it.
package protocol RemoteStore: AnyObject, RemoteContents {
  /// Its display name, without passwords.
  var name: String { get }

  /// Makes reads end after about this long without an answer, and reports an outage sooner: callers
  /// stop waiting for the other calls, which continue. Called before `open`.
  func limitAnswers(to microseconds: Int64)

  /// Makes the tables if there are none, and pins the newest commit as `pin` does.
  func open(_ process: Int64) async throws(EngineError) -> RemoteHead

  /// Like `open`, for filling a database that has no commits yet. Until `endFill`, no process can
  /// open it. Removes what an unfinished fill has left first.
  ///
  /// - Throws: `.notEmpty` when there are other commits, `.unfinished` while another process fills
  ///   it.
  func beginFill(_ process: Int64) async throws(EngineError) -> RemoteHead

  /// Declares the current state a complete database.
  func endFill() async throws(EngineError)

  /// Commits a group.
  func append(_ group: RemoteGroup) async throws(EngineError) -> RemoteAppend

  /// The outcome of a group whose answer was lost: its first commit, or nil when it was not and
  /// will not be committed. From then on no group of this origin is committed.
  func outcome(of part: Int64, from origin: Int64) async throws(EngineError) -> CommitPoint?

  /// The commits after a number, in order, at most about this many, each of which survives a power
  /// cut. None when there is none. `.notInHistory` when `point` is not one of the store's commits.
  func commits(
    behind point: CommitPoint, atMost count: Int
  ) async throws(EngineError) -> RemoteNews

  /// Returns when there are commits after `point`, after the given time, or when the task is
  /// cancelled; it may also return early. Returns the newest commit that it has heard of. Throws
  /// `.notInHistory` once it has heard that `point`, which the store had, is not one of its commits
  /// any more; without a connection it hears nothing.
  func waitForCommits(
    behind point: CommitPoint, atMost microseconds: Int64
  ) async throws(EngineError) -> SequenceNumber

  /// Notifies `observer` when the store does not answer, and when it does again; while a caller
  /// waits for commits. Set once.
  func observeReach(_ observer: @escaping @Sendable (_ isAway: Bool) -> Void)

  /// The rows with keys from `lower` on and before `upper`, no bound when empty, as of a commit:
  /// the first ones or, reversed, the last ones, in the order of their keys. Fewer than `count`
  /// only when there are no more. Throws `.superseded` when versions of that age have been removed,
  /// `.outOfStep` when the commit is not one of the store's. Blocks.
  func rows(
    from lower: [UInt8], to upper: [UInt8], reversed: Bool, atMost count: Int,
    asOf base: CommitPoint
  ) throws(EngineError) -> [RemoteRow]

  /// The rows at the keys as of a commit, in any order, without missing ones. Blocks, and throws as
  /// above.
  func rows(
    at keys: [[UInt8]], asOf base: CommitPoint
  ) throws(EngineError) -> [RemoteRow]

  /// The same for callers that may not block, except for the time of switching threads: nil when
  /// the answer is not expected, or does not come, that soon.
  func rowsAtOnce(
    at keys: [[UInt8]], asOf base: CommitPoint
  ) throws(EngineError) -> [RemoteRow]?

  /// Keeps the rows visible as of a commit from being removed for the given time; returns the
  /// oldest commit that any process has pinned. Throws `.superseded` when they have been removed
  /// already, `.notInHistory` when it is not one of the store's commits.
  func pin(
    _ point: CommitPoint, for process: Int64, microseconds: Int64
  ) async throws(EngineError) -> SequenceNumber

  /// The processes whose pins last at least this much longer.
  func processes(pinnedFor microseconds: Int64) async throws(EngineError) -> Set<Int64>

  /// Removes some versions that are invisible to all processes; returns how many.
  func forget() async throws(EngineError) -> Int

  /// The annotations of the commits after a number, at most about this many, whether or not they
  /// survive a power cut. The result has the time of the commit with that number while it is the
  /// newest, or while it or the next one is kept.
  func history(
    behind sequence: SequenceNumber, atMost count: Int
  ) async throws(EngineError) -> RemoteHistory

  /// Removes annotations that are too old by the store's clock, or that exceed the number of bytes,
  /// oldest first, except the newest commit's. If the newest commit has none, removes all: it ends
  /// the history. Without a retention, it removes only in that case.
  ///
  /// - Returns: the commit after the last one of which nothing is kept.
  func trimHistory(to retention: HistoryRetention?) async throws(EngineError) -> SequenceNumber

  /// Removes the rows of keyspaces once they are invisible to all processes. Their numbers are not
  /// used again.
  func drop(_ keyspaces: [UInt32]) async throws(EngineError)

  /// Makes commits continue after `point`, and forgets the history of the current state: no process
  /// can have known less.
  ///
  /// - Returns: whether it did; not when there is an equally late commit.
  func skip(to point: CommitPoint) async throws(EngineError) -> Bool

  /// Removes the database, including everything ever committed.
  ///
  /// - Returns: whether it did; not while another process than `process` has it open.
  func remove(_ process: Int64) async throws(EngineError) -> Bool

  /// Returns when every commit so far survives a power cut.
  func synchronize() async throws(EngineError)

  /// Releases connections and pins.
  func close(_ process: Int64) async
}

extension RemoteStore {
  /// Stores in memory answer at once, or as a test determines.
  package func limitAnswers(to microseconds: Int64) {}

  /// A store in memory exists only in the process that fills it.
  package func beginFill(_ process: Int64) async throws(EngineError) -> RemoteHead {
    try await open(process)
  }

  package func endFill() async throws(EngineError) {}
}
