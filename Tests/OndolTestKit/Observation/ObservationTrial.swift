// One history of commits with listeners beside it, in an order of steps that a seed decides. After
// each commit the trial asks every query afresh on a snapshot. What a listener was shown must be
// such a result, never an older one than before, and the last one in the end; and applying the
// changes it was told of to what it was shown before must give what it is shown now.

internal import Ondol
internal import OndolEngine

/// What a trial came upon.
package struct ObservationCounts: Sendable {
  package var histories = 0
  package var commits = 0
  /// Snapshots that listeners were shown.
  package var snapshots = 0
  /// Changes they were told of, without those of first snapshots.
  package var changes = 0
  /// Snapshots behind the first with several changes.
  package var withSeveral = 0

  package init() {}

  package static func += (left: inout ObservationCounts, right: ObservationCounts) {
    left.histories += right.histories
    left.commits += right.commits
    left.snapshots += right.snapshots
    left.changes += right.changes
    left.withSeveral += right.withSeveral
  }
}

/// Why a trial failed.
package struct ObservationFault: Error, CustomStringConvertible {
  package var description: String
}

/// A document of a result, as far as comparing needs it.
private typealias Shown = [String]

package enum ObservationTrial {
  private static let listenerCount = 5
  private static let commitCount = 32

  /// Runs the history of `seed`; throws `ObservationFault` where a listener was told anything
  /// wrong.
  package static func run(seed: UInt64) throws -> ObservationCounts {
    try SimulationExecutor.run(seed: seed) { executor in
      let world = SimulatedWorld(seed: seed, threads: executor)
      let database = try await Database.open(at: "/db", environment: world.environment)
      defer { withExtendedLifetime(world) {} }
      return try await run(seed: seed, database)
    }
  }

  private static func run(
    seed: UInt64, _ database: Database
  ) async throws -> ObservationCounts {
    var draw = ObservationDraw(seed: seed, database)
    for _ in 0..<draw.random.below(12) { try await draw.write() }
    let queries = (0..<listenerCount).map { _ in draw.query() }
    let records = queries.map { ListenerRecord($0) }
    return try await withThrowingTaskGroup(of: Void.self) { group in
      for record in records { group.addTask { try await listen(record) } }
      var results = try records.map { [try shown($0.query, database)] }
      for _ in 0..<commitCount {
        for _ in 0..<draw.random.below(6) { await Task.yield() }
        try await draw.write()
        for index in records.indices {
          results[index].append(try shown(records[index].query, database))
        }
      }
      for _ in 0..<20_000 where !zip(records, results).allSatisfy({ $0.last == $1.last }) {
        await Task.yield()
      }
      guard database.observerCount == listenerCount else {
        throw ObservationFault(description: "\(database.observerCount) listeners")
      }
      try await database.close()
      try await group.waitForAll()
      guard database.observerCount == 0 else {
        throw ObservationFault(description: "\(database.observerCount) listeners are left")
      }
      var counts = ObservationCounts()
      counts.histories = 1
      counts.commits = commitCount
      for (record, results) in zip(records, results) {
        try record.check(against: results, &counts)
      }
      return counts
    }
  }

  private static func shown(_ query: Query, _ database: Database) throws -> Shown {
    try database.snapshot().getDocuments(query).documents.map(\.shown)
  }

  private static func listen(_ record: ListenerRecord) async throws {
    var list: [DocumentSnapshot] = []
    for try await snapshot in record.query.snapshots {
      for change in snapshot.documentChanges {
        if let index = change.oldIndex {
          guard list.indices.contains(index) else {
            throw ObservationFault(description: "there is nothing at \(index): \(record.query)")
          }
          let old = list.remove(at: index)
          guard old.documentID == change.document.documentID else {
            throw ObservationFault(
              description: "\(old) is at \(index), not \(change.document): \(record.query)")
          }
        }
        if let index = change.newIndex {
          guard index <= list.count else {
            throw ObservationFault(description: "there is no place \(index): \(record.query)")
          }
          list.insert(change.document, at: index)
        }
      }
      guard list.map(\.shown) == snapshot.documents.map(\.shown) else {
        throw ObservationFault(
          description: "\(record.query): the changes \(snapshot.documentChanges) lead to"
            + " \(list.map(\.shown)) and not to \(snapshot.documents.map(\.shown))")
      }
      record.add(snapshot)
    }
  }
}

extension DocumentSnapshot {
  /// What tells it from others, and from itself at other times.
  fileprivate var shown: String { "\(reference.path) \(Value.map(data()))" }
}

/// What one listener was shown.
private final class ListenerRecord: Sendable {
  let query: Query
  private let snapshots = Guarded<[(shown: Shown, changes: Int)]>([])

  init(_ query: Query) {
    self.query = query
  }

  func add(_ snapshot: QuerySnapshot) {
    let entry = (snapshot.documents.map(\.shown), snapshot.documentChanges.count)
    snapshots.withLock { $0.append(entry) }
  }

  var last: Shown? { snapshots.withLock { $0.last?.shown } }

  /// Throws unless the snapshots are some of `results`, in their order, the last one included.
  func check(against results: [Shown], _ counts: inout ObservationCounts) throws {
    let snapshots = snapshots.withLock { $0 }
    var place = 0
    for (number, snapshot) in snapshots.enumerated() {
      guard let found = results[place...].firstIndex(of: snapshot.shown) else {
        throw ObservationFault(
          description: "\(query): snapshot \(number) is no result from commit \(place) on:"
            + " \(snapshot.shown)")
      }
      if number > 0 {
        // A document may change in a field that a selection leaves out and the order goes by.
        guard found > place || snapshot.changes > 0 else {
          throw ObservationFault(
            description: "\(query): snapshot \(number) is the one before it again")
        }
        counts.changes += snapshot.changes
        if snapshot.changes > 1 { counts.withSeveral += 1 }
      }
      place = found
      counts.snapshots += 1
    }
    guard snapshots.last?.shown == results.last else {
      throw ObservationFault(
        description: "\(query): the last snapshot, of \(snapshots.count), is"
          + " \(snapshots.last?.shown ?? []) and not \(results.last ?? [])")
    }
  }
}
