// Bringing a database to what the next version of an app expects. An app lists its migrations, by
// names and in their order, and the database records which it has had: MigrationRecord says how,
// and MigrationRun carries out what is missing.

internal import OndolEngine

/// The migrations of an app, in their order. A database has each of them once.
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
/// Migrations that a released version of the app has are not changed any more; new ones come behind
/// them. Those that no database lacks any more may go, from the front.
public struct Migrator: Sendable {
  /// In the order in which they were registered.
  private(set) var migrations: [Migration] = []

  /// A migrator without migrations.
  public init() {}

  /// Adds a migration behind those that are registered already.
  ///
  /// - Parameters:
  ///   - name: what the database records it under: 1 to 200 bytes of UTF-8 without `/`, each name
  ///     once.
  ///   - describe: says which steps it has, in their order. It is called at once, and only says;
  ///     the steps are carried out by `migrate(_:retryingFailures:progress:)`.
  public mutating func register(_ name: String, _ describe: (inout Migration) -> Void) {
    var migration = Migration(name: name)
    if migrations.contains(where: { isSame($0.name, name) }) {
      migration.refuse("two migrations are called \"\(name)\"")
    }
    describe(&migration)
    migrations.append(migration)
  }

  /// The names, in the order in which they are applied.
  public var names: [String] { migrations.map(\.name) }
}

/// A step towards what the app expects of its documents; see `Migrator.register(_:_:)`.
public struct Migration: Sendable {
  /// What the database records it under.
  public let name: String
  private(set) var steps: [MigrationStep] = []
  /// What is wrong with what was said of it.
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
  /// documents. Documents are changed in commits of some, each of which takes them as they are
  /// then; one that is written while the migration goes on is left to who writes it.
  ///
  /// - Parameters:
  ///   - collection: its path; which of the documents in it are named says nothing, as in
  ///     `users/any/posts`.
  ///   - change: changes the fields of a document. It must not depend on anything else, and may be
  ///     called several times for one document. What it throws is the reason why the document stays
  ///     as it is.
  public mutating func transform(
    _ collection: String, _ change: @escaping @Sendable (inout [String: Value]) throws -> Void
  ) {
    add { () throws(DatabaseError) in
      let pattern = CollectionPattern(try CollectionPath(collection))
      return MigrationStep(.transform(pattern), .change(change))
    }
  }

  /// Gives a field another name, or another place, in each document that has it. The collection's
  /// indexes, links and time to live that name the field name the new one from then on; indexes of
  /// collection groups do not.
  ///
  /// A document that has something at the new place stays as it is, and is told as a failure.
  ///
  /// - Parameters:
  ///   - field: the field, or a path into maps.
  ///   - name: its new name as a path from the top, too; maps are made as they are needed.
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

  /// Gives a collection another name, with all that is below it: one commit, whatever is in it. Its
  /// documents keep their versions, and all that is declared stays declared. References to them in
  /// other documents stay as they are.
  ///
  /// For a collection below a document the ones with the same names below other documents are
  /// renamed, too.
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

  /// Runs a transaction. What it writes and the note that it has are one commit.
  ///
  /// - Parameter body: as of `Database.runTransaction(attempts:durability:_:)`. In a dry run it is
  ///   called, too, and what it writes is forgotten.
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

/// A step with what it does.
struct MigrationStep: Sendable {
  /// What the database records of a step.
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

/// How far a migration is.
public struct MigrationProgress: Sendable, Hashable {
  /// The migration's name.
  public var migration: String
  /// Which of its steps it is at, from 0 on.
  public var step: Int
  /// How many steps it has.
  public var steps: Int
  /// Documents looked at in this step.
  public var documents: Int
  /// Documents of this step, about.
  public var total: Int
  /// Those among them that were changed.
  public var rewritten: Int
  /// Those among them that stay as they are, because they could not be changed.
  public var failures: Int
}

/// A document that could not be changed, and stays as it is.
public struct MigrationFailure: Sendable, Hashable {
  /// The document's path.
  public let path: String
  /// What the app's code threw, or why what it made cannot be stored; at most 300 bytes of it.
  public let reason: String
}

/// What migrations did.
public struct MigrationReport: Sendable, Hashable {
  /// What one migration did.
  public struct Entry: Sendable, Hashable {
    /// The migration's name.
    public let name: String
    /// Documents that were changed.
    public internal(set) var rewritten = 0
    /// Documents that could not be, and stay as they are.
    public internal(set) var failureCount = 0
    /// The first of them, at most ``MigrationReport/failureLimit`` a step.
    public internal(set) var failures: [MigrationFailure] = []
  }

  /// Failures of a step that are told one by one; of others only their number is.
  public static let failureLimit = 100

  /// The migrations that were applied or gone on with, in their order, and those whose failures
  /// were tried again.
  public internal(set) var migrations: [Entry] = []

  /// Documents that could not be changed.
  public var failureCount: Int { migrations.reduce(0) { $0 + $1.failureCount } }
}

/// A migration that a database has had, or has begun with.
public struct AppliedMigration: Sendable, Hashable, Identifiable {
  /// The migration's name.
  public let name: String
  /// When it was begun.
  public let begun: Timestamp
  /// When its last step was done; nil when it was interrupted.
  public let finished: Timestamp?
  /// Documents that could not be changed when that was last tried.
  public let failureCount: Int
  /// The first of them, at most ``MigrationReport/failureLimit`` a step. Those in collections with
  /// keys of their own are counted and not listed here, only in the report of who migrated.
  public let failures: [MigrationFailure]

  /// The name.
  public var id: String { name }
}

extension Migrator {
  /// Applies the migrations that the database has not had, in their order, and records each. One
  /// that was interrupted, by a crash, an error or a cancelled task, is gone on with where it was:
  /// what has been changed is not changed again. Several who call it at the same time wait for each
  /// other.
  ///
  /// A document that cannot be changed holds up no other. It stays as it is, is listed in the
  /// report and by `Database.listMigrations()`, and later migrations change it from the form that
  /// it has, all steps in their order.
  ///
  /// - Parameters:
  ///   - database: which to migrate.
  ///   - retryingFailures: whether documents that could not be changed are tried again.
  ///   - progress: is told after each commit how far it is.
  /// - Returns: what was done; no entries when nothing was to do.
  /// - Throws: `.failedPrecondition` when the database has had a migration that is not registered
  ///   and not older than those that are, when one is registered in front of another that it has
  ///   had, or one that was begun has other steps now; `.invalidArgument` when something is wrong
  ///   with what was registered; `.alreadyExists` when a collection is to have a name that another
  ///   has; what `run` steps throw; otherwise as writes do.
  /// - Complexity: O(documents of the collections that are changed), some a commit; a collection's
  ///   name takes O(collections below it).
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

  /// What `migrate(_:retryingFailures:progress:)` would do to the database as it is now, without
  /// doing it: the same report, with the documents that would fail. Nothing is written, and nobody
  /// notices.
  ///
  /// - Throws: as `migrate(_:retryingFailures:progress:)` would.
  /// - Complexity: as `migrate(_:retryingFailures:progress:)`, without its commits; all that would
  ///   be written is in memory until it is over.
  public func dryRun(
    _ database: Database, retryingFailures: Bool = false,
    progress: (MigrationProgress) -> Void = { _ in }
  ) async throws -> MigrationReport {
    try database.refuseInTransaction("dryRun")
    var run = MigrationRun(migrator: self, stage: try DryMigrationStage(database))
    return try await run.run(retryingFailures: retryingFailures, progress)
  }

  /// The names of the migrations that the database has not had, or not to the end, in their order.
  ///
  /// - Throws: as `migrate(_:retryingFailures:progress:)` where it could not begin.
  public func pendingMigrations(in database: Database) async throws(DatabaseError) -> [String] {
    let records = try await database.migrationRecords()
    return try plan(records).filter { !$0.isFinished }.map(\.name)
  }
}

extension Database {
  /// The migrations that the database has had, in the order in which they were begun.
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
