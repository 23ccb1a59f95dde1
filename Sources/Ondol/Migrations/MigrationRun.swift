// Applies migrations, or makes a dry run of them; the stage determines which. It proceeds from
// record to record and from step to step. It records its progress in the database before it changes
// anything and when a step is done. The commit that wrote a document shows whether a step has
// changed it already, so resuming only means looking at all documents again.

internal import OndolEngine

/// Where migrations are carried out.
protocol MigrationStage {
  var database: Database { get }

  /// The newest commit.
  func newest() throws(DatabaseError) -> SequenceNumber

  /// Reads the current rows.
  func read<R: Sendable>(
    _ body: @escaping @Sendable (Rows) throws(DatabaseError) -> R
  ) async throws(DatabaseError) -> R

  /// Commits the writes of `body`. Returns its result in the committed attempt, and the changed
  /// documents.
  mutating func write<R: Sendable>(
    _ body: @escaping @Sendable (Transaction) throws(DatabaseError) -> R
  ) async throws -> (result: R, changed: [DocumentPath])

  /// Commits the writes of the app's code together with the record.
  mutating func run(
    _ body: @escaping @Sendable (Transaction) async throws -> Void, with record: MigrationRecord
  ) async throws

  /// Renames a collection, unless it has the new name already.
  mutating func rename(_ renaming: CollectionRenaming) async throws(DatabaseError)

  /// Declares an index of a pattern, if there is none, and fills it.
  mutating func createIndex(
    _ kind: IndexKind, of pattern: CollectionPattern
  ) async throws(DatabaseError)

  /// Drops an index.
  mutating func dropIndex(
    _ index: IndexDefinition, of pattern: CollectionPattern
  ) async throws(DatabaseError)

  /// Removes expired documents.
  mutating func removeEnded() async throws(DatabaseError)

  /// Sets the field with the expiry of a pattern's documents.
  mutating func setTimeToLive(
    _ field: FieldNames, of pattern: CollectionPattern
  ) async throws(DatabaseError)
}

/// A run of migrations.
struct MigrationRun<Stage: MigrationStage> {
  private let migrator: Migrator
  private let actions: [ExactText: [MigrationStep]]
  var stage: Stage
  /// All records, in the order in which they were begun.
  var records: [MigrationRecord] = []
  var report = MigrationReport()

  init(migrator: Migrator, stage: Stage) {
    self.migrator = migrator
    self.stage = stage
    actions = Dictionary(
      migrator.migrations.map { (ExactText($0.name), $0.steps) },
      uniquingKeysWith: { first, _ in first })
  }

  mutating func run(
    retryingFailures: Bool, _ progress: (MigrationProgress) -> Void
  ) async throws -> MigrationReport {
    records = try await stage.read { (rows) throws(DatabaseError) in try rows.migrationRecords() }
    let plan = try migrator.plan(records)
    let begun = plan.prefix { $0.number >= 0 }
    // The interrupted step may have been renaming a collection whose failures are recorded.
    for record in begun where !record.isFinished { try await apply(record, progress) }
    if retryingFailures { try await retry(progress) }
    for record in plan.dropFirst(begun.count) { try await apply(record, progress) }
    return report
  }

  // MARK: - Migrations

  private mutating func apply(
    _ planned: MigrationRecord, _ progress: (MigrationProgress) -> Void
  ) async throws {
    let steps = actions[ExactText(planned.name)] ?? []
    let number: Int
    if let known = records.firstIndex(where: { $0.number == planned.number }) {
      number = known
    } else {
      var record = planned
      record.number = (records.last?.number ?? -1) + 1
      record.begun = Timestamp(unchecked: stage.database.now())
      number = records.count
      records.append(record)
      try await save([number])
    }
    for (place, step) in steps.enumerated() where !records[number].steps[place].isDone {
      try refuseWhenCancelled("the migration continues when it is called again")
      try await carryOut(step, number, place, progress)
    }
    records[number].finished = Timestamp(unchecked: stage.database.now())
    try await save([number])
    note(number, rewritten: 0)
  }

  private mutating func carryOut(
    _ step: MigrationStep, _ number: Int, _ place: Int, _ progress: (MigrationProgress) -> Void
  ) async throws {
    switch (step.form, step.action) {
    case (.transform(let pattern), _):
      try await change(pattern, number, place, progress)
    case (.renameField(let pattern, let renaming), _):
      try await declare(renaming, of: pattern)
      try await change(pattern, number, place, progress)
      try await undeclare(renaming, of: pattern)
    case (.renameCollection(let renaming), _):
      try await rename(renaming, number, place)
    case (.run, .body(let body)):
      var record = records[number]
      record.steps[place].isDone = true
      for record in try await recorded([record]) { try await stage.run(body, with: record) }
    case (.run, _): break
    }
    records[number].steps[place].isDone = true
    try await save(records.indices.filter { $0 <= number })
  }

  /// Renames a collection. Its existence is recorded first, so that after a crash the next run
  /// knows the name of its documents.
  private mutating func rename(
    _ renaming: CollectionRenaming, _ number: Int, _ place: Int
  ) async throws {
    if records[number].steps[place].since == nil {
      guard try await has(renaming.pattern) else { return }
      records[number].steps[place].since = try stage.newest().rawValue
      try await save([number])
    }
    try await stage.rename(renaming)
    for other in records.indices { records[other].rename(renaming) }
  }

  /// Whether there is a collection of the pattern, or one below it.
  private func has(_ pattern: CollectionPattern) async throws(DatabaseError) -> Bool {
    try await stage.read { (rows) throws(DatabaseError) in
      let known = try rows.catalog.family(pattern.root, in: rows)?.collections ?? [:]
      return known.keys.contains { $0.isAtOrBelow(pattern) }
    }
  }

  /// Records the progress of migrations, if it has changed.
  private mutating func save(_ numbers: [Int]) async throws {
    let writes = try await recorded(numbers.map { records[$0] }).map(\.write)
    _ = try await stage.write { (transaction) throws(DatabaseError) in
      for write in writes { try transaction.add(write) }
    }
  }

  /// The records in their stored form: for collections with keys of their own, only the number of
  /// documents that could not be changed, because the records are sealed with another key.
  private func recorded(
    _ records: [MigrationRecord]
  ) async throws(DatabaseError) -> [MigrationRecord] {
    if records.allSatisfy(\.failures.isEmpty) { return records }
    return try await stage.read { (rows) throws(DatabaseError) in
      var recorded = records
      for place in recorded.indices { try recorded[place].leaveOutFailuresWithOwnKeys(in: rows) }
      return recorded
    }
  }

  /// Adds a migration's result to the report.
  private mutating func note(_ number: Int, rewritten: Int) {
    let record = records[number]
    let known = report.migrations.firstIndex { $0.name == record.name }
    let place = known ?? report.migrations.count
    if known == nil { report.migrations.append(.init(name: record.name)) }
    report.migrations[place].rewritten += rewritten
    report.migrations[place].failureCount = record.failureCount
    report.migrations[place].failures = record.failures
  }

  // MARK: - Documents

  /// Changes all documents of a pattern that lack this step, including earlier steps that they
  /// lack.
  private mutating func change(
    _ pattern: CollectionPattern, _ number: Int, _ place: Int,
    _ progress: (MigrationProgress) -> Void
  ) async throws {
    if records[number].steps[place].since == nil {
      records[number].steps[place].since = try stage.newest().rawValue
      try await save([number])
    }
    guard let lineage = MigrationLineage.all(records, actions)[pattern] else { return }
    var state = MigrationProgress(
      migration: records[number].name, step: place, steps: records[number].steps.count,
      documents: 0, total: 0, rewritten: 0, failures: 0)
    let affected = try await rewrite(lineage, &state, progress)
    note(number, rewritten: state.rewritten)
    for other in affected where other != number && report.contains(records[other].name) {
      note(other, rewritten: 0)
    }
  }

  /// Tries documents again that could not be changed.
  private mutating func retry(_ progress: (MigrationProgress) -> Void) async throws {
    let lineages = MigrationLineage.all(records, actions)
    for (_, lineage) in lineages.sorted(by: { $0.key.description < $1.key.description }) {
      guard let last = lineage.steps.last,
        lineage.steps.contains(where: { records[$0.place].failureCount > 0 })
      else { continue }
      let failed = lineage.steps.filter { records[$0.place].failureCount > 0 }
        .map { $0.place.record }
      let record = records[last.place.record]
      var state = MigrationProgress(
        migration: record.name, step: last.place.step, steps: record.steps.count, documents: 0,
        total: 0, rewritten: 0, failures: 0)
      let affected = try await rewrite(lineage, &state, progress)
      try await save(affected)
      for number in Set(failed + affected).sorted() { note(number, rewritten: 0) }
      if let first = failed.first { note(first, rewritten: state.rewritten) }
    }
  }

  /// Changes all documents of a pattern that lack steps, and records for each step which could not
  /// be changed. Returns the records whose numbers of failures have changed.
  private mutating func rewrite(
    _ lineage: MigrationLineage, _ state: inout MigrationProgress,
    _ progress: (MigrationProgress) -> Void
  ) async throws -> [Int] {
    var rewriter = DocumentRewriter(lineage)
    state.total = try await rewriter.count(on: stage)
    while try await rewriter.goOn(on: &stage) {
      state.documents = rewriter.documents
      state.rewritten = rewriter.rewritten
      state.failures = rewriter.failureCount
      progress(state)
    }
    (state.rewritten, state.failures) = (rewriter.rewritten, rewriter.failureCount)
    var affected: [Int] = []
    for (place, step) in lineage.steps.enumerated() {
      let (count, failures) = rewriter.failures[place]
      if records[step.place].failureCount != count || records[step.place].failures != failures {
        affected.append(step.place.record)
      }
      records[step.place].failureCount = count
      records[step.place].failures = failures
    }
    return affected
  }

  // MARK: - Declarations of fields

  /// Declares the old name's declarations for the field's new name, before documents have it.
  /// Otherwise a declaration that keeps something alive would release it meanwhile.
  private mutating func declare(
    _ renaming: FieldRenaming, of pattern: CollectionPattern
  ) async throws {
    if let timeToLive = try await entry(of: pattern)?.timeToLive,
      renaming.renamed(timeToLive) != nil
    {
      // Until documents expire by the new name, expired ones could not be recognised.
      try await stage.removeEnded()
    }
    for index in try await declared(of: pattern) {
      if let kind = index.kind.renamed(renaming) { try await stage.createIndex(kind, of: pattern) }
    }
  }

  /// Removes the declarations of a field's old name.
  private mutating func undeclare(
    _ renaming: FieldRenaming, of pattern: CollectionPattern
  ) async throws {
    for index in try await declared(of: pattern) where index.kind.renamed(renaming) != nil {
      try await stage.dropIndex(index, of: pattern)
    }
    let timeToLive = try await entry(of: pattern)?.timeToLive
    if let renamed = timeToLive.flatMap({ renaming.renamed($0) }) {
      try await stage.setTimeToLive(renamed, of: pattern)
    }
  }

  /// The indexes and links that belong to this pattern alone.
  private func declared(
    of pattern: CollectionPattern
  ) async throws(DatabaseError) -> [IndexDefinition] {
    guard let entry = try await entry(of: pattern) else { return [] }
    return (entry.indexes + entry.links + entry.searches).filter { !$0.kind.isOfGroup }
  }

  private func entry(
    of pattern: CollectionPattern
  ) async throws(DatabaseError) -> CollectionEntry? {
    try await stage.read { (rows) throws(DatabaseError) in
      try rows.entry(of: pattern)
    }
  }
}

extension [MigrationRecord] {
  /// A step of a record.
  fileprivate subscript(place: (record: Int, step: Int)) -> MigrationRecord.Step {
    get { self[place.record].steps[place.step] }
    set { self[place.record].steps[place.step] = newValue }
  }
}

extension MigrationRecord {
  fileprivate mutating func leaveOutFailuresWithOwnKeys(in rows: Rows) throws(DatabaseError) {
    for place in steps.indices {
      var left: [MigrationFailure] = []
      for failure in steps[place].failures {
        let root = (try? DocumentPath(failure.path))?.segments.first ?? ""
        if try rows.catalog.listedFamily(root, in: rows)?.hasOwnKey != true { left.append(failure) }
      }
      steps[place].failures = left
    }
  }

  /// Renames documents' paths.
  fileprivate mutating func rename(_ renaming: CollectionRenaming) {
    for place in steps.indices {
      steps[place].failures = steps[place].failures.map { failure in
        guard let path = try? DocumentPath(failure.path),
          let pattern = renaming.renamed(CollectionPattern(collectionOf: path))
        else { return failure }
        var segments = path.segments
        let last = 2 * (renaming.target.collectionIDs.count - 1)
        segments[last] = pattern.collectionIDs[last / 2]
        return MigrationFailure(
          path: "\(DocumentPath(unchecked: segments))", reason: failure.reason)
      }
    }
  }
}

extension MigrationReport {
  fileprivate func contains(_ name: String) -> Bool { migrations.contains { $0.name == name } }
}
