// `away`: a database on a server behind a proxy that stops, delays, cuts, half-closes and slows
// connections, and on a server that loses its newest commits. Each call ends within its time, a
// listener is correct or says that it may not be, and each write has the outcome that its caller
// was told.

#if Postgres
  import ArgumentParser
  import Foundation
  import Ondol
  import OndolEngine
  import OndolPostgres
  import OndolPostgresTestKit
  import OndolTerminal
  import OndolTestKit
  import Synchronization

  struct AwayCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "away",
      abstract: "Takes a server away in many ways, and checks the results of calls and listeners.",
      discussion: "A round is an outage of some seconds and the time until all is well again.")

    @Option(help: "The smallest number of outages.")
    var rounds = 100

    @OptionGroup var options: StressOptions

    func validate() throws {
      guard rounds > 0 else { throw ValidationError("--rounds must be at least 1") }
    }

    func run() async throws {
      let run = StressRun("away", "outages", target: rounds, options)
      try await run.run { seed in try await AwayTrial(seed: seed).run() }
    }
  }

  /// One outage.
  private struct AwayTrial: Sendable {
    /// The longest time of a call.
    private static let limit = Duration.seconds(2)
    /// A call has a few steps, each of which may wait, and a machine is slow at times.
    private static let longestCall = Duration.seconds(10)
    /// The time until a listener must say that it may be out of date, and the time until it must be
    /// correct again.
    private static let longestSilence = Duration.seconds(8)
    private static let longestReturn = Duration.seconds(60)

    let seed: UInt64

    private final class Shared: Sendable {
      let isOver = Atomic(false)
      let shown = Guarded<(count: Int, isStale: Bool)>((0, false))
      let acknowledged = Guarded<Set<String>>([])
      let refused = Guarded<Set<String>>([])
      let pending = Guarded<[String: PendingWrite]>([:])
    }

    func run() async throws -> UnitResult {
      var random = SeededRandom(seed: seed)
      let mode = random.pick(FaultyProxy.Mode.allCases.filter { $0 != .pass })
      var result = UnitResult(cases: 1, counts: ["\(mode)": 1])
      do {
        result.counts["in doubt"] = try await run(mode)
      } catch let broken as BrokenInvariant {
        result.violation = "\(mode): \(broken)"
      }
      return result
    }

    /// Returns the number of writes in doubt.
    private func run(_ mode: FaultyProxy.Mode) async throws -> Int {
      // Commits that need not survive a power cut stay unflushed for long, and are lost in one.
      let server = try PostgresServer(settings: "wal_writer_delay = 10s")
      let proxy = try FaultyProxy(to: server.directory)
      defer { proxy.stop() }
      var options = Database.Options()
      options.serverTimeout = Self.limit
      let address = "postgresql:///postgres?host=\(proxy.directory)&user=postgres&ondol=away"
      let database = try await Database.open(on: .postgres(address), options: options)
      let direct = try await Database.open(on: .postgres(server.address("away")))
      let shared = Shared()
      try await withThrowingTaskGroup(of: Void.self) { tasks in
        tasks.addTask { try await listen(to: database, shared) }
        for caller in 0..<4 { tasks.addTask { try await call(database, caller, shared) } }
        tasks.addTask {
          defer { shared.isOver.store(true, ordering: .releasing) }
          try await takeAway(by: mode, proxy, direct, shared)
        }
        try await tasks.waitForAll()
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
        guard time < Self.longestCall else {
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
      by mode: FaultyProxy.Mode, _ proxy: FaultyProxy, _ direct: Database, _ shared: Shared
    ) async throws {
      var beat = 0
      func write(for time: Duration) async throws {
        let end = ContinuousClock.now + time
        while ContinuousClock.now < end {
          beat += 1
          try await direct.document("beats/one").setData(["count": beat])
          try await Task.sleep(for: .milliseconds(100))
        }
      }
      try await write(for: .seconds(2))
      proxy.mode = mode
      let before = beat
      try await write(for: Self.longestSilence)
      let shown = shared.shown.withLock { $0 }
      guard shown.count > before || shown.isStale else {
        throw BrokenInvariant(
          "a listener shows beat \(shown.count) of \(beat) as if it were new"
        )
      }
      proxy.mode = .pass
      try await direct.document("beats/one").setData(["count": beat + 1])
      let end = ContinuousClock.now + Self.longestReturn
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
      let end = ContinuousClock.now + Self.longestReturn
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
#endif
