// A place outside the process that keeps a database's rows, in versions, and puts commits in one
// order: a server, or a simulation of one. It is asked when something is not in memory, and to
// commit; never for a row that is cached. So it stands behind a protocol, which nothing on the way
// of a row does.
//
// What a store promises: a commit is whole or absent; numbers ascend by one, and their order is the
// order in which commits become visible to everybody; the rows as of a number never change; a group
// is refused when a row it guards was changed behind its basis.

/// A key and what a store has for it.
package struct RemoteRow: Sendable, Equatable {
  package var key: [UInt8]
  /// The commit that put it.
  package var sequence: SequenceNumber
  /// The bytes of a `RemoteValue`.
  package var value: [UInt8]

  package init(key: [UInt8], sequence: SequenceNumber, value: [UInt8]) {
    self.key = key
    self.sequence = sequence
    self.value = value
  }
}

/// A place in a key, eight bytes, that gets the commit's number or time.
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
  /// A `RemoteValue` without its time, which the store puts in front; nil when the row goes.
  package var value: [UInt8]?

  package init(key: [UInt8], keyStamps: [RemoteStamp] = [], value: [UInt8]?) {
    self.key = key
    self.keyStamps = keyStamps
    self.value = value
  }
}

/// Commits that go to a store together: all of them, one behind the other, or none.
package struct RemoteGroup: Sendable {
  /// Who sends it, and which of their groups it is: how its outcome is found after a lost answer.
  package var origin: Int64
  package var part: Int64
  /// The newest commit the sender knows. A store whose history lacks it refuses the group.
  package var known: CommitPoint
  /// Rows that must not have changed behind `known`.
  package var guardedKeys: [[UInt8]] = []
  /// Ranges in which no row must have changed behind `known`; no bound where `upper` is empty.
  package var guardedRanges: [(lower: [UInt8], upper: [UInt8])] = []
  /// The rows of each commit, each key once.
  package var commits: [[RemoteWrite]] = []
  /// What each commit says beside its rows, as `RemoteValue` without its time: for all of them, or
  /// for none. The store keeps it, in no row.
  package var annotations: [[UInt8]] = []
  /// Whether the answer waits until the group survives a power cut.
  package var isDurable = true

  package init(origin: Int64, part: Int64, known: CommitPoint) {
    self.origin = origin
    self.part = part
    self.known = known
  }
}

/// What came of a group.
package enum RemoteAppend: Sendable, Equatable {
  /// The number and the time of its first commit; each further one has the next of both.
  case done(CommitPoint)
  /// A guarded row has changed, and nothing was written.
  case conflict
  /// The store has no such commit as the one the sender knows: it has lost some, or is another.
  case otherHistory
}

/// A commit as a store tells it.
package struct RemoteCommit: Sendable, Equatable {
  package var point: CommitPoint
  package var origin: Int64
  /// What it put, as `RemoteValue`, and nil for what it deleted; each key once.
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

/// What a store says when it is opened.
package struct RemoteHead: Sendable {
  package var identity: DatabaseIdentity
  /// The newest commit, which survives a power cut.
  package var point: CommitPoint

  package init(identity: DatabaseIdentity, point: CommitPoint) {
    self.identity = identity
    self.point = point
  }
}

/// What a commit has said beside its rows.
package struct RemoteAnnotation: Sendable, Equatable {
  package var point: CommitPoint
  /// A `RemoteValue` without its time.
  package var bytes: [UInt8]

  package init(point: CommitPoint, bytes: [UInt8]) {
    self.point = point
    self.bytes = bytes
  }
}

/// What a store has of the history behind a commit, as of one moment.
package struct RemoteHistory: Sendable, Equatable {
  /// The newest commit.
  package var head: CommitPoint
  /// The time of the commit behind which this is; nil when nothing tells it any more.
  package var time: Int64?
  /// Of the commits behind it those that have said something and are kept, in order.
  package var annotations: [RemoteAnnotation]

  package init(head: CommitPoint, time: Int64?, annotations: [RemoteAnnotation]) {
    self.head = head
    self.time = time
    self.annotations = annotations
  }
}

/// What keeps the rows of a database.
///
/// Calls throw `.unreachable` when there is no answer, and may be made again. Of `append` that says
/// nothing about the outcome, which `outcome(of:)` finds out.
package protocol RemoteStore: AnyObject, RemoteContents {
  /// What people call it; without passwords.
  var name: String { get }

  /// Has reads end after about so long without an answer, and tells sooner that there is none: the
  /// other calls are not waited for any longer, and go on. Called before `open`.
  func limitAnswers(to microseconds: Int64)

  /// Makes the tables where there are none, and pins the newest commit as `pin` does.
  func open(_ process: Int64) async throws(EngineError) -> RemoteHead

  /// As `open`, for whoever fills a database that has no commits yet. Until `endFill` nobody opens
  /// it. What a fill has left that did not come to its end is removed first.
  ///
  /// - Throws: `.notEmpty` when there are commits of others, `.unfinished` while somebody else
  ///   fills it.
  func beginFill(_ process: Int64) async throws(EngineError) -> RemoteHead

  /// What is there now is a whole database.
  func endFill() async throws(EngineError)

  /// Commits a group.
  func append(_ group: RemoteGroup) async throws(EngineError) -> RemoteAppend

  /// What came of a group whose answer was lost: its first commit, or nil when it was not and will
  /// not be committed. From then on no group of this origin is.
  func outcome(of part: Int64, from origin: Int64) async throws(EngineError) -> CommitPoint?

  /// The commits behind a number, in order, at most about so many, each of which survives a power
  /// cut. `.notInHistory` when `point` is not one of the store's commits.
  func commits(
    behind point: CommitPoint, atMost count: Int
  ) async throws(EngineError) -> [RemoteCommit]

  /// Returns when there are commits behind `point`, or after so long, or when the task is
  /// cancelled; also for no reason. Answers with the newest commit it has heard of. `.notInHistory`
  /// once it has heard that `point`, which the store had, is not one of its commits any more;
  /// whoever cannot reach it hears nothing.
  func waitForCommits(
    behind point: CommitPoint, atMost microseconds: Int64
  ) async throws(EngineError) -> SequenceNumber

  /// Has `observer` told when the store is found not to answer, and when it does again; while
  /// somebody waits for commits. Set once.
  func observeReach(_ observer: @escaping @Sendable (_ isAway: Bool) -> Void)

  /// The rows with keys from `lower` on and before `upper`, no bound when empty, as of a commit:
  /// the first ones or, reversed, the last ones, in the order of their keys. Fewer than `count`
  /// only when there are no more. `.superseded` when versions of that age are forgotten,
  /// `.outOfStep` when the commit is not one of the store's. Blocks.
  func rows(
    from lower: [UInt8], to upper: [UInt8], reversed: Bool, atMost count: Int,
    asOf base: CommitPoint
  ) throws(EngineError) -> [RemoteRow]

  /// The rows at the keys as of a commit, in any order, without those that are not there. Blocks,
  /// and throws as above.
  func rows(
    at keys: [[UInt8]], asOf base: CommitPoint
  ) throws(EngineError) -> [RemoteRow]

  /// The same for whoever may not block, but for as long as it takes to change threads: nil when
  /// the answer is not expected, or does not come, so soon.
  func rowsAtOnce(
    at keys: [[UInt8]], asOf base: CommitPoint
  ) throws(EngineError) -> [RemoteRow]?

  /// Keeps what is visible as of a commit from being forgotten for so long; answers with the oldest
  /// commit that any process has pinned. `.superseded` when it is forgotten already,
  /// `.notInHistory` when it is not one of the store's commits.
  func pin(
    _ point: CommitPoint, for process: Int64, microseconds: Int64
  ) async throws(EngineError) -> SequenceNumber

  /// The processes whose pins last for so long yet.
  func processes(pinnedFor microseconds: Int64) async throws(EngineError) -> Set<Int64>

  /// Forgets some versions that nobody can see any more; how many.
  func forget() async throws(EngineError) -> Int

  /// What the commits behind a number have said beside their rows, at most about so many, whether
  /// or not they survive a power cut. The time of the commit with that number is told while it is
  /// the newest, or it or the next one is kept.
  func history(
    behind sequence: SequenceNumber, atMost count: Int
  ) async throws(EngineError) -> RemoteHistory

  /// Lets go of what commits have said that are too old by the store's clock, or of too many bytes,
  /// oldest first, but not of what the newest has said. All goes when the newest commit has said
  /// nothing: history ends with it. That is all that goes without a retention.
  ///
  /// - Returns: the commit behind the last one of which nothing is kept.
  func trimHistory(to retention: HistoryRetention?) async throws(EngineError) -> SequenceNumber

  /// Has the rows of keyspaces go once nobody can see them. Their numbers are not used again.
  func drop(_ keyspaces: [UInt32]) async throws(EngineError)

  /// Has commits go on behind `point`, and forgets how what there is has come to be: nobody can
  /// have known less.
  ///
  /// - Returns: whether it did; not when there is a commit as late.
  func skip(to point: CommitPoint) async throws(EngineError) -> Bool

  /// Removes the database, all that was ever committed included.
  ///
  /// - Returns: whether it did; not while another process than `process` has it open.
  func remove(_ process: Int64) async throws(EngineError) -> Bool

  /// Returns when every commit so far survives a power cut.
  func synchronize() async throws(EngineError)

  /// Lets go of connections and pins.
  func close(_ process: Int64) async
}

extension RemoteStore {
  /// Those in memory answer at once, or as a test says.
  package func limitAnswers(to microseconds: Int64) {}

  /// One in memory goes with whoever fills it.
  package func beginFill(_ process: Int64) async throws(EngineError) -> RemoteHead {
    try await open(process)
  }

  package func endFill() async throws(EngineError) {}
}
