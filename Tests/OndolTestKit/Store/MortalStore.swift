// A process's connection to a store, which a test can cut. From then on no call is answered, as if
// the process had died in the middle of its work. Its next request never happens; or, if the
// process was only stopped, it happens a long time later.

package import OndolEngine
internal import Synchronization

/// A `RemoteStore` that passes calls to another one, until the process dies.
package final class MortalStore: RemoteStore {
  private let store: any RemoteStore
  private let isDead = Atomic(false)
  private let isStopped = Atomic(false)

  /// The number of calls left.
  private let calls = Atomic(Int.max)
  private let goesOn = Atomic(false)

  package init(_ store: any RemoteStore) {
    self.store = store
  }

  package var name: String { store.name }

  /// Ends the process, as far as the store can tell.
  package func die() { isDead.store(true, ordering: .sequentiallyConsistent) }

  /// Ends the process at the call after this many.
  package func die(behind calls: Int) { self.calls.store(calls, ordering: .relaxed) }

  package var hasDied: Bool { isDead.load(ordering: .sequentiallyConsistent) }

  /// Stops the process at the call after this many, until it continues.
  package func stop(behind calls: Int) {
    goesOn.store(true, ordering: .relaxed)
    self.calls.store(calls, ordering: .relaxed)
  }

  package var hasStopped: Bool { isStopped.load(ordering: .sequentiallyConsistent) }

  /// Lets a stopped process make its next request.
  package func goOn() {
    calls.store(.max, ordering: .relaxed)
    isStopped.store(false, ordering: .sequentiallyConsistent)
  }

  private func reach<R: Sendable>(
    _ call: () async throws(EngineError) -> R
  ) async throws(EngineError) -> R {
    if calls.subtract(1, ordering: .relaxed).newValue < 0 {
      if goesOn.load(ordering: .relaxed) {
        isStopped.store(true, ordering: .sequentiallyConsistent)
      } else {
        die()
      }
    }
    while hasStopped, !hasDied { await Task.yield() }
    if hasDied { await waitForEver() }
    return try await call()
  }

  private func waitForEver() async {
    let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
    await withTaskCancellationHandler {
      for await _ in stream {}
    } onCancel: {
      continuation.finish()
    }
  }

  package func limitAnswers(to microseconds: Int64) { store.limitAnswers(to: microseconds) }

  package func observeReach(_ observer: @escaping @Sendable (_ isAway: Bool) -> Void) {
    store.observeReach(observer)
  }

  package func open(_ process: Int64) async throws(EngineError) -> RemoteHead {
    try await store.open(process)
  }

  package func beginFill(_ process: Int64) async throws(EngineError) -> RemoteHead {
    try await store.beginFill(process)
  }

  package func endFill() async throws(EngineError) {
    try await reach { () async throws(EngineError) in try await store.endFill() }
  }

  package func append(_ group: RemoteGroup) async throws(EngineError) -> RemoteAppend {
    try await reach { () async throws(EngineError) in try await store.append(group) }
  }

  package func outcome(
    of part: Int64, from origin: Int64
  ) async throws(EngineError) -> CommitPoint? {
    try await reach { () async throws(EngineError) in
      try await store.outcome(of: part, from: origin)
    }
  }

  package func commits(
    behind point: CommitPoint, atMost count: Int
  ) async throws(EngineError) -> RemoteNews {
    try await reach { () async throws(EngineError) in
      try await store.commits(behind: point, atMost: count)
    }
  }

  package func waitForCommits(
    behind point: CommitPoint, atMost microseconds: Int64
  ) async throws(EngineError) -> SequenceNumber {
    if hasDied { await waitForEver() }
    return try await store.waitForCommits(behind: point, atMost: microseconds)
  }

  package func rows(
    from lower: [UInt8], to upper: [UInt8], reversed: Bool, atMost count: Int,
    asOf base: CommitPoint
  ) throws(EngineError) -> [RemoteRow] {
    try store.rows(from: lower, to: upper, reversed: reversed, atMost: count, asOf: base)
  }

  package func rows(
    at keys: [[UInt8]], asOf base: CommitPoint
  ) throws(EngineError) -> [RemoteRow] {
    try store.rows(at: keys, asOf: base)
  }

  package func rowsAtOnce(
    at keys: [[UInt8]], asOf base: CommitPoint
  ) throws(EngineError) -> [RemoteRow]? {
    try store.rowsAtOnce(at: keys, asOf: base)
  }

  package func pin(
    _ point: CommitPoint, for process: Int64, microseconds: Int64
  ) async throws(EngineError) -> SequenceNumber {
    try await reach { () async throws(EngineError) in
      try await store.pin(point, for: process, microseconds: microseconds)
    }
  }

  package func processes(
    pinnedFor microseconds: Int64
  ) async throws(EngineError) -> Set<Int64> {
    try await reach { () async throws(EngineError) in
      try await store.processes(pinnedFor: microseconds)
    }
  }

  package func forget() async throws(EngineError) -> Int {
    try await reach { () async throws(EngineError) in try await store.forget() }
  }

  package func history(
    behind sequence: SequenceNumber, atMost count: Int
  ) async throws(EngineError) -> RemoteHistory {
    try await reach { () async throws(EngineError) in
      try await store.history(behind: sequence, atMost: count)
    }
  }

  package func trimHistory(
    to retention: HistoryRetention?
  ) async throws(EngineError) -> SequenceNumber {
    try await reach { () async throws(EngineError) in
      try await store.trimHistory(to: retention)
    }
  }

  package func drop(_ keyspaces: [UInt32]) async throws(EngineError) {
    try await reach { () async throws(EngineError) in try await store.drop(keyspaces) }
  }

  package func skip(to point: CommitPoint) async throws(EngineError) -> Bool {
    try await reach { () async throws(EngineError) in try await store.skip(to: point) }
  }

  package func remove(_ process: Int64) async throws(EngineError) -> Bool {
    try await reach { () async throws(EngineError) in try await store.remove(process) }
  }

  package func synchronize() async throws(EngineError) {
    try await reach { () async throws(EngineError) in try await store.synchronize() }
  }

  package func close(_ process: Int64) async { await store.close(process) }

  // MARK: - Contents

  package func putContent(
    _ id: [UInt8], part: Int, _ bytes: [UInt8], whileThereIs row: [UInt8]
  ) async throws(EngineError) -> Bool {
    try await reach { () async throws(EngineError) in
      try await store.putContent(id, part: part, bytes, whileThereIs: row)
    }
  }

  package func countContent(_ id: [UInt8]) async throws(EngineError) -> Int {
    try await reach { () async throws(EngineError) in try await store.countContent(id) }
  }

  package func content(_ id: [UInt8], in range: Range<Int>) throws(EngineError) -> [UInt8] {
    try store.content(id, in: range)
  }

  package func removeContent(_ id: [UInt8]) async throws(EngineError) {
    try await reach { () async throws(EngineError) in try await store.removeContent(id) }
  }

  package func clock() async throws(EngineError) -> Int64 {
    try await reach { () async throws(EngineError) in try await store.clock() }
  }
}
