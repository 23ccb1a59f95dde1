// Opens one damaged database and reads everything: all documents by scans, one by one and by every
// index. It may refuse to open or to answer, but an answer must be correct.

internal import Ondol
internal import OndolEngine

/// The result of a damage.
enum HostileOutcome: Sendable, Equatable {
  /// The open or an answer was refused. All other answers were correct.
  case refused
  /// Every answer was correct: the damaged part does not matter, or exists twice.
  case unharmed
  /// It took the log's end for a torn one.
  case tornTail
  /// The contents differ, which is allowed only with corrected checksums.
  case otherAnswer
}

struct HostileTrial: Sendable {
  /// Far more than reading everything takes.
  private static let operationLimit = 100_000

  let sample: HostileSample
  /// Whether checksums were corrected, so that values may differ.
  let isResealed: Bool

  /// Opens and reads `files`. Throws `BrokenInvariant` for a wrong answer or an endless one.
  func look(at files: [String: [UInt8]], allowing states: Range<Int>) throws -> HostileOutcome {
    let fileSystem = SimulatedFileSystem(storage: HostileSample.disk(of: files))
    fileSystem.inject([
      Fault(
        failing: Set(OperationKind.allCases), after: Self.operationLimit, errno: 5, isSticky: true)
    ])
    let outcome = try SimulationExecutor.run(seed: 1) { executor in
      let world = SimulatedWorld(fileSystem: fileSystem, seed: 1, threads: executor)
      return try await look(in: world.environment, states)
    }
    let operations = OperationKind.allCases.reduce(0) { $0 + fileSystem.count(of: $1) }
    guard operations < Self.operationLimit else {
      throw BrokenInvariant("no end after \(operations) operations")
    }
    return outcome
  }

  private func look(
    in environment: Environment, _ states: Range<Int>
  ) async throws -> HostileOutcome {
    do {
      let database = try await Database.open(
        at: DocumentSubject.path, environment, HostileSample.options)
      let subject = DocumentSubject(database)
      let outcome = try await judge(subject, states)
      let knowsHistory = try await judgeHistory(of: database)
      try? await subject.close()
      return knowsHistory || outcome != .unharmed ? outcome : .refused
    } catch is DatabaseError {
      return .refused
    } catch let broken as BrokenInvariant {
      if isResealed { return .otherAnswer }
      throw broken
    }
  }

  private func judge(
    _ subject: DocumentSubject, _ states: Range<Int>
  ) async throws -> HostileOutcome {
    do {
      let (count, rows) = try await subject.contents()
      let number = Int(clamping: count)
      guard sample.states.indices.contains(number), sample.states[number] == rows else {
        throw BrokenInvariant("it calls itself \(count) and has a state that never was")
      }
      guard states.contains(number) else {
        throw BrokenInvariant("it is in the state after commit \(number), and says nothing")
      }
      return number == sample.states.count - 1 ? .unharmed : .tornTail
    } catch is DatabaseError {
      try await askOneByOne(subject, states)
      return .refused
    }
  }

  /// Every commit that is read again is the original. Returns whether all were read.
  private func judgeHistory(of database: Database) async throws -> Bool {
    let commits: [LoggedCommit]
    do {
      commits = try await HostileSample.history(of: database)
    } catch {
      return false
    }
    guard zip(commits, sample.history).allSatisfy({ $0 == $1 }),
      commits.count <= sample.history.count
    else { throw BrokenInvariant("commits are read again that were not made so") }
    return true
  }

  /// If the whole cannot be read, parts may still be. Each part is correct or refused.
  private func askOneByOne(_ subject: DocumentSubject, _ states: Range<Int>) async throws {
    let snapshot = subject.database.snapshot()
    let keys = sample.states[states].reduce(into: Set<[UInt8]>()) { $0.formUnion($1.keys) }
    for key in keys {
      let document = subject.database.document(try DocumentForm.path(of: key))
      guard let found = try answer({ try snapshot.getDocument(document) }) else { continue }
      let value = found.exists ? try DocumentForm.value(of: found) : nil
      guard sample.states[states].contains(where: { $0[key] == value }) else {
        throw BrokenInvariant("\(document.path) is \(value.map { "\($0)" } ?? "missing")")
      }
    }
    for index in DocumentIndex.lasting {
      for question in index.questions(in: subject.database) {
        guard let found = try answer({ try snapshot.getDocuments(question.query) }) else {
          continue
        }
        try judge(found, question, states)
      }
    }
  }

  /// The result of a query is its result in some state.
  private func judge(
    _ found: QuerySnapshot, _ question: DocumentIndex.Question, _ states: Range<Int>
  ) throws {
    var rows: Rows = [:]
    for document in found.documents {
      let parent = document.reference.parent.path
      guard let home = DocumentForm.collections.first(where: { $0.path == parent }) else {
        throw BrokenInvariant("\(question.query) finds \(document.reference.path)")
      }
      let key = try DocumentForm.key(of: document.documentID, in: home.keyspace)
      rows[key] = try DocumentForm.value(of: document)
    }
    let isRight = try sample.states[states].contains { state in
      try state.filter { row in
        let path = try DocumentForm.path(of: row.key).split(separator: "/")
        let fields = DocumentForm.fields(of: row.value, id: String(path.last ?? ""))
        return question.isAnswer(path.dropLast().joined(separator: "/"), fields)
      } == rows
    }
    guard isRight else { throw BrokenInvariant("\(question.query) finds \(rows.count) others") }
  }

  private func answer<Answer>(_ ask: () throws -> Answer) throws -> Answer? {
    do {
      return try ask()
    } catch is DatabaseError {
      return nil
    }
  }
}
