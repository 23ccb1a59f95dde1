// The whole database as the subject of a crash test. Rows are documents (DocumentForm), indexes of
// every kind exist beside them (DocumentIndexes), and commits use every way of writing
// (DocumentSubject+Writing). Reads check invariants of their own before the crash test compares
// them with its model (DocumentSubject+Contents).
//
// The database also makes commits of its own, when it creates indexes. So documents count the
// commits: each increments one of a few counters, and the sum is their number.

internal import Logging
package import Ondol
package import OndolEngine

/// An open database of documents.
package struct DocumentSubject: CrashSubject {
  /// Planted mistakes of the subject, to see that a suite notices.
  package enum Mistake: String, Sendable, CaseIterable {
    /// Commits of `.power` are acknowledged when they survive only the process.
    case acknowledgesEarly
  }

  /// The database's path in its world's file system.
  package static let path = "/db"
  static let counterCount = 4
  static let accountCount = 3

  package let database: Database
  let mistake: Mistake?
  /// Whether the database verifies its files and rows at each read. Not if reads fail, because
  /// verification would report that as well.
  var verifies = false
  let chance: Guarded<SeededRandom>
  let diary: Guarded<Diary>

  /// Takes a database as it is.
  init(_ database: Database, mistake: Mistake? = nil, seed: UInt64 = 0) {
    self.database = database
    self.mistake = mistake
    chance = Guarded(SeededRandom(seed: seed))
    diary = Guarded(Diary())
  }

  package var makesCommitsOfItsOwn: Bool { true }

  /// Opens the database in a world, at `path`, and creates some of the missing indexes.
  package static func open(
    _ environment: Environment, _ options: SubjectOptions, at path: String = path,
    mistake: Mistake? = nil, makesIndexes: Bool = true, verifies: Bool = false
  ) async throws -> DocumentSubject {
    let database = try await Database.open(at: path, environment, options)
    var subject = DocumentSubject(database, mistake: mistake, seed: environment.random())
    subject.verifies = verifies
    do {
      try await subject.prepare(makesIndexes: makesIndexes)
    } catch {
      // Closing releases the directory.
      try? await database.close()
      throw error
    }
    return subject
  }

  private func prepare(makesIndexes: Bool) async throws {
    let number = try await readDiary()
    diary.withLock { $0.number = number }
    // The commit after the last entry may be missing.
    try await follower.setData(["n": number], durability: .process)
    for index in DocumentIndex.lasting where makesIndexes && draw({ $0.chance(1, in: 3) }) {
      try await index.create(in: database)
    }
  }

  func draw<Choice>(_ choose: (inout SeededRandom) -> Choice) -> Choice {
    chance.withLock { choose(&$0) }
  }

  // MARK: - Upkeep

  package func synchronize() async throws {
    try await database.synchronize()
  }

  /// Flushes, and creates or drops an index.
  package func flush() async throws {
    try await draw { $0.pick(DocumentIndex.lasting) }.create(in: database)
    if draw({ $0.chance(1, in: 2) }) {
      try await DocumentIndex.passing.drop(from: database)
    } else {
      try await DocumentIndex.passing.create(in: database)
    }
    try await database.engine.flush()
  }

  /// Creates all indexes, and merges everything that can be merged.
  package func settle() async throws {
    for index in DocumentIndex.lasting { try await index.create(in: database) }
    try await database.compact()
  }

  package func close() async throws {
    try await database.close()
  }
}

extension Database {
  /// Opens a database with such small limits, which keeps a log of its own actions.
  static func open(
    at path: String, _ environment: Environment, _ options: SubjectOptions
  ) async throws(DatabaseError) -> Database {
    let silence = Logger(label: "ondol") { _ in SwiftLogNoOpLogHandler() }
    return try await open(
      at: path,
      options: Options(
        durability: .process, cacheSize: 1 << 20, shardCount: options.shardCount, logger: silence,
        changeRetention: options.historySize.map { .init(duration: nil, bytes: $0) }),
      environment: environment, engineOptions: EngineOptions(options))
  }
}
