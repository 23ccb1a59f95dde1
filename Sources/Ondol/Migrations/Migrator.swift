// Migrates a database to the form that the next version of an app expects. An app lists its
// migrations, by names and in their order, and the database records those applied: MigrationRecord
// defines how, and MigrationRun applies the missing ones.

internal import OndolEngine

/// The migrations of an app, in their order. Each is applied to a database once.
///
/// ```swift
/// var migrator = Migrator()
/// migrator.register("prices in cents") { migration in
///   migration.transform("items") { document in
///     guard let price = document["price"]?.double else { throw NoPrice() }
///     document["price"] = .integer(Int64((price * 100).rounded()))
///   }
/// }
/// migrator.register("people") { migration in
///   migration.renameCollection("customers", to: "people")
///   migration.renameField("surname", to: "name.last", in: "people")
/// }
/// let report = try await migrator.migrate(database)
/// ```
///
/// Call `migrate(_:retryingFailures:progress:)` at each start, before the app uses its documents.
/// Do not change the migrations of a released version; add new ones after them. Migrations that no
/// database lacks any more may be removed, from the front.
public struct Migrator: Sendable {
  /// In the order in which they were registered.
  private(set) var migrations: [Migration] = []

  /// A migrator without migrations.
  public init() {}

  /// Adds a migration after the registered ones.
  ///
  /// - Parameters:
  ///   - name: the name in the database's record: 1 to 200 bytes of UTF-8 without `/`, each name
  ///     once.
  ///   - describe: lists its steps, in their order. It is called at once and only describes;
  ///     `migrate(_:retryingFailures:progress:)` carries out the steps.
  public mutating func register(_ name: String, _ describe: (inout Migration) -> Void) {
    var migration = Migration(name: name)
    if migrations.contains(where: { isSame($0.name, name) }) {
      migration.refuse("two migrations have the name \"\(name)\"")
    }
    describe(&migration)
    migrations.append(migration)
  }

  /// The names, in the order in which they are applied.
  public var names: [String] { migrations.map(\.name) }
}

/// A step towards the form of documents that the app expects; see `Migrator.register(_:_:)`.
public struct Migration: Sendable {
  /// The name in the database's record.
  public let name: String
  private(set) var steps: [MigrationStep] = []
  /// The error in its description.
  private(set) var problem: DatabaseError?

  fileprivate init(name: String) {
    self.name = name
    if name.isEmpty || name.utf8.count > 200 || name.utf8.contains(UInt8(ascii: "/"))
      || ResourceName.problem(withID: name) != nil
    {
      refuse("\"\(name)\" cannot name a migration")
    }
  }

  fileprivate mutating func refuse(_ reason: String) {
    problem = problem ?? DatabaseError(.invalidArgument, reason)
  }

  /// Changes each document of the collection, and of those with the same names below other
  /// documents. Documents are changed several in a commit, and each commit uses their current
  /// state. A document that another writer changes during the migration is left to that writer.
  ///
  /// - Parameters:
  ///   - collection: its path; the document ids in it have no meaning, as in `users/any/posts`.
  ///   - change: changes the fields of a document. It must not depend on anything else, and may be
  ///     called several times for one document. When it throws, the document stays unchanged, and
  ///     the error is the reason.
  public mutating func transform(
    _ collection: String, _ change: @escaping @Sendable (inout [String: Value]) throws -> Void
  ) {
    add { () throws(DatabaseError) in
      let pattern = CollectionPattern(try CollectionPath(collection))
      return MigrationStep(.transform(pattern), .change(change))
    }
  }

  /// Gives a field another name, or another place, in each document that has it. Declarations of
  /// the collection that name the field (indexes, links and time to live) then name the new one;
  /// indexes of collection groups do not.
  ///
  /// A document that has something at the new place stays unchanged, and is reported as a failure.
  ///
  /// - Parameters:
  ///   - field: the field, or a path into maps.
  ///   - name: its new name, also as a path from the top; missing maps are made.
  ///   - collection: as for `transform(_:_:)`.
  public mutating func renameField(
    _ field: FieldPath, to name: FieldPath, in collection: String
  ) {
    add { () throws(DatabaseError) in
      let pattern = CollectionPattern(try CollectionPath(collection))
      let renaming = try FieldRenaming(field.names(), name.names())
      return MigrationStep(.renameField(pattern, renaming), .change { try renaming.apply(to: &$0) })
    }
  }

  /// Renames a collection and everything below it in one commit, whatever it contains. Its
  /// documents keep their versions, and all declarations stay. References to them in other
  /// documents stay unchanged.
  ///
  /// For a collection below a document, this also renames those with the same names below other
  /// documents.
  ///
  /// - Parameters:
  ///   - collection: its path.
  ///   - name: the path with another last name; nothing may be there.
  public mutating func renameCollection(_ collection: String, to name: String) {
    add { () throws(DatabaseError) in
      let renaming = try CollectionRenaming(
        CollectionPattern(CollectionPath(collection)), CollectionPattern(CollectionPath(name)))
      return MigrationStep(.renameCollection(renaming), .none)
    }
  }

  /// Runs a transaction. Its writes and the migration's record are one commit.
  ///
  /// - Parameter body: as of `Database.runTransaction(attempts:durability:_:)`. A dry run also
  ///   calls it, and discards its writes.
  public mutating func run(_ body: @escaping @Sendable (Transaction) async throws -> Void) {
    add { () throws(DatabaseError) in MigrationStep(.run, .body(body)) }
  }

  private mutating func add(_ step: () throws(DatabaseError) -> MigrationStep) {
    do throws(DatabaseError) {
      steps.append(try step())
    } catch {
      problem = problem ?? error
    }
  }
}

/// A step with its action.
struct MigrationStep: Sendable {
  /// A step in the database's record.
  enum Form: Sendable, Hashable {
    case transform(CollectionPattern)
    case renameField(CollectionPattern, FieldRenaming)
    case renameCollection(CollectionRenaming)
    case run
  }

  enum Action: Sendable {
    case none
    case change(@Sendable (inout [String: Value]) throws -> Void)
    case body(@Sendable (Transaction) async throws -> Void)
  }

  let form: Form
  let action: Action

  init(_ form: Form, _ action: Action) {
    self.form = form
    self.action = action
  }
}

/// How far a migration has come.
public struct MigrationProgress: Sendable, Hashable {
  /// The migration's name.
  public var migration: String
  /// The current step, from 0.
  public var step: Int
  /// The number of its steps.
  public var steps: Int
  /// Documents checked in this step.
  public var documents: Int
  /// The approximate number of documents in this step.
  public var total: Int
  /// Documents changed.
  public var rewritten: Int
  /// Documents that stay unchanged because they could not be changed.
  public var failures: Int
}

/// A document that could not be changed, and stays unchanged.
public struct MigrationFailure: Sendable, Hashable {
  /// The document's path.
  public let path: String
  /// The error that the app's code threw, or why its result cannot be stored; at most 300 bytes of
  /// it.
  public let reason: String
}

/// The results of migrations.
public struct MigrationReport: Sendable, Hashable {
  /// The result of one migration.
  public struct Entry: Sendable, Hashable {
    /// The migration's name.
    public let name: String
    /// Documents that were changed.
    public internal(set) var rewritten = 0
    /// Documents that could not be changed, and stay unchanged.
    public internal(set) var failureCount = 0
    /// The first of them, at most ``MigrationReport/failureLimit`` for each step.
    public internal(set) var failures: [MigrationFailure] = []
  }

  /// The most failures of a step that are listed; further ones are only counted.
  public static let failureLimit = 100

  /// The migrations that were applied or resumed, in their order, and those whose failures were
  /// tried again.
  public internal(set) var migrations: [Entry] = []

  /// Documents that could not be changed.
  public var failureCount: Int { migrations.reduce(0) { $0 + $1.failureCount } }
}

/// A migration that was applied to a database, or has begun.
public struct AppliedMigration: Sendable, Hashable, Identifiable {
  /// The migration's name.
  public let name: String
  /// When it began.
  public let begun: Timestamp
  /// When its last step was done; nil when it was interrupted.
  public let finished: Timestamp?
  /// Documents that could not be changed in the last attempt.
  public let failureCount: Int
  /// The first of them, at most ``MigrationReport/failureLimit`` for each step. Those in
  /// collections with keys of their own are counted but not listed here, only in the report of the
  /// call that migrated.
  public let failures: [MigrationFailure]

  /// The name.
  public var id: String { name }
}

extension Migrator {
  /// Applies the migrations that the database lacks, in their order, and records each. A migration
  /// that was interrupted, by a crash, an error or a cancelled task, resumes where it was: nothing
  /// is changed twice. Concurrent calls wait for each other.
  ///
  /// A document that cannot be changed blocks no other. It stays unchanged, and the report and
  /// `Database.listMigrations()` list it. Later migrations change it from the form that it has, all
  /// steps in their order.
  ///
  /// - Parameters:
  ///   - database: the database to migrate.
  ///   - retryingFailures: whether documents that could not be changed are tried again.
  ///   - progress: called with the progress after each commit.
  /// - Returns: what was done; no entries when there was nothing to do.
  /// - Throws: `.failedPrecondition` when the database has a migration that is not registered and
  ///   not older than the registered ones, when one is registered before another that the database
  ///   has already, or when one that has begun has other steps now; `.invalidArgument` when the
  ///   registered migrations have an error; `.alreadyExists` when a collection would get the name
  ///   of another; what `run` steps throw; otherwise as writes do.
  /// - Complexity: O(documents of the collections that are changed), several in a commit; renaming
  ///   a collection takes O(collections below it).
  @discardableResult
  public func migrate(
    _ database: Database, retryingFailures: Bool = false,
    progress: (MigrationProgress) -> Void = { _ in }
  ) async throws -> MigrationReport {
    try database.refuseInTransaction("migrate")
    try await database.latches.acquire(.migrations)
    defer { database.latches.release(.migrations) }
    var run = MigrationRun(migrator: self, stage: LiveMigrationStage(database: database))
    return try await run.run(retryingFailures: retryingFailures, progress)
  }

  /// A dry run: what `migrate(_:retryingFailures:progress:)` would do to the database as it is now,
  /// without doing it. The report is the same, including the documents that would fail. Nothing is
  /// written, and other callers are not affected.
  ///
  /// - Throws: as `migrate(_:retryingFailures:progress:)` would.
  /// - Complexity: as `migrate(_:retryingFailures:progress:)`, without its commits; all would-be
  ///   writes are in memory until it is over.
  public func dryRun(
    _ database: Database, retryingFailures: Bool = false,
    progress: (MigrationProgress) -> Void = { _ in }
  ) async throws -> MigrationReport {
    try database.refuseInTransaction("dryRun")
    var run = MigrationRun(migrator: self, stage: try DryMigrationStage(database))
    return try await run.run(retryingFailures: retryingFailures, progress)
  }

  /// The names of the migrations that the database lacks, or has not completed, in their order.
  ///
  /// - Throws: as `migrate(_:retryingFailures:progress:)` when it could not begin.
  public func pendingMigrations(in database: Database) async throws(DatabaseError) -> [String] {
    let records = try await database.migrationRecords()
    return try plan(records).filter { !$0.isFinished }.map(\.name)
  }
}

extension Database {
  /// The migrations that were applied to the database, in the order in which they began.
  ///
  /// - Throws: as reads do.
  public func listMigrations() async throws(DatabaseError) -> [AppliedMigration] {
    try await migrationRecords().map { record in
      AppliedMigration(
        name: record.name, begun: record.begun, finished: record.finished,
        failureCount: record.failureCount, failures: record.failures)
    }
  }
}
