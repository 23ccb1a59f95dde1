// Determines which registered migrations must still be applied, given the records, and which steps
// a document lacks, given the commit that wrote it. Pure.

internal import OndolEngine

extension Migrator {
  /// The record of each of the app's migrations, without a number if it has not begun, in the order
  /// in which they must be applied.
  func plan(_ records: [MigrationRecord]) throws(DatabaseError) -> [MigrationRecord] {
    for migration in migrations {
      if let problem = migration.problem { throw problem }
    }
    var known: [ExactText: MigrationRecord] = [:]
    for record in records { known[ExactText(record.name)] = record }
    var plan: [MigrationRecord] = []
    var last = -1
    var waiting: String?
    for migration in migrations {
      guard let record = known.removeValue(forKey: ExactText(migration.name)) else {
        waiting = waiting ?? migration.name
        plan.append(
          MigrationRecord(
            name: migration.name, number: -1, begun: .minimum, finished: nil,
            steps: migration.steps.map { MigrationRecord.Step($0.form) }))
        continue
      }
      if let waiting {
        throw Self.refusal(
          "the database has had the migration \"\(record.name)\" and not \"\(waiting)\", which is"
            + " registered in front of it; new migrations come last")
      }
      guard record.number > last else {
        throw Self.refusal(
          "the migration \"\(record.name)\" is registered after others that the database has had"
            + " after it")
      }
      guard record.isFinished || record.steps.map(\.form) == migration.steps.map(\.form) else {
        throw Self.refusal(
          "the migration \"\(record.name)\" was begun with other steps than it has now")
      }
      last = record.number
      plan.append(record)
    }
    // If the app has removed the oldest ones, no database lacks them.
    if let stranger = known.values.filter({ $0.number > last }).min(by: { $0.number < $1.number }),
      !records.isEmpty
    {
      throw Self.refusal(
        "the database has had the migration \"\(stranger.name)\", which this version of the app"
          + " does not know; open it with a newer one")
    }
    if let unfinished = known.values.first(where: { !$0.isFinished }) {
      throw Self.refusal(
        "the migration \"\(unfinished.name)\" was begun and is no longer registered")
    }
    return plan
  }

  private static func refusal(_ reason: String) -> DatabaseError {
    DatabaseError(.failedPrecondition, reason)
  }
}

/// The steps that change the documents of a pattern, in their order, under all its names over time.
struct MigrationLineage: Sendable {
  struct Step: Sendable {
    /// The record's place among all records, and the step's place in it.
    var place: (record: Int, step: Int)
    var since: UInt64
    /// Nil when the migration is not registered any more.
    var change: (@Sendable (inout [String: Value]) throws -> Void)?
  }

  /// The error that a step threw.
  struct Failure: Error {
    var step: Int
    var reason: String
  }

  var pattern: CollectionPattern
  var steps: [Step] = []

  /// Documents of later commits have the results of all steps.
  var since: UInt64 { steps.last?.since ?? 0 }

  /// Applies the missing steps to a document of this commit.
  func apply(to fields: inout [String: Value], of version: Version) throws(Failure) {
    for (place, step) in steps.enumerated() where version.rawValue <= step.since {
      guard let change = step.change else {
        throw Failure(step: place, reason: "its migration is no longer registered")
      }
      do {
        try change(&fields)
      } catch {
        throw Failure(step: place, reason: "\(error)")
      }
    }
  }
}

extension MigrationLineage {
  /// The lineages of all patterns that the steps begun so far have changed, under the current names
  /// of the patterns.
  ///
  /// - Parameters:
  ///   - records: all records, in the order in which they were begun.
  ///   - actions: the changes of each registered migration, by its name.
  static func all(
    _ records: [MigrationRecord], _ actions: [ExactText: [MigrationStep]]
  ) -> [CollectionPattern: MigrationLineage] {
    var lineages: [CollectionPattern: MigrationLineage] = [:]
    for (number, record) in records.enumerated() {
      let registered = actions[ExactText(record.name)]
      for (place, step) in record.steps.enumerated() {
        switch step.form {
        case .run: break
        case .renameCollection(let renaming):
          if step.isDone, step.since != nil { rename(&lineages, renaming) }
        case .transform(let pattern), .renameField(let pattern, _):
          guard let since = step.since else { continue }
          var change: (@Sendable (inout [String: Value]) throws -> Void)?
          if let registered, place < registered.count,
            case .change(let found) = registered[place].action
          {
            change = found
          }
          lineages[pattern, default: MigrationLineage(pattern: pattern)].steps.append(
            Step(place: (number, place), since: since, change: change))
        }
      }
    }
    return lineages
  }

  private static func rename(
    _ lineages: inout [CollectionPattern: MigrationLineage], _ renaming: CollectionRenaming
  ) {
    // Nothing is left of the previous collection with this name.
    let moving = lineages.filter { !$0.key.isAtOrBelow(renaming.target) }
    lineages = moving
    for (pattern, lineage) in moving {
      guard let new = renaming.renamed(pattern) else { continue }
      lineages[pattern] = nil
      lineages[new] = MigrationLineage(pattern: new, steps: lineage.steps)
    }
  }
}
