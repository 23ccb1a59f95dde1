// Fills an empty store with rows in their original form, including their numbers and times, to load
// a dump. Rows are written as separate commits of some hundred rows each. At the end, further
// commits are made to continue after the last commit that the rows mention.

/// A store that receives its first rows.
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

  /// Creates a database in `store`, which must not be open.
  ///
  /// - Throws: `.notEmpty` if it contains commits.
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

  /// Adds rows whose keys no other row has.
  ///
  /// - Throws: `.unreachable` if it is unknown whether they were stored. Then the rest is of no
  ///   use; see `abandon()`.
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

  /// Adds the last rows and puts all of them into effect: a database that ends with commit
  /// `sequence` at `time`, or later.
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

  /// Removes everything that was added, unless the store is unreachable or another process has the
  /// database open by now.
  package func abandon() async {
    // Data that was confirmed to another process stays, together with everything else.
    if let isRemoved = try? await store.remove(process), !isRemoved { try? await store.endFill() }
    await close()
  }

  /// Releases the store.
  package func close() async {
    await store.close(process)
  }
}
