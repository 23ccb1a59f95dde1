// The engine as the subject of a crash test. Each commit also writes one row of the subject's own,
// stamped with the commit's sequence and time. In any snapshot, that row must name the snapshot's
// last commit; otherwise part of a commit was visible.

package import OndolEngine

package struct EngineSubject: CrashSubject {
  /// It is outside the keyspaces that workloads use, but in the shard of some of them.
  private static let stampKey: [UInt8] = [0, 0, 0x3F, 0xFF]

  /// Keyspaces that hold a row of every commit until a settle drops them, and then the next one
  /// does. No workload sees them.
  private static let scratch: Range<UInt32> = 0x1800..<0x2000

  package let engine: Engine
  private let keyspace: Guarded<UInt32>

  /// Opens the engine at a fixed place in the world's file system.
  package static func open(
    _ environment: Environment, _ options: SubjectOptions
  ) async throws(EngineError) -> EngineSubject {
    return EngineSubject(
      engine: try await Engine.open(
        at: "/db", options: EngineOptions(options), environment: environment),
      keyspace: Guarded(scratch.lowerBound + UInt32(environment.random() % 0x400)))
  }

  /// Returns the same subject, which reads with another engine.
  func reading(_ other: Engine) -> EngineSubject {
    EngineSubject(engine: other, keyspace: keyspace)
  }

  package func commit(
    _ changes: [Change], _ durability: Durability
  ) async throws(EngineError) -> CommitPlace {
    var batch = Batch()
    for change in changes {
      if let value = change.value {
        batch.put(change.key.bytes, value.bytes)
      } else {
        batch.delete(change.key.bytes)
      }
    }
    batch.put(
      Self.stampKey.bytes, [UInt8](repeating: 0, count: 16).bytes,
      stamps: [(offset: 0, form: .sequence), (offset: 8, form: .time)])
    var key: [UInt8] = []
    key.appendBigEndian(keyspace.withLock { $0 })
    key.append(UInt8(changes.count & 7))
    batch.put(key.bytes, [UInt8](repeating: 0x5C, count: 90).bytes)
    let receipt = try await engine.commit(batch, durability: durability)
    return CommitPlace(sequence: receipt.sequence.rawValue, time: receipt.time)
  }

  /// Scans every shard forwards and backwards, and gets some of the rows by key as well.
  package func contents() async throws -> (sequence: UInt64, rows: Rows) {
    let snapshot = try engine.snapshot()
    var rows: Rows = [:]
    for group in 0..<Workload.keyspaceGroups {
      try scan(snapshot, group: group, into: &rows)
    }
    rows = rows.filter { row in !Self.scratch.contains(Self.keyspace(of: row.key)) }
    for (key, value) in rows where key.last.map({ $0 % 4 == 0 }) == true {
      guard try await snapshot.get(key) == value else {
        throw BrokenInvariant("a scan finds a row that a search does not, \(key)")
      }
    }
    try checkStamp(rows.removeValue(forKey: Self.stampKey), in: snapshot)
    return (snapshot.sequence.rawValue, rows)
  }

  private static func keyspace(of key: [UInt8]) -> UInt32 {
    key.prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
  }

  private func checkStamp(_ stamp: [UInt8]?, in snapshot: Snapshot) throws {
    var expected: [UInt8] = []
    expected.appendLittleEndian(snapshot.sequence.rawValue)
    if snapshot.sequence == .zero, stamp == nil { return }
    guard let stamp, stamp.starts(with: expected) else {
      throw BrokenInvariant(
        "after commit \(snapshot.sequence.rawValue) the stamp is \(stamp ?? [])")
    }
  }

  private func scan(
    _ snapshot: Snapshot, group: UInt32, into rows: inout Rows
  ) throws {
    var lower: [UInt8] = []
    lower.appendBigEndian(group << 12)
    var upper: [UInt8] = []
    upper.appendBigEndian((group + 1) << 12)
    var cursor = snapshot.cursor(from: lower, to: upper)
    try cursor.seekToFirst()
    var keys: [[UInt8]] = []
    while cursor.isValid {
      let key = cursor.key.array
      if let last = keys.last, !last.lexicographicallyPrecedes(key) {
        throw BrokenInvariant("a scan goes from \(last) to \(key)")
      }
      rows[key] = try cursor.value.array
      keys.append(key)
      try cursor.next()
    }
    try cursor.seekToLast()
    while cursor.isValid, keys.popLast() == cursor.key.array {
      try cursor.previous()
    }
    if cursor.isValid || !keys.isEmpty {
      throw BrokenInvariant("a scan backwards finds other rows, in group \(group)")
    }
  }

  package func synchronize() async throws(EngineError) {
    try await engine.synchronize()
  }

  package func flush() async throws(EngineError) {
    try await engine.flush()
  }

  package func settle() async throws {
    let dropped = keyspace.withLock { keyspace in
      defer { keyspace += 1 }
      return keyspace
    }
    try await engine.drop(keyspaces: [dropped])
    try await engine.compact()
    var rows = try scratchRows()
    if !rows.isEmpty {
      // A file that was temporarily unreadable is merged the next time.
      try await engine.compact()
      rows = try scratchRows()
    }
    guard !rows.keys.contains(where: { Self.keyspace(of: $0) == dropped }) else {
      throw BrokenInvariant("rows of keyspace \(dropped) are there after it was dropped")
    }
  }

  private func scratchRows() throws -> Rows {
    var rows: Rows = [:]
    try scan(try engine.snapshot(), group: Self.scratch.lowerBound >> 12, into: &rows)
    return rows
  }

  package func close() async throws(EngineError) {
    try await engine.close()
  }
}
