// Reading rows: one round trip each, on a connection that is borrowed for as long.

package import OndolEngine

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
      // Two lists, each in order and each with as many as were asked for, if there are.
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
    .poisoned(reason: "\(name) has no commit \(base.sequence.rawValue)")
  }

  /// Rows with keys that an index takes, and the others; each in the server's order.
  private func read(
    _ statement: Statement, _ parameters: ParameterList, asOf base: CommitPoint
  ) throws(EngineError) -> (short: [RemoteRow], long: [RemoteRow]) {
    try readers.withOne { link throws(EngineError) in
      try link.use(.many) { connection throws(PostgresFailure) in
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
