// What is to be written to the tree when this database is closed: the Realtime Database's
// operations on disconnect, for an app that says who is there. They are rows themselves, so they
// are carried out even when nobody was there to close the database: the next opening does it.
//
//   key: the place's components behind the keyspace
//   value: count of rows, and for each: its key behind the place (length, bytes), how many of these
//   bytes are its parent's, and the row (length, bytes)
//
// They are carried out in the order of their places, so what is meant for a place inside another's
// comes behind it.

internal import Logging
internal import OndolEngine

extension TreeReference {
  /// Has the node replaced when the database is closed, by `close()` or, after a crash, by the next
  /// opening; null removes it. It takes the place of what was to be done here and below.
  ///
  /// The Realtime Database's `onDisconnectSetValue`, with the database's closing in the place of a
  /// lost connection.
  ///
  /// - Parameters:
  ///   - value: what the node is to be: null, a boolean, a number, a text, a map or an array.
  ///   - priority: a number or a text; nil for none.
  ///   - durability: what the commit survives that notes this; the database's own when nil.
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

  /// As the form with one value, for a map whose values are of several types.
  ///
  /// - Parameters:
  ///   - value: what the node is to be.
  ///   - priority: a number or a text; nil for none.
  ///   - durability: what the commit survives that notes this; the database's own when nil.
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

  /// Has several places below the node replaced when the database is closed. A path cannot end with
  /// `.priority` here.
  ///
  /// - Parameters:
  ///   - values: what is to be at which path below the node.
  ///   - durability: what the commit survives that notes this; the database's own when nil.
  /// - Throws: as `updateChildValues`.
  /// - Complexity: O(log n) for each path; at the end as `updateChildValues`.
  @discardableResult
  public func onCloseUpdateChildValues(
    _ values: [String: (any FieldContent)?], durability: Durability? = nil
  ) async throws(DatabaseError) -> TreeWriteResult {
    let changes = try TreeCompiler.update(self, values)
    return try await database.commit(onClose: changes, durability: durability)
  }

  /// Has the node removed when the database is closed.
  ///
  /// - Parameter durability: what the commit survives that notes this; the database's own when nil.
  /// - Throws: as `removeValue`.
  /// - Complexity: O(log n); at the end as `removeValue`.
  @discardableResult
  public func onCloseRemoveValue(
    durability: Durability? = nil
  ) async throws(DatabaseError) -> TreeWriteResult {
    let change = TreeChange(path: try place.get(), content: .replace(.nothing))
    return try await database.commit(onClose: [change], durability: durability)
  }

  /// Forgets what was to be done when the database is closed, here and below.
  ///
  /// - Parameter durability: what the commit survives that forgets this; the database's own when
  ///   nil.
  /// - Throws: as `removeValue`.
  /// - Complexity: O(log n) and the operations forgotten.
  @discardableResult
  public func cancelCloseOperations(
    durability: Durability? = nil
  ) async throws(DatabaseError) -> TreeWriteResult {
    let path = try place.get()
    return try await database.commitTree(durability) { (rows, batch) throws(DatabaseError) in
      try CloseOperations.forget(path, in: rows, &batch)
    }
  }
}

/// The rows of what is to be done.
enum CloseOperations {
  static let range = KeyRange(prefix: Keyspace.closeOperations.prefix)

  private static func key(_ path: TreePath) -> [UInt8] {
    Keyspace.closeOperations.prefix + path.rowKey.dropFirst(TreeKey.root.count)
  }

  /// Removes what is to be done at a place and below.
  static func forget(
    _ path: TreePath, in rows: Rows, _ batch: inout Batch
  ) throws(DatabaseError) {
    let range = KeyRange(prefix: key(path))
    batch.guardUnchanged(from: range.lower.bytes, to: range.upper.bytes)
    try rows.forEachRow(in: range) { (key, _) throws(DatabaseError) in
      batch.delete(key)
      return true
    }
  }

  /// Notes what is to be done, instead of what was at the same places and below.
  static func note(
    _ changes: [TreeChange], in rows: Rows, _ batch: inout Batch
  ) throws(DatabaseError) {
    for change in changes {
      guard case .replace(let content) = change.content else {
        throw DatabaseError(
          .invalidArgument, "a priority cannot be changed on close; set the value with it",
          path: "\(change.path)")
      }
      try forget(change.path, in: rows, &batch)
      batch.put(key(change.path).bytes, bytes(content).bytes)
    }
  }

  /// What is to be done, in order.
  static func all(in rows: Rows) throws(DatabaseError) -> [(key: [UInt8], change: TreeChange)] {
    var found: [(key: [UInt8], change: TreeChange)] = []
    try rows.forEachRow(in: range) { (key, value) throws(DatabaseError) in
      do throws(MalformedBytes) {
        found.append((key.array, try operation(key.array, value)))
      } catch {
        throw DatabaseError(tree: error)
      }
      return true
    }
    return found
  }

  /// What a row says is to be done.
  static func operation(
    _ key: [UInt8], _ value: RawSpan
  ) throws(MalformedBytes) -> TreeChange {
    let rowKey = TreeKey.root + key.dropFirst(TreeKey.root.count)
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
  /// Commits what is to be done when the database is closed.
  fileprivate func commit(
    onClose changes: [TreeChange], durability: Durability?
  ) async throws(DatabaseError) -> TreeWriteResult {
    try await commitTree(durability) { (rows, batch) throws(DatabaseError) in
      try CloseOperations.note(changes, in: rows, &batch)
    }
  }

  /// Does what is to be done when the database is closed; what cannot be done is logged, and stays
  /// for the next time.
  func carryOutCloseOperations() async {
    guard !engine.isReadOnly else { return }
    do throws(DatabaseError) {
      _ = try await commitTree(nil) { (rows, batch) throws(DatabaseError) in
        let operations = try CloseOperations.all(in: rows)
        guard !operations.isEmpty else { return }
        var preparation = TreePreparation(rows)
        for operation in operations {
          try preparation.apply([operation.change])
          batch.delete(operation.key.bytes)
        }
        let range = CloseOperations.range
        batch.guardUnchanged(from: range.lower.bytes, to: range.upper.bytes)
        preparation.add(to: &batch)
      }
    } catch {
      guard error.code != .failedPrecondition else { return }
      options.logger.error(
        "what was to be written on close could not be", metadata: ["error": "\(error)"])
    }
  }
}
