// Work that only one process at a time may do among those that share a database on a store, because
// its unfinished writes are meaningful only to that process. A row records which process has the
// job. A dead process, see `Engine.livingProcesses`, loses it. Commits of a process that was only
// away, and has lost the job meanwhile, are refused: each commit of the job guards the row.
//
// Upkeep that is correct whichever process does it, and however many at once, needs none of this:
// each of its commits guards what it was derived from.
//
//   key: keyspace 7, the kind of job as text, a zero, a keyspace (4)
//   value: the process (8), or zero when one has failed at it and no process has it

internal import OndolEngine

/// A job of all processes; for a database in files, it only runs the work.
struct SharedJob: Sendable {
  /// How a process gets a job.
  private enum Turn {
    case taken
    /// The previous process has completed everything it began.
    case clean
    /// The previous process has not, and may have left something.
    case inherited
  }

  private let database: Database
  private let key: [UInt8]

  static let keyspace = Keyspace(rawValue: 7)
  /// Microseconds until the next check whether a job is free.
  private static let pause: Int64 = 500_000
  /// Means no process.
  private static let nobody: Int64 = 0

  init(_ database: Database, _ kind: String, _ keyspace: Keyspace) {
    self.database = database
    key = Self.keyspace.prefix + Array(kind.utf8) + [0] + keyspace.prefix
  }

  /// Runs `body` once no other process has the job; runs it again when one has taken the job
  /// meanwhile.
  func doInTurn<R>(
    _ body: (_ isInherited: Bool) async throws(DatabaseError) -> R
  ) async throws(DatabaseError) -> R {
    while true {
      if let result = try await doUnlessTaken(body) { return result }
      await database.rest(Self.pause)
      try refuseWhenCancelled("it is another process's turn")
    }
  }

  /// Runs `body`, unless another process has the job, or has taken it meanwhile; then returns nil.
  ///
  /// - Parameter body: receives whether the last process with the job, any of them, may have left
  ///   something unfinished.
  func doUnlessTaken<R>(
    _ body: (_ isInherited: Bool) async throws(DatabaseError) -> R
  ) async throws(DatabaseError) -> R? {
    guard let process = database.engine.process else { return try await body(false) }
    let turn = try await take(for: process)
    if turn == .taken { return nil }
    do throws(DatabaseError) {
      let result = try await body(turn == .inherited)
      _ = await giveBack(from: process, isDone: true)
      return result
    } catch {
      // If another process has taken the job, the refused work is left to that process.
      guard await giveBack(from: process, isDone: false) || error.code != .aborted else {
        return nil
      }
      throw error
    }
  }

  /// Makes the commit fail unless this process has the job until then.
  func guardTurn(in batch: inout Batch, _ rows: Rows) throws(DatabaseError) {
    guard let process = database.engine.process else { return }
    let row = try rows.row(key)
    let holder = try rethrowing { () throws(EngineError) in try processNamed(in: row) }
    guard holder == process else {
      throw DatabaseError(.aborted, "another process has gone on with it")
    }
    batch.guardUnchanged(key.bytes)
  }

  private func processNamed(in row: [UInt8]?) throws(EngineError) -> Int64? {
    guard let row else { return nil }
    do throws(MalformedBytes) {
      var reader = ByteReader(row.bytes)
      return Int64(bigEndian: try reader.littleEndian())
    } catch {
      throw .corrupt(
        file: database.name, offset: 0, reason: "the row of a job: \(error.reason)")
    }
  }

  private func take(for process: Int64) async throws(DatabaseError) -> Turn {
    let engine = database.engine
    return try await rethrowing { () async throws(EngineError) in
      let turn = try await engine.commit(about: key, durability: .process) {
        (row, batch) async throws(EngineError) -> Turn? in
        let holder = try processNamed(in: row)
        if let holder, holder != process, holder != Self.nobody,
          try await engine.livingProcesses().contains(holder)
        {
          return nil
        }
        put(process, into: &batch)
        return holder == nil ? .clean : .inherited
      }
      return turn ?? .taken
    }
  }

  /// Releases the job, unless another process has taken it; then returns false. A job that cannot
  /// be released stays this process's until the process is gone, or has done it again.
  private func giveBack(from process: Int64, isDone: Bool) async -> Bool {
    do throws(EngineError) {
      let isGiven = try await database.engine.commit(about: key, durability: .process) {
        (row, batch) throws(EngineError) -> Bool? in
        guard try processNamed(in: row) == process else { return nil }
        if isDone { batch.delete(key.bytes) } else { put(Self.nobody, into: &batch) }
        return true
      }
      return isGiven != nil
    } catch {
      return true
    }
  }

  /// Records which process has the job.
  private func put(_ process: Int64, into batch: inout Batch) {
    var value: [UInt8] = []
    value.appendBigEndian(process)
    batch.put(key.bytes, value.bytes)
  }
}
