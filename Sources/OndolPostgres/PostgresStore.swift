// A database on PostgreSQL. Commits use one connection, in the order of the requests. A second
// connection listens for other processes' commits and reads them; see `News`. A few more
// connections read rows, and work without urgency borrows one of those. Each connection has a
// thread that may block, or a caller that may.

package import OndolEngine
internal import Synchronization

/// A `RemoteStore` on PostgreSQL.
package final class PostgresStore: RemoteStore {
  package let name: String
  let settings: LinkSettings
  /// Reads, and work without urgency.
  let readers: Readers
  private let creates: Bool
  private let committer: Link
  private let commitWorker: any Worker
  let upkeepWorker: any Worker
  let news: News

  private struct State: Sendable {
    /// Whether no other commit was waiting at the last commit.
    var wasAlone = true
    /// The group that was sent last, and the commit that its sender knew, from which the search for
    /// it starts.
    var sent: (origin: Int64, part: Int64, known: SequenceNumber)?
  }

  private let state = Guarded(State())

  /// How soon an answer must be expected for a caller to wait on its own thread.
  let promptness: Duration
  /// The recent duration of answers with one row, in nanoseconds. No prompt answer is expected
  /// before the first one.
  let pace = Atomic(Int64.max)
  /// A commit that rows are requested as of, and that is not the last of its group.
  let inner = Atomic(UInt64.max)

  /// Does not connect yet.
  ///
  /// - Parameters:
  ///   - address: `postgresql://user:password@host:port/database?ondol=name`: the server, one of
  ///     its databases and, after `ondol=`, the Ondol database in it (`default` if omitted). Other
  ///     parameters after `?` are those of libpq.
  ///   - creates: whether to create the database if it does not exist.
  ///   - answerTime: how long an answer may take before the server is considered unreachable.
  ///   - patience: how long repeatable calls are retried.
  ///   - promptness: how soon an answer must be expected for a caller to wait on its own thread. It
  ///     is about the time that it takes to pass the wait to another thread and back.
  /// - Throws: `.invalid` if it is not an address.
  package init(
    _ address: String, creates: Bool = true, threads: any ThreadSource = IOThreads(),
    answerTime: Duration = .seconds(60), patience: Duration = .seconds(3),
    promptness: Duration = .microseconds(200)
  ) throws(EngineError) {
    let address = try PostgresAddress(address)
    let settings = LinkSettings(address, answerTime: answerTime, patience: patience)
    self.settings = settings
    self.creates = creates
    self.promptness = promptness
    name = address.name
    readers = Readers(settings)
    committer = Link(settings)
    // They have their own threads, because a server may answer at any time, and news arrive when
    // other processes commit.
    commitWorker = threads.makeWorker(named: "ondol-commits", for: .own)
    upkeepWorker = threads.makeWorker(named: "ondol-upkeep", for: .own)
    news = News(settings, threads.makeWorker(named: "ondol-news", for: .own))
  }

  deinit {
    settings.close()
    news.stop()
  }

  /// The number of the database in the tables.
  func opened() throws(EngineError) -> Int32 {
    if settings.isClosed { throw .closed }
    guard let opened = settings.opened.withLock({ $0 }) else {
      throw .invalid(reason: "\(name) is not open")
    }
    return opened.number
  }

  package func limitAnswers(to microseconds: Int64) {
    settings.limitAnswers(to: .microseconds(microseconds))
  }

  // MARK: - Opening

  /// How long the commit that is newest at the open is kept.
  private static let firstLease: Int64 = 600_000_000

  package func open(_ process: Int64) async throws(EngineError) -> RemoteHead {
    try await open(process, filling: false)
  }

  package func beginFill(_ process: Int64) async throws(EngineError) -> RemoteHead {
    try await open(process, filling: true)
  }

  package func endFill() async throws(EngineError) {
    var parameters = ParameterList()
    parameters.add(try opened())
    try await commitWorker.perform { [self, parameters] () throws(EngineError) in
      try committer.use(.many) { connection throws(PostgresFailure) in
        _ = try connection.run(.loaded, parameters)
      }
    }
  }

  private func open(
    _ process: Int64, filling: Bool
  ) async throws(EngineError) -> RemoteHead {
    if settings.isClosed { throw .closed }
    let head = try await commitWorker.perform { [self] () throws(EngineError) in
      try committer.use(.many) { connection throws(PostgresFailure) in
        try Schema.prepare(connection, settings.address, creating: creates)
        let opened = try Schema.open(
          connection, settings.address, creating: creates, filling: filling)
        if filling { try beginLoad(of: opened.number, connection) }
        while true {
          guard let point = try Self.head(connection, opened.number) else {
            throw .malformed("a database without a first commit")
          }
          // Pinned first, because everything that is forgotten meanwhile was not returned.
          let pin = Self.pin(opened.number, process, point, Self.firstLease)
          let answer = try connection.run(.hold, pin)
          try answer.expect(columns: 1)
          if try answer.int64OrNull(0, 0) == nil { continue }
          _ = try connection.run(.barrier)
          settings.opened.withLock { $0 = opened }
          connection.note(opened)
          return RemoteHead(identity: opened.identity, point: point)
        }
      }
    }
    news.start()
    return head
  }

  private func beginLoad(
    of database: Int32, _ connection: PostgresConnection
  ) throws(PostgresFailure) {
    var parameters = ParameterList()
    parameters.add(database)
    let answer = try connection.run(.load, parameters)
    try answer.expect(columns: 1)
    switch try answer.int32(0, 0) {
    case 0: return
    case 1: throw .told(.notEmpty(path: name))
    default: throw .told(.unfinished(path: name, reason: "another process loads it"))
    }
  }

  /// The newest commit; nil if the database is gone.
  static func head(
    _ connection: PostgresConnection, _ database: Int32
  ) throws(PostgresFailure) -> CommitPoint? {
    var parameters = ParameterList()
    parameters.add(database)
    let answer = try connection.run(.head, parameters)
    try answer.expect(columns: 2)
    guard answer.rowCount == 1 else { return nil }
    return try point(try answer.int64(0, 0), try answer.int64(0, 1))
  }

  /// A commit's number and time in the server's form.
  static func point(
    _ number: Int64, _ time: Int64
  ) throws(PostgresFailure) -> CommitPoint {
    guard let sequence = UInt64(exactly: number) else { throw .malformed("commit \(number)") }
    return CommitPoint(sequence: SequenceNumber(rawValue: sequence), time: time)
  }

  // MARK: - Commits

  package func append(_ group: RemoteGroup) async throws(EngineError) -> RemoteAppend {
    let database = try opened()
    if group.known.sequence.rawValue > UInt64(Int64.max) { return .otherHistory }
    let call = try CommitCall(group, in: database)
    let (origin, part, known) = (group.origin, group.part, group.known.sequence)
    let isDurable = group.isDurable
    let count = UInt64(group.commits.count)
    let result = try await commitWorker.perform { [self] () throws(EngineError) in
      state.withLock { $0.sent = (origin, part, known) }
      do throws(EngineError) {
        return try committer.use(.one) { connection throws(PostgresFailure) in
          try commit(call, isDurable, connection)
        }
      } catch {
        // It may have been committed.
        if case .corrupt(_, _, let reason) = error {
          committer.close()
          throw .unreachable(reason: "\(name): \(reason)")
        }
        throw error
      }
    }
    if case .done(let first) = result {
      news.ring(SequenceNumber(rawValue: first.sequence.rawValue &+ count &- 1))
    }
    return result
  }

  private func commit(
    _ call: CommitCall, _ isDurable: Bool, _ connection: PostgresConnection
  ) throws(PostgresFailure) -> RemoteAppend {
    // A single commit may hold the lock on the commit order until the group is durable, because no
    // other commit waits for it. Otherwise the lock is released earlier, and a barrier sent along
    // makes the group durable.
    let flush = isDurable && state.withLock { $0.wasAlone }
    let parameters = call.parameters(flush: flush)
    let answer: PostgresAnswer
    do throws(PostgresFailure) {
      answer =
        isDurable && !flush
        ? try connection.run(.commit, parameters, then: .barrier).0
        : try connection.run(.commit, parameters)
    } catch {
      if error.isTakenNumber { return .conflict }
      throw error
    }
    try answer.expect(columns: 1)
    let words = try answer.int64s(0, 0)
    guard words.count == 4 else { throw .malformed("\(words.count) words of a commit") }
    switch words[0] {
    case 1: return .conflict
    case 2: return .otherHistory
    case 0: break
    default: throw .malformed("a commit's answer \(words[0])")
    }
    let first = try Self.point(words[1], words[2])
    let isAlone = words[3] == 1
    state.withLock { $0.wasAlone = isAlone }
    if flush, !isAlone {
      do throws(PostgresFailure) {
        _ = try connection.run(.barrier)
      } catch {
        throw .lost("a commit is not known to be durable: \(error)")
      }
    }
    return .done(first)
  }

  package func outcome(
    of part: Int64, from origin: Int64
  ) async throws(EngineError) -> CommitPoint? {
    let database = try opened()
    return try await commitWorker.perform { [self] () throws(EngineError) in
      let sent = state.withLock { $0.sent }
      let isOwn = sent?.origin == origin && sent?.part == part
      var parameters = ParameterList()
      parameters.add(database)
      parameters.add(origin)
      parameters.add(part)
      parameters.add(Int64(exactly: isOwn ? sent?.known.rawValue ?? 0 : 0) ?? 0)
      return try committer.use(.many) { connection throws(PostgresFailure) in
        let answer = try connection.run(.outcome, parameters)
        try answer.expect(columns: 1)
        let words = try answer.int64s(0, 0)
        guard words.count == 3 else { throw .malformed("\(words.count) words of an outcome") }
        switch words[0] {
        case 0: return try Self.point(words[1], words[2])
        case 1: return nil
        case 2: throw .told(.superseded(file: name))
        default: throw .malformed("an outcome \(words[0])")
        }
      }
    }
  }

  package func synchronize() async throws(EngineError) {
    _ = try opened()
    try await commitWorker.perform { [self] () throws(EngineError) in
      try committer.use(.many) { connection throws(PostgresFailure) in
        _ = try connection.run(.barrier)
      }
    }
  }

  // MARK: - The end

  package func close(_ process: Int64) async {
    if let opened = settings.opened.withLock({ $0 }), !settings.isClosed {
      var parameters = ParameterList()
      parameters.add(opened.number)
      parameters.add(process)
      // A pin that cannot be removed expires.
      try? await commitWorker.perform { [self, parameters] () throws(EngineError) in
        try committer.use(.hasty) { connection throws(PostgresFailure) in
          _ = try connection.run(.release, parameters)
        }
      }
    }
    settings.close()
    await news.finish()
    await upkeepWorker.stop()
    await commitWorker.stop()
    committer.close()
  }
}
