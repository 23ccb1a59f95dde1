// A server behind a proxy that stops, delays, cuts, half-closes and slows connections, and that
// loses its newest commits in the end. Each call ends within its time, a listener is correct or
// says that it may not be, and each write has the outcome that its caller was told.

import Ondol
import OndolEngine
import OndolPostgres
import OndolTestKit
import Synchronization

/// One outage.
package struct AwayTrial: Sendable {
  /// How long things take, and how long they may.
  package struct Times: Sendable {
    /// The time limit of a call.
    var limit = Duration.seconds(2)
    /// The longest time of a call. A call has a few steps, each of which may wait, and a machine is
    /// slow at times.
    var call = Duration.seconds(10)
    /// The time before the outage, and the shortest time of it.
    var before = Duration.seconds(2)
    var outage = Duration.seconds(8)
    /// The time until a listener must say that it may be out of date, and the time until it must be
    /// correct again.
    var silence = Duration.seconds(8)
    var comeback = Duration.seconds(60)

    /// The times of a machine that does nothing else.
    package static let strict = Times()
    /// A short outage on a machine that may be busy with other tests.
    package static let short = Times(
      limit: .seconds(1), call: .seconds(120), before: .milliseconds(300), outage: .seconds(1),
      silence: .seconds(120), comeback: .seconds(120))
  }

  private let seed: UInt64
  private let mode: FaultyProxy.Mode
  private let times: Times

  package init(seed: UInt64, _ mode: FaultyProxy.Mode, _ times: Times) {
    self.seed = seed
    self.mode = mode
    self.times = times
  }

  private final class Shared: Sendable {
    let isOver = Atomic(false)
    let shown = Guarded<(count: Int, isStale: Bool)>((0, false))
    let acknowledged = Guarded<Set<String>>([])
    let refused = Guarded<Set<String>>([])
    let pending = Guarded<[String: PendingWrite]>([:])
  }

  /// Returns the number of writes in doubt.
  ///
  /// - Throws: `BrokenInvariant` for what must not be.
  package func run() async throws -> Int {
    // Commits that need not survive a power cut stay unflushed for long, and are lost in one.
    let server = try PostgresServer(settings: "wal_writer_delay = 10s")
    let proxy = try FaultyProxy(to: server.directory)
    defer { proxy.stop() }
    var options = Database.Options()
    options.serverTimeout = times.limit
    let address = "postgresql:///postgres?host=\(proxy.directory)&user=postgres&ondol=away"
    let database = try await Database.open(on: .postgres(address), options: options)
    let direct = try await Database.open(on: .postgres(server.address("away")))
    let shared = Shared()
    try await withThrowingTaskGroup(of: Void.self) { tasks in
      tasks.addTask { try await listen(to: database, shared) }
      for caller in 0..<4 { tasks.addTask { try await call(database, caller, shared) } }
      tasks.addTask {
        defer { shared.isOver.store(true, ordering: .releasing) }
        try await takeAway(proxy, direct, shared)
      }
      // The first error ends the others, of which the listener would otherwise go on for ever.
      while try await tasks.next() != nil {}
    }
    try await check(shared, database, direct)
    try await loseTail(of: server, database)
    try? await database.close()
    try? await direct.close()
    return shared.pending.withLock { $0.count }
  }

  // MARK: - Tasks

  /// Follows the beats until the trial is over. It never ends with an error.
  private func listen(to database: Database, _ shared: Shared) async throws {
    for try await snapshot in database.document("beats/one").snapshots {
      let count = snapshot["count"] as Int? ?? 0
      shared.shown.withLock { $0 = (count, snapshot.metadata.isStale) }
      if count < 0 { return }
    }
    throw BrokenInvariant("a listener has ended")
  }

  /// Makes calls one after another, and measures each.
  private func call(_ database: Database, _ caller: Int, _ shared: Shared) async throws {
    var random = SeededRandom(seed: seed ^ UInt64(caller + 1))
    var number = 0
    while !shared.isOver.load(ordering: .acquiring) {
      number += 1
      let start = ContinuousClock.now
      switch random.below(4) {
      case 0: _ = try? await database.document("none/\(caller)-\(number)").getDocument()
      case 1: _ = try? await database.refresh()
      default: try await write("\(caller)-\(number)", to: database, shared)
      }
      let time = ContinuousClock.now - start
      guard time < times.call else {
        throw BrokenInvariant("a call has taken \(time)")
      }
    }
  }

  private func write(_ id: String, to database: Database, _ shared: Shared) async throws {
    do throws(DatabaseError) {
      try await database.document("writes/\(id)").setData(["id": id])
      shared.acknowledged.withLock { _ = $0.insert(id) }
    } catch {
      if let write = error.pendingWrite {
        return shared.pending.withLock { $0[id] = write }
      }
      switch error.code {
      case .unavailable, .deadlineExceeded, .resourceExhausted:
        shared.refused.withLock { _ = $0.insert(id) }
      default: throw BrokenInvariant("a write has ended with \(error)")
      }
      try? await Task.sleep(for: .milliseconds(20))
    }
  }

  /// Writes beats past the proxy during the outage.
  private func takeAway(
    _ proxy: FaultyProxy, _ direct: Database, _ shared: Shared
  ) async throws {
    var beat = 0
    func write(until isOver: () -> Bool) async throws {
      while !isOver() {
        beat += 1
        try await direct.document("beats/one").setData(["count": beat])
        try await Task.sleep(for: .milliseconds(100))
      }
    }
    var start = ContinuousClock.now
    try await write { .now - start > times.before }
    proxy.mode = mode
    let before = beat
    start = .now
    func isHonest() -> Bool {
      let shown = shared.shown.withLock { $0 }
      return shown.count > before || shown.isStale
    }
    try await write {
      let time = .now - start
      return time > times.outage && (isHonest() || time > times.silence)
    }
    guard isHonest() else {
      let shown = shared.shown.withLock { $0.count }
      throw BrokenInvariant("a listener shows beat \(shown) of \(beat) as if it were new")
    }
    proxy.mode = .pass
    try await direct.document("beats/one").setData(["count": beat + 1])
    let end = ContinuousClock.now + times.comeback
    while case let shown = shared.shown.withLock({ $0 }), shown.count <= beat || shown.isStale {
      guard ContinuousClock.now < end else {
        throw BrokenInvariant("a listener is not right again: \(shown)")
      }
      try await Task.sleep(for: .milliseconds(20))
    }
    // The last beat ends the listener.
    try await direct.document("beats/one").setData(["count": -1])
  }

  // MARK: - Checks

  private func check(
    _ shared: Shared, _ database: Database, _ direct: Database
  ) async throws {
    for (id, write) in shared.pending.withLock({ $0 }) {
      switch try await database.outcome(of: write) {
      case .committed: shared.acknowledged.withLock { _ = $0.insert(id) }
      case .notCommitted: shared.refused.withLock { _ = $0.insert(id) }
      case .pending, .unknown:
        throw BrokenInvariant("nobody knows what became of \(id)")
      }
    }
    try await direct.refresh()
    let there = Set(
      try await direct.collection("writes").getDocuments().documents.map(\.documentID))
    guard shared.acknowledged.withLock({ $0.isSubset(of: there) }) else {
      throw BrokenInvariant("a write that was made is not there")
    }
    guard shared.refused.withLock({ $0.isDisjoint(with: there) }) else {
      throw BrokenInvariant("a write that was not made is there")
    }
  }

  /// Lets the server lose unsynced commits. A listener that saw them must be notified.
  private func loseTail(of server: PostgresServer, _ database: Database) async throws {
    let document = database.document("writes/weak")
    try await document.setData(["id": "weak"], durability: .process)
    try server.kill()
    try server.start()
    let fresh = try await Database.open(on: .postgres(server.address("away")))
    let isThere = try await fresh.document("writes/weak").getDocument().exists
    try await fresh.close()
    if isThere { return }
    let end = ContinuousClock.now + times.comeback
    while ContinuousClock.now < end {
      do throws(DatabaseError) {
        _ = try await document.getDocument()
      } catch {
        if error.message.contains("must be opened again") { return }
      }
      try await Task.sleep(for: .milliseconds(50))
    }
    throw BrokenInvariant("what the server has lost is shown")
  }
}
