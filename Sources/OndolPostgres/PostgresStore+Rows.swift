// Reads rows, in one round trip each, on a borrowed connection.

package import OndolEngine
internal import Synchronization

extension PostgresStore {
  package func rows(
    from lower: [UInt8], to upper: [UInt8], reversed: Bool, atMost count: Int,
    asOf base: CommitPoint
  ) throws(EngineError) -> [RemoteRow] {
    let statement = Statement.range(reversed: reversed, bounded: !upper.isEmpty)
    var parameters = try start(asOf: base)
    parameters.add(lower)
    parameters.add(Int32(clamping: max(0, count)))
    if !upper.isEmpty { parameters.add(upper) }
    var (short, long) = try read(statement, parameters, asOf: base)
    if !long.isEmpty {
      // Two lists, both sorted, and each with the requested number of rows if that many exist.
      let isBefore = { (left: RemoteRow, right: RemoteRow) in
        let order = left.key.bytes.compare(right.key.bytes)
        return reversed ? order > 0 : order < 0
      }
      short = Array((short + long).sorted(by: isBefore).prefix(max(0, count)))
    }
    return reversed ? short.reversed() : short
  }

  package func rows(
    at keys: [[UInt8]], asOf base: CommitPoint
  ) throws(EngineError) -> [RemoteRow] {
    if keys.count == 1, let call = try oneRow(keys[0], asOf: base),
      let rows = try readers.withOne({ (link) throws(EngineError) in
        try link.use(.many, isLimited: true) { (connection) throws(PostgresFailure) in
          try read(call, over: connection, until: nil)
        }
      })
    {
      return rows
    }
    let long = keys.filter { $0.count > Schema.longestHead }
    var rows: [RemoteRow] = []
    if long.count < keys.count || keys.isEmpty {
      var parameters = try start(asOf: base)
      parameters.add(keys.filter { $0.count <= Schema.longestHead }.map { $0 })
      rows = try read(.keys, parameters, asOf: base).short
    }
    if !long.isEmpty {
      var parameters = try start(asOf: base)
      parameters.add(long.map { $0 })
      rows += try read(.longKeys, parameters, asOf: base).long
    }
    return rows
  }

  // MARK: - One row

  /// The minimum wait for an answer that is expected at once. The answer may be late, and a timer
  /// that expires before the system's next tick costs ten microseconds each time.
  private static let longestGlance = Duration.milliseconds(10)

  package func rowsAtOnce(
    at keys: [[UInt8]], asOf base: CommitPoint
  ) throws(EngineError) -> [RemoteRow]? {
    guard keys.count == 1, Duration.nanoseconds(pace.load(ordering: .relaxed)) < promptness,
      let call = try oneRow(keys[0], asOf: base)
    else { return nil }
    return readers.withOneAtOnce { link in
      link.useAtOnce { connection throws(PostgresFailure) in
        try read(call, over: connection, until: .now + max(promptness, Self.longestGlance))
      }
    }
  }

  /// A request for one row.
  private struct OneRow {
    var key: [UInt8]
    var base: CommitPoint
    var parameters: ParameterList
  }

  /// Nil if the row must be requested as one of many.
  private func oneRow(_ key: [UInt8], asOf base: CommitPoint) throws(EngineError) -> OneRow? {
    guard key.count <= Schema.longestHead,
      inner.load(ordering: .relaxed) != base.sequence.rawValue
    else { return nil }
    var parameters = try start(asOf: base)
    parameters.add(key)
    return OneRow(key: key, base: base, parameters: parameters)
  }

  /// The row, or that there is none. It is nil if the answer does not determine that, or is late.
  private func read(
    _ call: OneRow, over connection: PostgresConnection,
    until deadline: ContinuousClock.Instant?
  ) throws(PostgresFailure) -> [RemoteRow]? {
    let isPrepared = connection.hasPrepared(.row)
    let start = ContinuousClock.now
    let answer =
      if let deadline {
        try connection.run(.row, call.parameters, until: deadline)
      } else {
        try connection.run(.row, call.parameters) as PostgresAnswer?
      }
    if isPrepared { note(ContinuousClock.now - start) }
    guard let answer else { return nil }
    try answer.expect(columns: 4)
    guard answer.rowCount == 1 else { return nil }
    let end = try Self.point(try answer.int64(0, 0), try answer.int64(0, 1))
    guard end == call.base else {
      if end.sequence > call.base.sequence {
        inner.store(call.base.sequence.rawValue, ordering: .relaxed)
      }
      return nil
    }
    guard let number = try answer.int64OrNull(0, 2), let value = try answer.bytesOrNull(0, 3) else {
      return []
    }
    let sequence = try Self.point(number, 0).sequence
    return [RemoteRow(key: call.key, sequence: sequence, value: value)]
  }

  /// Records the duration of an answer, together with earlier ones.
  private func note(_ time: Duration) {
    let (seconds, fraction) = time.components
    let new = Int64(min(seconds, 3600)) * 1_000_000_000 + fraction / 1_000_000_000
    let old = pace.load(ordering: .relaxed)
    pace.store(old == .max ? new : old + (new - old) / 8, ordering: .relaxed)
  }

  // MARK: - Many

  /// The parameters that all reads begin with.
  private func start(asOf base: CommitPoint) throws(EngineError) -> ParameterList {
    let database = try opened()
    guard let number = Int64(exactly: base.sequence.rawValue) else { throw missing(base) }
    var parameters = ParameterList()
    parameters.add(database)
    parameters.add(number)
    return parameters
  }

  private func missing(_ base: CommitPoint) -> EngineError {
    .outOfStep(reason: "\(name) has no commit \(base.sequence.rawValue)")
  }

  /// Rows with keys short enough for an index, and the others. Each list is in the server's order.
  private func read(
    _ statement: Statement, _ parameters: ParameterList, asOf base: CommitPoint
  ) throws(EngineError) -> (short: [RemoteRow], long: [RemoteRow]) {
    try readers.withOne { link throws(EngineError) in
      try link.use(.many, isLimited: true) { connection throws(PostgresFailure) in
        let answer = try connection.run(statement, parameters)
        try answer.expect(columns: 3)
        guard answer.rowCount > 0, try answer.bytesOrNull(0, 0) == nil else {
          throw .malformed("rows without what stands in front of them")
        }
        if try answer.int64(0, 1) > Int64(clamping: base.sequence.rawValue) {
          throw .told(.superseded(file: name))
        }
        guard try answer.bytesOrNull(0, 2) == RemoteValue.time(base.time) else {
          throw .told(missing(base))
        }
        var (short, long): ([RemoteRow], [RemoteRow]) = ([], [])
        short.reserveCapacity(answer.rowCount)
        for row in 1..<answer.rowCount {
          let key = try answer.bytes(row, 0)
          let sequence = try Self.point(try answer.int64(row, 1), 0).sequence
          let value = try answer.bytes(row, 2)
          let read = RemoteRow(key: key, sequence: sequence, value: value)
          if key.count > Schema.longestHead { long.append(read) } else { short.append(read) }
        }
        return (short, long)
      }
    }
  }
}
