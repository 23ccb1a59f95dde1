// Changes the documents of one pattern that lack steps of migrations, several in a commit. Each
// commit reads its documents again and checks the commit that wrote them, so a concurrent writer of
// a document has the last word. If one document makes a commit fail, each document gets a commit of
// its own.

internal import OndolEngine

/// A walk over the documents of a lineage.
struct DocumentRewriter {
  /// The most bytes of a reason that are stored.
  private static let reasonLength = 300

  private let lineage: MigrationLineage
  private var through: [UInt8]?
  private var isAtEnd = false
  /// The number of documents checked.
  private(set) var documents = 0
  private(set) var rewritten = 0
  /// For each step, the number of documents that could not be changed, and the first of them.
  private(set) var failures: [(count: Int, first: [MigrationFailure])]

  var failureCount: Int { failures.reduce(0) { $0 + $1.count } }

  init(_ lineage: MigrationLineage) {
    self.lineage = lineage
    failures = Array(repeating: (0, []), count: lineage.steps.count)
  }

  /// A document that could not be changed, at a step of the lineage.
  private struct Failure: Sendable {
    var path: DocumentPath
    var step: Int
    var reason: String
  }

  /// The approximate number of the pattern's documents.
  func count(on stage: some MigrationStage) async throws(DatabaseError) -> Int {
    try await stage.read { [lineage] (rows) throws(DatabaseError) in
      guard let entry = try rows.entry(of: lineage.pattern) else { return 0 }
      return try rows.count(of: KeyRange(prefix: entry.keyspace.prefix))
    }
  }

  /// Changes some documents; false when there are no more.
  mutating func goOn(on stage: inout some MigrationStage) async throws -> Bool {
    guard !isAtEnd else { return false }
    try refuseWhenCancelled("the migration continues when it is called again")
    let stretch = try await stage.read { [lineage, through] (rows) throws(DatabaseError) in
      guard let entry = try rows.entry(of: lineage.pattern) else { return DocumentStretch() }
      return try DocumentStretch(of: lineage.pattern, entry, behind: through, in: rows) {
        $0.rawValue <= lineage.since
      }
    }
    try await rewrite(stretch.outdated, on: &stage)
    documents += stretch.count
    through = stretch.last
    isAtEnd = through == nil
    return true
  }

  // MARK: - Changing

  /// Changes the documents, all in one commit, or each separately when one of them cannot be
  /// stored.
  private mutating func rewrite(
    _ paths: [DocumentPath], on stage: inout some MigrationStage
  ) async throws {
    guard !paths.isEmpty else { return }
    do {
      let (found, changed) = try await stage.write {
        [lineage, database = stage.database] (transaction) throws(DatabaseError) in
        try Self.change(paths, lineage, database, transaction)
      }
      rewritten += Set(paths).intersection(changed).count
      for failure in found { note(failure) }
      return
    } catch let error as DatabaseError {
      guard error.isOfStoring else { throw error }
      guard paths.count > 1 else {
        return note(
          Failure(path: paths[0], step: lineage.steps.count - 1, reason: error.message))
      }
    }
    for path in paths { try await rewrite([path], on: &stage) }
  }

  /// Changes the documents that lack steps, and returns those that could not be changed.
  private static func change(
    _ paths: [DocumentPath], _ lineage: MigrationLineage, _ database: Database,
    _ transaction: Transaction
  ) throws(DatabaseError) -> [Failure] {
    var failures: [Failure] = []
    for path in paths {
      let reference = DocumentReference(database: database, place: .success(path))
      do throws(DatabaseError) {
        let document = try transaction.getDocument(reference)
        guard document.exists, document.version.rawValue <= lineage.since else { continue }
        var fields = document.data()
        do throws(MigrationLineage.Failure) {
          try lineage.apply(to: &fields, of: document.version)
        } catch {
          failures.append(Failure(path: path, step: error.step, reason: error.reason))
          continue
        }
        let changed = fields
        try transaction.add(reference, nil) { () throws(DatabaseError) in
          try WriteCompiler.set(FieldInput(.map(changed)))
        }
      } catch {
        guard error.isUnreadable || error.isOfStoring else { throw error }
        failures.append(
          Failure(path: path, step: lineage.steps.count - 1, reason: error.message))
      }
    }
    return failures
  }

  private mutating func note(_ failure: Failure) {
    failures[failure.step].count += 1
    guard failures[failure.step].first.count < MigrationReport.failureLimit else { return }
    failures[failure.step].first.append(
      MigrationFailure(
        path: "\(failure.path)", reason: failure.reason.prefix(utf8Count: Self.reasonLength)))
  }
}

extension DatabaseError {
  /// Whether the cause is one document that cannot be stored in its new form.
  fileprivate var isOfStoring: Bool {
    switch code {
    case .alreadyExists, .failedPrecondition, .invalidArgument, .resourceExhausted: path != nil
    default: false
    }
  }
}

extension String {
  /// The longest prefix of whole characters with at most that many bytes.
  fileprivate func prefix(utf8Count limit: Int) -> String {
    guard utf8.count > limit else { return self }
    var count = 0
    return String(
      prefix { character in
        count += character.utf8.count
        return count <= limit
      })
  }
}
