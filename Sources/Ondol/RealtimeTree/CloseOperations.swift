// Writes to the tree that happen when this database is closed: the Realtime Database's operations
// on disconnect, for an app that shows who is online. They are stored as rows, so they happen even
// when the database was not closed cleanly: the next open carries them out. On a store, each
// process has its own operations, and another process carries them out when it has died.
//
//   key: the place's components after the keyspace
//   value: count of rows, and for each: its key after the place (length, bytes), how many of these
//   bytes are its parent's, and the row (length, bytes)
//
// They are carried out in the order of their places, so an operation on a place inside another one
// comes after that one's.

internal import Logging
internal import OndolEngine

extension TreeReference {
  /// Replaces the node when the database is closed, by `close()` or, after a crash, by the next
  /// open; null removes it. This replaces earlier close operations here and below.
  ///
  /// This is the Realtime Database's `onDisconnectSetValue`, with closing the database instead of
  /// losing a connection. For a database on a store, each process has its own operations, and
  /// another process carries them out within three minutes when this one has died.
  ///
  /// - Parameters:
  ///   - value: the node's future value: null, a boolean, a number, a text, a map or an array.
  ///   - priority: a number or a text; nil for none.
  ///   - durability: what the commit that stores this operation survives; the database's own when
  ///     nil.
  /// - Throws: as `setValue`.
  /// - Complexity: O(log n) and the rows written now; at the end as `setValue`.
  @_disfavoredOverload @discardableResult
  public func onCloseSetValue(
    _ value: (any FieldContent)?, andPriority priority: (any FieldContent)? = nil,
    durability: Durability? = nil
  ) async throws(DatabaseError) -> TreeWriteResult {
    let change = try TreeCompiler.set(self, value, priority)
    return try await database.commit(onClose: [change], durability: durability)
  }

  /// Like the form with one value, for a map whose values are of several types.
  ///
  /// - Parameters:
  ///   - value: the node's future value.
  ///   - priority: a number or a text; nil for none.
  ///   - durability: what the commit that stores this operation survives; the database's own when
  ///     nil.
  /// - Throws: as the form with one value.
  /// - Complexity: as the form with one value.
  @discardableResult
  public func onCloseSetValue(
    _ value: [String: (any FieldContent)?], andPriority priority: (any FieldContent)? = nil,
    durability: Durability? = nil
  ) async throws(DatabaseError) -> TreeWriteResult {
    let change = try TreeCompiler.set(self, value, priority)
    return try await database.commit(onClose: [change], durability: durability)
  }

  /// Replaces several places below the node when the database is closed. A path cannot end with
  /// `.priority` here.
  ///
  /// - Parameters:
  ///   - values: the future values by path below the node.
  ///   - durability: what the commit that stores this operation survives; the database's own when
  ///     nil.
  /// - Throws: as `updateChildValues`.
  /// - Complexity: O(log n) for each path; at the end as `updateChildValues`.
  @discardableResult
  public func onCloseUpdateChildValues(
    _ values: [String: (any FieldContent)?], durability: Durability? = nil
  ) async throws(DatabaseError) -> TreeWriteResult {
    let changes = try TreeCompiler.update(self, values)
    return try await database.commit(onClose: changes, durability: durability)
  }

  /// Removes the node when the database is closed.
  ///
  /// - Parameter durability: what the commit that stores this operation survives; the database's
  ///   own when nil.
  /// - Throws: as `removeValue`.
  /// - Complexity: O(log n); at the end as `removeValue`.
  @discardableResult
  public func onCloseRemoveValue(
    durability: Durability? = nil
  ) async throws(DatabaseError) -> TreeWriteResult {
    let change = TreeChange(path: try place.get(), content: .replace(.nothing))
    return try await database.commit(onClose: [change], durability: durability)
  }

  /// Cancels the close operations here and below.
  ///
  /// - Parameter durability: what the commit that cancels them survives; the database's own when
  ///   nil.
  /// - Throws: as `removeValue`.
  /// - Complexity: O(log n) and the cancelled operations.
  @discardableResult
  public func cancelCloseOperations(
    durability: Durability? = nil
  ) async throws(DatabaseError) -> TreeWriteResult {
    let path = try place.get()
    return try await database.commitTree(durability) { (rows, batch) throws(DatabaseError) in
      try CloseOperations(of: database.engine.process).forget(path, in: rows, &batch)
    }
  }
}

/// The rows of close operations.
struct CloseOperations {
  /// The prefix of their keys.
  private let prefix: [UInt8]
  /// On a store, the process that they belong to.
  let process: Int64?
  /// The connection for whose end they are; nil for closing the database.
  let connection: UInt64?

  /// Bytes of a key that name a connection and its process.
  static let connectionLength = 16

  /// - Parameter process: on a store, the process that they belong to.
  init(of process: Int64?) {
    var prefix = Keyspace.closeOperations.prefix
    if let process {
      prefix = Keyspace.sharedCloseOperations.prefix
      prefix.appendBigEndian(process)
    }
    self.prefix = prefix
    self.process = process
    connection = nil
  }

  /// The operations for the end of a connection.
  init(of process: Int64?, connection: UInt64) {
    var prefix = Keyspace.connectionOperations.prefix
    prefix.appendBigEndian(process ?? 0)
    prefix.appendBigEndian(connection)
    self.prefix = prefix
    self.process = process
    self.connection = connection
  }

  private func key(_ path: TreePath) -> [UInt8] {
    prefix + path.rowKey.dropFirst(TreeKey.root.count)
  }

  /// Removes the operations at a place and below.
  func forget(
    _ path: TreePath, in rows: Rows, _ batch: inout Batch
  ) throws(DatabaseError) {
    let range = KeyRange(prefix: key(path))
    batch.guardUnchanged(from: range.lower.bytes, to: range.upper.bytes)
    try rows.forEachRow(in: range) { (key, _) throws(DatabaseError) in
      batch.delete(key)
      return true
    }
  }

  /// Stores operations, replacing those at the same places and below.
  func note(
    _ changes: [TreeChange], in rows: Rows, _ batch: inout Batch
  ) throws(DatabaseError) {
    for change in changes {
      guard case .replace(let content) = change.content else {
        throw DatabaseError(
          .invalidArgument, "a priority cannot be changed on close; set the value with it",
          path: "\(change.path)")
      }
      try forget(change.path, in: rows, &batch)
      batch.put(key(change.path).bytes, Self.bytes(content).bytes)
    }
  }

  /// All operations, in order.
  func all(in rows: Rows) throws(DatabaseError) -> [(key: [UInt8], change: TreeChange)] {
    var found: [(key: [UInt8], change: TreeChange)] = []
    try rows.forEachRow(in: KeyRange(prefix: prefix)) { (key, value) throws(DatabaseError) in
      do throws(MalformedBytes) {
        let place = Array(key.array.dropFirst(prefix.count))
        found.append((key.array, try Self.operation(at: place, value)))
      } catch {
        throw DatabaseError(tree: error)
      }
      return true
    }
    return found
  }

  /// The processes of a store that have close operations.
  static func owners(in rows: Rows) throws(DatabaseError) -> [Int64] {
    let prefix = Keyspace.sharedCloseOperations.prefix
    var walk = RangeWalk(rows, [KeyRange(prefix: prefix)])
    var owners: [Int64] = []
    var isThere = try walk.next()
    while isThere {
      let process: Int64
      do throws(MalformedBytes) {
        var reader = ByteReader(walk.cursor.key)
        _ = try reader.take(prefix.count)
        process = Int64(bigEndian: try reader.littleEndian())
      } catch {
        throw DatabaseError(tree: error)
      }
      owners.append(process)
      var next = prefix
      next.appendBigEndian(process)
      isThere = try walk.next(from: KeyRange(prefix: next).upper)
    }
    return owners
  }

  /// The operations of all connections, including those of other processes.
  static func ofConnections(in rows: Rows) throws(DatabaseError) -> [CloseOperations] {
    let start = Keyspace.connectionOperations.prefix
    var walk = RangeWalk(rows, [KeyRange(prefix: start)])
    var found: [CloseOperations] = []
    var isThere = try walk.next()
    while isThere {
      do throws(MalformedBytes) {
        var reader = ByteReader(walk.cursor.key)
        _ = try reader.take(start.count)
        let process = Int64(bigEndian: try reader.littleEndian())
        let connection = UInt64(bigEndian: try reader.littleEndian())
        found.append(
          CloseOperations(of: process == 0 ? nil : process, connection: connection))
      } catch {
        throw DatabaseError(tree: error)
      }
      guard let next = found.last else { break }
      isThere = try walk.next(from: KeyRange(prefix: next.prefix).upper)
    }
    return found
  }

  /// Adds all operations to the batch, each once.
  func carryOut(in rows: Rows, _ batch: inout Batch) throws(DatabaseError) {
    let operations = try all(in: rows)
    guard !operations.isEmpty else { return }
    var preparation = TreePreparation(rows)
    for operation in operations {
      try preparation.apply([operation.change])
      batch.delete(operation.key.bytes)
    }
    let range = KeyRange(prefix: prefix)
    batch.guardUnchanged(from: range.lower.bytes, to: range.upper.bytes)
    preparation.add(to: &batch)
  }

  /// The operation in a row.
  ///
  /// - Parameter place: its key after the prefix.
  static func operation(
    at place: [UInt8], _ value: RawSpan
  ) throws(MalformedBytes) -> TreeChange {
    let rowKey = TreeKey.root + place
    var path = TreePath.root
    for name in try TreeKey.path(of: rowKey.bytes) ?? [] { path = try Self.path(name, in: path) }
    return TreeChange(path: path, content: .replace(try content(value)))
  }

  private static func path(_ key: String, in path: TreePath) throws(MalformedBytes) -> TreePath {
    do throws(DatabaseError) {
      return try path.appending(key: key)
    } catch {
      throw MalformedBytes(at: 0, error.message)
    }
  }

  private static func bytes(_ content: TreeContent) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.appendVarint(content.rows.count)
    for entry in content.rows {
      let row = entry.row.bytes.row
      bytes.appendVarint(entry.suffix.count)
      bytes += entry.suffix
      bytes.appendVarint(entry.parentLength)
      bytes.appendVarint(row.count)
      bytes += row
    }
    return bytes
  }

  private static func content(_ bytes: RawSpan) throws(MalformedBytes) -> TreeContent {
    var reader = ByteReader(bytes)
    var rows: [TreeContent.Row] = []
    for _ in 0..<(try reader.count(atMost: bytes.byteCount)) {
      let suffix = try reader.lengthPrefixed().array
      let parentLength = try reader.count(atMost: suffix.count)
      let row = try TreeRow(try reader.lengthPrefixed())
      rows.append(TreeContent.Row(suffix: suffix, parentLength: parentLength, row: row))
    }
    guard reader.isAtEnd else {
      throw MalformedBytes(at: reader.offset, "an operation on close goes on behind its end")
    }
    return TreeContent(rows: rows)
  }
}

extension Database {
  /// Commits changes of the close operations.
  fileprivate func commit(
    onClose changes: [TreeChange], durability: Durability?
  ) async throws(DatabaseError) -> TreeWriteResult {
    let process = engine.process
    return try await commitTree(durability) { (rows, batch) throws(DatabaseError) in
      try CloseOperations(of: process).note(changes, in: rows, &batch)
    }
  }

  /// Carries out the operations of the previous session, or on a store those of processes that have
  /// died.
  func carryOutCloseOperationsOfNobody() async {
    if engine.isOnStore { return await carryOutCloseOperationsOfOthers() }
    await carryOut([CloseOperations(of: nil)] + connectionOperations { _ in true })
  }

  /// Carries out the close operations. One that fails is logged and stays for the next time.
  func carryOutCloseOperations() async {
    guard !engine.isReadOnly else { return }
    let process = engine.process
    let ofConnections = await connectionOperations { $0.process == process }
    await carryOut(ofConnections + [CloseOperations(of: process)])
  }

  /// Carries out the operations of a connection that has ended.
  func carryOutOperations(ofEnded connection: UInt64) async {
    _ = endedConnections.withLock { $0.insert(connection) }
    await carryOutOperationsOfEnded()
  }

  /// Carries out the operations of the connections that have ended, as far as that is possible now.
  private func carryOutOperationsOfEnded() async {
    for connection in endedConnections.withLock({ $0 }) {
      let operations = CloseOperations(of: engine.process, connection: connection)
      guard await carryOut([operations]) else { continue }
      _ = endedConnections.withLock { $0.remove(connection) }
    }
  }

  /// The operations of those connections that `isIncluded` selects; none when they cannot be read,
  /// which is logged.
  private func connectionOperations(
    _ isIncluded: (CloseOperations) -> Bool
  ) async -> [CloseOperations] {
    do throws(DatabaseError) {
      return try await read(try engineSnapshot()) { (rows) throws(DatabaseError) in
        try CloseOperations.ofConnections(in: rows)
      }.filter(isIncluded)
    } catch {
      report(error)
      return []
    }
  }

  /// On a store, carries out the close operations of processes that have died.
  func carryOutCloseOperationsOfOthers() async {
    await carryOutOperationsOfEnded()
    do throws(DatabaseError) {
      let stored = try await read(try engineSnapshot()) { (rows) throws(DatabaseError) in
        try CloseOperations.owners(in: rows).map { CloseOperations(of: $0) }
          + CloseOperations.ofConnections(in: rows)
      }
      let others = stored.filter { $0.process != engine.process }
      if others.isEmpty { return }
      // Queried after reading the rows: a process that has stored an operation was registered
      // before.
      let living = try await rethrowing { () async throws(EngineError) in
        try await engine.livingProcesses()
      }
      await carryOut(others.filter { $0.process.map { !living.contains($0) } ?? false })
    } catch {
      report(error)
    }
  }

  /// Returns whether all of them are carried out.
  @discardableResult
  private func carryOut(_ operations: [CloseOperations]) async -> Bool {
    var isDone = true
    for operations in operations {
      do throws(DatabaseError) {
        _ = try await commitTree(nil) { (rows, batch) throws(DatabaseError) in
          try operations.carryOut(in: rows, &batch)
        }
      } catch {
        report(error)
        isDone = false
      }
    }
    return isDone
  }

  private func report(_ error: DatabaseError) {
    guard error.code != .failedPrecondition, error.code != .cancelled else { return }
    options.logger.error(
      "what was to be written on close could not be", metadata: ["error": "\(error)"])
  }
}
