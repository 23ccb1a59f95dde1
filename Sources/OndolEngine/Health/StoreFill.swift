// Filling a store that has nothing yet with rows as they were elsewhere, their numbers and times
// included: for the load of a dump. Rows go as commits of their own, some hundred together; in the
// end further commits are told to go on behind the last one that the rows know of.

/// A store that gets its first rows.
package final class StoreFill: Sendable {
  private struct State {
    var known: CommitPoint
    var part: Int64 = 0
  }

  private let store: any RemoteStore
  private let process: Int64
  private let origin: Int64
  private let state: Guarded<State>

  private init(
    _ store: any RemoteStore, process: Int64, origin: Int64, known: CommitPoint
  ) {
    self.store = store
    self.process = process
    self.origin = origin
    state = Guarded(State(known: known))
  }

  /// Makes a database in `store`, which must not be open.
  ///
  /// - Throws: `.notEmpty` when there are commits in it.
  package static func begin(
    _ store: any RemoteStore, environment: Environment
  ) async throws(EngineError) -> StoreFill {
    let process = Int64(bitPattern: environment.random()) & .max
    let head = try await store.beginFill(process)
    guard head.point.sequence == .zero else {
      await store.close(process)
      throw .notEmpty(path: store.name)
    }
    return StoreFill(
      store, process: process, origin: Int64(bitPattern: environment.random()) & .max,
      known: head.point)
  }

  /// Adds rows, whose keys no other row has.
  ///
  /// - Throws: `.unreachable` when it is not known whether they are there: then the rest is of no
  ///   use, see `abandon()`.
  package func add(_ rows: [SalvagedRow]) async throws(EngineError) {
    if rows.isEmpty { return }
    var group = state.withLock { state in
      state.part += 1
      return RemoteGroup(origin: origin, part: state.part, known: state.known)
    }
    group.isDurable = false
    group.commits = [
      rows.map { RemoteWrite(key: $0.key, value: RemoteValue.encode($0.value.bytes, [])) }
    ]
    guard case .done(let point) = try await store.append(group),
      point.sequence == group.known.sequence.next
    else { throw .notEmpty(path: store.name) }
    state.withLock { $0.known = point }
  }

  /// Adds the last rows and makes all of them count: a database that ends with commit `sequence` at
  /// `time`, or later.
  package func finish(
    _ rows: [SalvagedRow], sequence: SequenceNumber, time: Int64
  ) async throws(EngineError) {
    try await add(rows)
    let known = state.withLock { $0.known }
    let end = CommitPoint(
      sequence: max(sequence, known.sequence.next), time: max(time, known.time + 1))
    guard try await store.skip(to: end) else { throw .notEmpty(path: store.name) }
    try await store.endFill()
    try await store.synchronize()
  }

  /// Removes everything that was added, unless the store cannot be reached or somebody else has the
  /// database open by now.
  package func abandon() async {
    // What somebody else was told is there stays, with all else.
    if let isRemoved = try? await store.remove(process), !isRemoved { try? await store.endFill() }
    await close()
  }

  /// Lets go of the store.
  package func close() async {
    await store.close(process)
  }
}
