// A witness of commits: code of a higher layer that must write down what commits do, within the
// same commits. Synchronisation is one: what a device has written waits in rows of its own until a
// server has it, and a crash must take both or none. The committer asks the witness at the end of
// stage 2 and notifies it after stage 5. A database without a witness pays for one look at a flag.

internal import OndolEngine

/// Adds rows to the commits of documents that concern it.
package protocol CommitWitness: AnyObject, Sendable {
  /// The collections whose documents it sees. They cannot be dropped or renamed.
  var followed: FollowedCollections { get }

  /// Whether it wants to see the writes of the document at a path.
  func concerns(_ path: DocumentPath) -> Bool

  /// The rows that belong into a commit. An attempt may be asked several times, and need not be
  /// committed.
  ///
  /// - Throws: what the commit's caller gets; then nothing is written.
  func rows(for commit: WitnessedCommit) throws(DatabaseError) -> WitnessedRows?

  /// A commit with these rows is visible. Commits need not come in their order.
  func committed(_ rows: WitnessedRows)
}

/// What a witness adds to a commit.
package struct WitnessedRows: Sendable {
  /// Writes of documents that no app can name.
  package var writes: [ClientWrite]
  /// How many bytes of them the witness accounts for.
  package var bytes: Int

  package init(_ writes: [ClientWrite], bytes: Int) {
    self.writes = writes
    self.bytes = bytes
  }
}

/// A write that a witness sees, after its conditions were met.
package struct WitnessedWrite: Sendable {
  /// The write. Of its conditions, only existence is left.
  package let write: ClientWrite
  /// Whether the app made it for the state that it has read.
  package let reliesOnState: Bool
}

/// A commit that a witness sees.
package struct WitnessedCommit {
  /// The writes that concern the witness, in their order.
  package let writes: [WitnessedWrite]
  /// The documents that a transaction has read, existing or not.
  package let read: [DocumentPath]
  /// The queries whose results a transaction has read.
  package let queries: [Query]
  fileprivate let rows: Rows

  /// The fields of a document before the commit; nil when there is none. The document may be one
  /// that no app can name.
  package func fields(at path: DocumentPath) throws(DatabaseError) -> [String: Value]? {
    try DocumentReader(rows: rows).contents(of: path)?.fields
  }

  /// The documents that a query finds before the commit, in the order of the result.
  ///
  /// - Throws: as `QuerySource.getDocuments()`.
  /// - Complexity: as `QuerySource.getDocuments()`.
  package func documents(of query: Query) throws(DatabaseError) -> [DocumentPath] {
    var executor = try Executor(try query.select([]).shape.get(), in: query.database, rows)
    var paths: [DocumentPath] = []
    for document in try executor.documents() { paths.append(try document.reference.place.get()) }
    return paths
  }
}

extension Catalog {
  /// The witness of the commits, if there is one.
  var witness: (any CommitWitness)? {
    seat.isOccupied ? seat.occupant as? any CommitWitness : nil
  }
}

extension WritePreparation {
  /// Records a write, whose conditions were met, for the witness.
  mutating func note(_ write: DocumentWrite, for witness: any CommitWitness) {
    guard witness.concerns(write.path), let seen = WitnessedWrite(write) else { return }
    witnessed.append(seen)
  }

  /// Adds the witness's rows to the writes.
  mutating func addWitnessedRows(
    _ footprint: Footprint
  ) throws(DatabaseError) -> WitnessedRows? {
    guard let witness, !witnessed.isEmpty else { return nil }
    let commit = WitnessedCommit(
      writes: witnessed, read: footprint.documents, queries: footprint.queries, rows: rows)
    guard let added = try witness.rows(for: commit) else { return nil }
    for write in added.writes { try apply(try write.compiled()) }
    return added
  }
}

extension WitnessedWrite {
  /// Nil for writes of the database's own upkeep, which concern nobody else.
  fileprivate init?(_ write: DocumentWrite) {
    var isStrict = false
    var condition = ClientWrite.Condition.none
    switch write.intent.precondition {
    case .none, .meets: break
    case .exists(let exists): condition = .exists(exists)
    case .version, .updateTime: isStrict = true
    case .isOver, .isOutdated, .isUnlinked, .object: return nil
    }
    guard let change = ClientWrite.Change(write.intent.change) else { return nil }
    let transforms = write.intent.transforms.map {
      ClientWrite.Transform(path: $0.path, FieldValue(operation: $0.operation))
    }
    self.init(
      write: ClientWrite(
        path: write.path, change, transforms: transforms, condition: condition),
      reliesOnState: isStrict)
  }
}

extension ClientWrite.Change {
  /// Nil for a write that leaves the document as it is.
  fileprivate init?(_ change: WriteIntent.Change) {
    switch change {
    case .replace(let fields): self = .replace(fields)
    case .put(let encoded): self = .replace(encoded.row.fields)
    case .patch(let fields, let mask): self = .patch(fields, mask: mask)
    case .delete: self = .delete
    case .keep: return nil
    }
  }
}

extension Database {
  /// Has a witness see all commits from now on.
  ///
  /// - Throws: `.failedPrecondition` when the database has another witness.
  package func attach(_ witness: any CommitWitness) throws(DatabaseError) {
    let current = catalog.witness
    guard current == nil || current is AbsentWitness, catalog.seat.exchange(current, for: witness)
    else {
      throw DatabaseError(
        .failedPrecondition, "the database is synchronised already",
        suggestion: "stop the other Sync first, or use it")
    }
  }

  /// Ends what `attach(_:)` has begun. Writes that would need the witness throw from now on.
  package func detach(_ witness: any CommitWitness, leaving absent: AbsentWitness?) {
    _ = catalog.seat.exchange(witness, for: absent)
  }

  /// Refuses what would change the documents of followed collections without a write that could be
  /// sent to their server.
  ///
  /// - Parameters:
  ///   - what: the change, such as "dropped".
  ///   - pattern: the collection, with everything below it.
  func refuseFollowed(
    _ pattern: CollectionPattern, _ what: String
  ) async throws(DatabaseError) {
    guard let followed = catalog.witness?.followed, !followed.isEmpty else { return }
    let known = try await read(try engineSnapshot()) { (rows) throws(DatabaseError) in
      try rows.catalog.family(pattern.root, in: rows)?.collections.keys.map { $0 } ?? []
    }
    let all = known.filter { $0.isAtOrBelow(pattern) } + [pattern]
    guard let one = all.first(where: { followed.contains(anyOf: $0) }) else { return }
    throw DatabaseError(
      .failedPrecondition,
      "\(one) is kept equal to a server's, and cannot be \(what) on this device alone",
      suggestion: "unfollow it first; or delete its documents, which the server then deletes",
      path: "\(one)")
  }

  /// Has writes to followed collections refused until somebody writes them down for the server.
  func refuseUnsynchronisedWrites() async throws(DatabaseError) {
    // A device has its database in a directory.
    let collections = isOnStore ? FollowedCollections() : try await followedCollections()
    guard !collections.isEmpty else { return }
    try attach(AbsentWitness(collections))
  }

  /// Starts background work that closing the database cancels and waits for.
  package func inBackground(_ work: @escaping @Sendable () async -> Void) {
    engine.startInBackground(work)
  }
}

/// Refuses to write documents whose witness is not there: nobody would write down the change, and
/// the server would never have it.
package final class AbsentWitness: CommitWitness {
  package let followed: FollowedCollections

  package init(_ collections: FollowedCollections) {
    followed = collections
  }

  package func concerns(_ path: DocumentPath) -> Bool { followed.contains(path) }

  package func rows(for commit: WitnessedCommit) throws(DatabaseError) -> WitnessedRows? {
    throw DatabaseError(
      .failedPrecondition,
      "the collection is kept equal to a server's, and its synchronisation is not running",
      suggestion: "make a Sync of the database first, or unfollow the collection",
      path: commit.writes.first?.write.path.name)
  }

  package func committed(_ rows: WitnessedRows) {}
}
