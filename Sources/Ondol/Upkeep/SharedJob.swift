// Work that one at a time may do of the processes that share a database on a store, because what it
// writes before it is done makes sense to itself alone. A row says which process has it. One that
// is gone, see `Engine.livingProcesses`, has it no longer; and whatever a process commits that was
// only away, and has lost the job meanwhile, is refused: each commit of the job guards the row.
//
// Upkeep that is right whoever does it, however many at once, needs none of this: each of its
// commits guards what it was derived from.
//
//   key: keyspace 7, the kind of job as text, a zero, a keyspace (4)
//   value: the process (8), or zero when one has failed at it and nobody has it

internal import OndolEngine

/// A job of all processes; in files nothing but what is to be done.
struct SharedJob: Sendable {
  /// How somebody comes to a job.
  private enum Turn {
    case taken
    /// The last one has done all it began.
    case clean
    /// The last one has not, and may have left something.
    case inherited
  }

  private let database: Database
  private let key: [UInt8]

  static let keyspace = Keyspace(rawValue: 7)
  /// Microseconds until somebody looks again whether a job is free.
  private static let pause: Int64 = 500_000
  /// Stands for nobody.
  private static let nobody: Int64 = 0

  init(_ database: Database, _ kind: String, _ keyspace: Keyspace) {
    self.database = database
    key = Self.keyspace.prefix + Array(kind.utf8) + [0] + keyspace.prefix
  }

  /// Runs `body` once no other process has the job; anew when one has taken it meanwhile.
  func doInTurn<R>(
    _ body: (_ isInherited: Bool) async throws(DatabaseError) -> R
  ) async throws(DatabaseError) -> R {
    while true {
      if let result = try await doUnlessTaken(body) { return result }
      await database.rest(Self.pause)
      try refuseWhenCancelled("it is another process's turn")
    }
  }

  /// Runs `body`, unless another process has the job, or has taken it meanwhile; then nil.
  ///
  /// - Parameter body: told whether the last one who had the job, in any process, may have left
  ///   something half done.
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
      // What was refused because the job is another's now is that one's to do.
      guard await giveBack(from: process, isDone: false) || error.code != .aborted else {
        return nil
      }
      throw error
    }
  }

  /// Has the commit be refused unless this process has the job until then.
  func guardTurn(in batch: inout Batch, _ rows: Rows) throws(DatabaseError) {
    guard let process = database.engine.process else { return }
    guard try holder(in: rows) == process else {
      throw DatabaseError(.aborted, "another process has gone on with it")
    }
    batch.guardUnchanged(key.bytes)
  }

  private func holder(in rows: Rows) throws(DatabaseError) -> Int64? {
    guard let row = try rows.row(key) else { return nil }
    do throws(MalformedBytes) {
      var reader = ByteReader(row.bytes)
      return Int64(bigEndian: try reader.littleEndian())
    } catch {
      throw DatabaseError(.dataLoss, "the row of a job is damaged: \(error.reason)")
    }
  }

  private func take(for process: Int64) async throws(DatabaseError) -> Turn {
    while true {
      let (holder, snapshot) = try await look()
      if let holder, holder != process, holder != Self.nobody {
        let living = try await rethrowing { () async throws(EngineError) in
          try await database.engine.livingProcesses()
        }
        if living.contains(holder) { return .taken }
      }
      if try await put(process, asOf: snapshot) { return holder == nil ? .clean : .inherited }
    }
  }

  /// Gives the job back, unless another process has taken it; then false. One that cannot be given
  /// back is this process's until it is gone, or has done it again.
  private func giveBack(from process: Int64, isDone: Bool) async -> Bool {
    do throws(DatabaseError) {
      while true {
        let (holder, snapshot) = try await look()
        guard holder == process else { return false }
        if try await put(isDone ? nil : Self.nobody, asOf: snapshot) { return true }
      }
    } catch {
      return true
    }
  }

  private func look() async throws(DatabaseError) -> (Int64?, Snapshot) {
    let snapshot = try database.engineSnapshot()
    let holder = try await database.read(snapshot) { (rows) throws(DatabaseError) -> Int64? in
      try self.holder(in: rows)
    }
    return (holder, snapshot)
  }

  /// Says who has the job; false when somebody else has said so since the snapshot.
  private func put(_ process: Int64?, asOf snapshot: Snapshot) async throws(DatabaseError) -> Bool {
    var batch = Batch()
    batch.basis = snapshot.sequence
    batch.guardUnchanged(key.bytes)
    if let process {
      var value: [UInt8] = []
      value.appendBigEndian(process)
      batch.put(key.bytes, value.bytes)
    } else {
      batch.delete(key.bytes)
    }
    return try await database.engine.commitUnlessStale(batch, durability: .process) != nil
  }
}
