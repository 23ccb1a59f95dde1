// Writes to the tree for the end of a client's connection to a server: the Realtime Database's
// operations on disconnect. They are rows of the database, like close operations, so they happen
// when the server dies: its next start carries them out, or, on a store, another process.
//
//   key: process (8 bytes, high byte first; 0 without a store), connection (8), components
//   value: as close operations have it

internal import OndolEngine

/// What is to be written when one connection ends.
package struct ConnectionOperations: Sendable {
  private let database: Database
  private let connection: UInt64

  /// - Parameter connection: the connection's number. No other connection to the database may have
  ///   it, so it is drawn at random.
  package init(_ database: Database, connection: UInt64) {
    self.database = database
    self.connection = connection
  }

  private var operations: CloseOperations {
    CloseOperations(of: database.engine.process, connection: connection)
  }

  /// Replaces the node when the connection ends, instead of earlier operations here and below.
  ///
  /// - Throws: as `TreeReference.setValue`.
  package func setValue(_ value: Value, at reference: TreeReference) async throws(DatabaseError) {
    try await note([TreeCompiler.set(reference, value, nil)])
  }

  /// Replaces several places below the node when the connection ends.
  ///
  /// - Throws: as `TreeReference.updateChildValues`; `.invalidArgument` for the path of a priority.
  package func updateChildValues(
    _ values: [String: Value], at reference: TreeReference
  ) async throws(DatabaseError) {
    try await note(TreeCompiler.update(reference, values))
  }

  /// Cancels the operations here and below.
  ///
  /// - Throws: as `TreeReference.removeValue`.
  package func cancel(at reference: TreeReference) async throws(DatabaseError) {
    let (path, operations) = (try reference.place.get(), operations)
    _ = try await database.commitTree(nil) { (rows, batch) throws(DatabaseError) in
      try operations.forget(path, in: rows, &batch)
    }
  }

  private func note(_ changes: [TreeChange]) async throws(DatabaseError) {
    let operations = operations
    _ = try await database.commitTree(nil) { (rows, batch) throws(DatabaseError) in
      try operations.note(changes, in: rows, &batch)
    }
  }

  /// Carries out all operations, in one commit, because the connection has ended. If that fails,
  /// the database logs it and tries again later, at the latest when it is opened again.
  package func carryOut() async {
    await database.carryOutOperations(ofEnded: connection)
  }
}
