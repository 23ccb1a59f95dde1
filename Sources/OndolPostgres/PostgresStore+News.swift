// Other processes' commits, and the versions that are still read or can be forgotten.

package import OndolEngine

extension PostgresStore {
  // MARK: - News

  /// The size of rows after which news are cut after a group.
  private static let newsBytes: Int64 = 16 << 20

  package func commits(
    behind point: CommitPoint, atMost count: Int
  ) async throws(EngineError) -> RemoteNews {
    let database = try opened()
    guard let known = Int64(exactly: point.sequence.rawValue) else {
      throw .notInHistory(reason: "\(name) has no commit \(point.sequence.rawValue)")
    }
    var parameters = ParameterList()
    parameters.add(database)
    parameters.add(known)
    parameters.add(point.time)
    parameters.add(Int32(clamping: max(1, count)))
    parameters.add(Self.newsBytes)
    var told = ParameterList()
    told.add(database)
    return try await news.perform(.many) {
      [parameters, told, news] connection throws(PostgresFailure) in
      let (answer, end) = try connection.run(.news, parameters, then: .told, told)
      try answer.expect(columns: 8)
      try end.expect(columns: 1)
      let commits = try Self.commits(in: answer, behind: known)
      if commits.isEmpty { news.findNothing(behind: point.sequence) }
      let newest = try Self.point(try end.int64(0, 0), 0).sequence
      return RemoteNews(commits: commits, newest: newest)
    }
  }

  /// The most commits of one group. No more are sent together.
  private static let mostOfGroup: Int32 = 1 << 20

  private static func commits(
    in answer: PostgresAnswer, behind known: Int64
  ) throws(PostgresFailure) -> [RemoteCommit] {
    var commits: [RemoteCommit] = []
    /// The number and the start of the group that is being read.
    var group: (number: Int64, start: Int)?
    for row in 0..<answer.rowCount {
      let number = try answer.int64(row, 0)
      let count = try answer.int32(row, 1)
      if group?.number != number {
        guard (1...mostOfGroup).contains(count), number >= 0, number < .max - Int64(count),
          commits.last.map({ $0.point.sequence.rawValue < UInt64(number) }) ?? true
        else { throw .malformed("a group of \(count) commits at \(number)") }
        group = (number, commits.count)
        let (time, origin) = (try answer.int64(row, 2), try answer.int64(row, 3))
        for offset in 0..<Int64(count) {
          commits.append(
            RemoteCommit(
              point: try point(number + offset, time &+ offset), origin: origin, rows: []))
        }
      }
      guard let key = try answer.bytesOrNull(row, 5) else { continue }
      let offset = try answer.int32(row, 4)
      guard let group, offset >= 0, group.start + Int(offset) < commits.count else {
        throw .malformed("a row of commit \(offset) of a group that has none")
      }
      // Commits that the sender knows need not be kept.
      if number + Int64(offset) <= known { continue }
      guard try answer.int64OrNull(row, 6) == number + Int64(offset) else {
        throw .malformed("commit \(number + Int64(offset)) lacks a row")
      }
      commits[group.start + Int(offset)].rows.append((key, try answer.bytesOrNull(row, 7)))
    }
    commits.removeAll { $0.point.sequence.rawValue <= UInt64(clamping: known) }
    return commits
  }

  package func waitForCommits(
    behind point: CommitPoint, atMost microseconds: Int64
  ) async throws(EngineError) -> SequenceNumber {
    let deadline = ContinuousClock.now + .microseconds(max(0, microseconds))
    guard let newest = await news.wait(behind: point, until: deadline) else {
      throw .notInHistory(reason: "\(name) has no commit \(point.sequence.rawValue)")
    }
    return newest
  }

  package func observeReach(_ observer: @escaping @Sendable (_ isAway: Bool) -> Void) {
    news.observeReach(observer)
  }

  // MARK: - Versions

  static func pin(
    _ database: Int32, _ process: Int64, _ point: CommitPoint, _ microseconds: Int64
  ) -> ParameterList {
    var parameters = ParameterList()
    parameters.add(database)
    parameters.add(process)
    parameters.add(Int64(clamping: point.sequence.rawValue))
    parameters.add(point.time)
    // A year, which is within the range of the server's calendar.
    parameters.add(min(microseconds, 31_536_000_000_000))
    return parameters
  }

  package func pin(
    _ point: CommitPoint, for process: Int64, microseconds: Int64
  ) async throws(EngineError) -> SequenceNumber {
    let parameters = Self.pin(try opened(), process, point, microseconds)
    return try await upkeep { [name] connection throws(PostgresFailure) in
      let answer = try connection.run(.hold, parameters)
      try answer.expect(columns: 1)
      guard let oldest = try answer.int64OrNull(0, 0) else {
        throw .told(.superseded(file: name))
      }
      guard let oldest = UInt64(exactly: oldest) else { throw .malformed("a pin at \(oldest)") }
      return SequenceNumber(rawValue: oldest)
    }
  }

  package func processes(
    pinnedFor microseconds: Int64
  ) async throws(EngineError) -> Set<Int64> {
    var parameters = ParameterList()
    parameters.add(try opened())
    parameters.add(microseconds)
    return try await upkeep { [parameters] connection throws(PostgresFailure) in
      let answer = try connection.run(.processes, parameters)
      try answer.expect(columns: 1)
      var processes: Set<Int64> = []
      for row in 0..<answer.rowCount { processes.insert(try answer.int64(row, 0)) }
      return processes
    }
  }

  /// The number of groups whose rows are examined in one transaction.
  private static let groupsAtOnce: Int32 = 256

  package func forget() async throws(EngineError) -> Int {
    var parameters = ParameterList()
    parameters.add(try opened())
    parameters.add(Self.groupsAtOnce)
    while true {
      let words = try await upkeep { [parameters] connection throws(PostgresFailure) in
        let answer = try connection.run(.forget, parameters)
        try answer.expect(columns: 1)
        let words = try answer.int64s(0, 0)
        guard words.count == 2, words[0] >= 0 else { throw .malformed("what is forgotten") }
        return words
      }
      // Groups without changes leave nothing to forget.
      if words[0] > 0 || words[1] == 0 { return Int(clamping: words[0]) }
    }
  }

  // MARK: - History

  /// The size after the first annotation above which no more are read at once.
  private static let historyBytes: Int64 = 1 << 20
  /// The number of annotations that are removed in one transaction.
  private static let trimmedAtOnce: Int32 = 2_000

  package func history(
    behind sequence: SequenceNumber, atMost count: Int
  ) async throws(EngineError) -> RemoteHistory {
    var parameters = ParameterList()
    parameters.add(try opened())
    // A number that no commit has, so that nothing follows it.
    parameters.add(min(Int64(clamping: sequence.rawValue), .max - 1))
    parameters.add(Int32(clamping: max(1, count)))
    parameters.add(Self.historyBytes)
    return try await upkeep { [parameters] connection throws(PostgresFailure) in
      let answer = try connection.run(.history, parameters)
      try answer.expect(columns: 4)
      guard answer.rowCount > 0, try answer.bytesOrNull(0, 3) == nil else {
        throw .malformed("a history without what stands in front of it")
      }
      let head = try Self.point(try answer.int64(0, 0), try answer.int64(0, 1))
      var history = RemoteHistory(
        head: head, time: try answer.int64OrNull(0, 2), annotations: [])
      if head.sequence == sequence { history.time = head.time }
      for row in 1..<answer.rowCount {
        history.annotations.append(
          RemoteAnnotation(
            point: try Self.point(try answer.int64(row, 0), try answer.int64(row, 1)),
            bytes: try answer.bytes(row, 3)))
      }
      return history
    }
  }

  package func trimHistory(
    to retention: HistoryRetention?
  ) async throws(EngineError) -> SequenceNumber {
    var parameters = ParameterList()
    parameters.add(try opened())
    parameters.add(max(0, retention?.microseconds ?? .max))
    parameters.add(Int64(clamping: retention?.bytes ?? .max))
    parameters.add(Self.trimmedAtOnce)
    while true {
      let words = try await upkeep { [parameters] connection throws(PostgresFailure) in
        let answer = try connection.run(.trim, parameters)
        try answer.expect(columns: 1)
        let words = try answer.int64s(0, 0)
        guard words.count == 2, words[0] >= 0 else { throw .malformed("what is trimmed") }
        return (gone: words[0], start: try Self.point(words[1], 0).sequence)
      }
      if words.gone == 0 { return words.start }
    }
  }

  package func drop(_ keyspaces: [UInt32]) async throws(EngineError) {
    var parameters = ParameterList()
    parameters.add(try opened())
    parameters.add(Set(keyspaces).sorted().map { Int64($0) })
    try await upkeep { [parameters] connection throws(PostgresFailure) in
      _ = try connection.run(.drop, parameters)
    }
  }

  package func skip(to point: CommitPoint) async throws(EngineError) -> Bool {
    guard let sequence = Int64(exactly: point.sequence.rawValue) else {
      throw .invalid(reason: "\(name): no commit has the number \(point.sequence)")
    }
    var parameters = ParameterList()
    parameters.add(try opened())
    parameters.add(sequence)
    parameters.add(point.time)
    return try await word(of: .skip, parameters, PostgresAnswer.bool)
  }

  package func remove(_ process: Int64) async throws(EngineError) -> Bool {
    var parameters = ParameterList()
    parameters.add(try opened())
    parameters.add(process)
    return try await word(of: .remove, parameters, PostgresAnswer.bool)
  }

  /// The single word that a statement returns.
  ///
  /// - Parameter read: reads it at a row and a column.
  func word<R: Sendable>(
    of statement: Statement, _ parameters: ParameterList,
    _ read: @escaping @Sendable (PostgresAnswer) -> (Int, Int) throws(PostgresFailure) -> R
  ) async throws(EngineError) -> R {
    try await upkeep { connection throws(PostgresFailure) in
      let answer = try connection.run(statement, parameters)
      try answer.expect(columns: 1)
      return try read(answer)(0, 0)
    }
  }

  /// Performs work that is repeatable and not urgent.
  func upkeep<R: Sendable>(
    _ body: @escaping @Sendable (PostgresConnection) throws(PostgresFailure) -> R
  ) async throws(EngineError) -> R {
    try await upkeepWorker.perform { [readers] () throws(EngineError) in
      try readers.withOne { link throws(EngineError) in try link.use(.many, body) }
    }
  }
}
