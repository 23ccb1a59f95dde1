// A server of Firestore's protocol whose connections break and which dies, with clients that
// continue at once, at the same server or another one. One history is a few devices that write by
// streams, callers, transactions and listeners, until all have finished.
//
// The promises hold whatever happens. An acknowledged group of writes of a device exists, once. A
// refused write does not exist. Additions in transactions are not lost. A listener never sees half
// of a commit, an older moment after a newer one, or a change twice after it reconnects, and
// finally shows the answer of a query.

#if Server
  import GRPCCore
  import Ondol
  import OndolEngine
  import OndolTestKit
  import OndolWire
  import SwiftProtobuf

  /// A promise that is broken on purpose, which a trial must notice.
  package enum ServeSabotage: String, Sendable, CaseIterable {
    /// Devices lose the token of their stream and resend their groups.
    case forgottenStreams = "streams of writes are forgotten"
    case unguardedTransactions = "transactions are committed unguarded"
    case lostChanges = "a listener's changes are lost"
    case halfCommits = "moments come in the middle of commits"
    case skippedCommits = "a listener that comes back skips commits"
    case repeatedChanges = "a listener that comes back is told everything again"
    case unsyncedCommits = "commits are acknowledged before they are on the disk"
  }

  /// The counts of trials.
  package struct ServeCounts: Sendable {
    package var commits = 0
    /// The number of broken connections.
    package var connections = 0
    /// The number of transactions that were tried again.
    package var attempts = 0
    /// The number of moments that listeners showed.
    package var moments = 0
    /// The number of servers that died.
    package var deaths = 0

    package init() {}

    package static func += (left: inout ServeCounts, right: ServeCounts) {
      left.commits += right.commits
      left.connections += right.connections
      left.attempts += right.attempts
      left.moments += right.moments
      left.deaths += right.deaths
    }
  }

  /// A broken promise.
  package struct ServeFault: Error, CustomStringConvertible {
    package let description: String
  }

  /// One history.
  package struct ServeTrial: Sendable {
    private static let devices = 3
    private static let callers = 2
    private static let listeners = 2

    private let seed: UInt64
    private let sabotage: ServeSabotage?
    private let site: SimulatedSite
    private let executor: SimulationExecutor
    private let ledger = ServeLedger()
    private let trace: (@Sendable (String) -> Void)?

    /// Runs the history of a seed.
    ///
    /// - Parameter trace: receives a line for each event.
    /// - Throws: `ServeFault` with the seed and the broken promise.
    package static func run(
      seed: UInt64, sabotage: ServeSabotage? = nil, trace: (@Sendable (String) -> Void)? = nil
    ) throws -> ServeCounts {
      do {
        return try SimulationExecutor.run(seed: seed) { executor in
          try await ServeTrial(seed: seed, sabotage, trace, on: executor).run()
        }
      } catch let error as ServeFault {
        throw ServeFault(description: "seed \(seed): \(error.description)")
      }
    }

    private init(
      seed: UInt64, _ sabotage: ServeSabotage?, _ trace: (@Sendable (String) -> Void)?,
      on executor: SimulationExecutor
    ) {
      (self.seed, self.sabotage, self.trace, self.executor) = (seed, sabotage, trace, executor)
      let isOnFiles = sabotage == .unsyncedCommits || seed.isMultiple(of: 2)
      site = SimulatedSite(
        seed: seed, serverCount: isOnFiles ? nil : 1 + Int(seed / 2 % 3),
        durability: sabotage == .unsyncedCommits ? .memory : .power, on: executor)
    }

    private func client(_ number: Int) -> ServeClient {
      ServeClient(
        site: site, executor: executor, ledger: ledger, sabotage: sabotage, number: number,
        trace: trace)
    }

    private func run() async throws -> ServeCounts {
      for server in 0..<site.serverCount { try await site.start(server) }
      site.setFaults(true)
      let result: Result<[[Int32: [String: ServeListener.Told]]], any Error>
      do {
        result = .success(try await live())
      } catch {
        result = .failure(error)
      }
      site.setFaults(false)
      await site.close()
      let shown = try result.get()
      let found: Result<Void, any Error>
      do {
        found = .success(try check(try await site.open(), shown))
      } catch {
        found = .failure(error)
      }
      await site.close()
      try found.get()
      return ledger.all.counts
    }

    /// The final state of the listeners.
    private func live() async throws -> [[Int32: [String: ServeListener.Told]]] {
      try await withThrowingTaskGroup(of: [Int32: [String: ServeListener.Told]]?.self) { group in
        for number in 0..<Self.listeners {
          var listener = ServeListener(
            client(100 + number), seed: SeededRandom.derive(seed, 100 + number))
          group.addTask { try await listener.run() }
        }
        group.addTask {
          try await write()
          return nil
        }
        var shown: [[Int32: [String: ServeListener.Told]]] = []
        for try await last in group { if let last { shown.append(last) } }
        return shown
      }
    }

    /// Makes all writes, and ends with a commit that listeners wait for.
    private func write() async throws {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<Self.devices {
          var device = ServeDevice(client(number), seed: SeededRandom.derive(seed, number))
          group.addTask {
            try await device.run()
          }
        }
        for number in 0..<Self.callers {
          var caller = ServeCaller(
            client(50 + number), seed: SeededRandom.derive(seed, 50 + number))
          group.addTask {
            try await caller.run()
          }
        }
        group.addTask {
          try await endServers()
        }
        for try await _ in group {}
      }
      site.setFaults(false)
      try await writeLast()
    }

    /// Ends a server now and then and restarts it.
    private func endServers() async throws {
      var random = SeededRandom(seed: SeededRandom.derive(seed, 200))
      for _ in 0..<random.below(4) {
        for _ in 0..<random.below(400) { await Task.yield() }
        let server = random.below(site.serverCount)
        site.end(
          server, cutsPower: sabotage == .unsyncedCommits || random.chance(2, in: 3),
          seed: random.next())
        trace?("server \(server) ends")
        ledger.note { $0.counts.deaths += 1 }
        for _ in 0..<random.below(40) { await Task.yield() }
        try await site.start(server)
        trace?("server \(server) has started")
      }
    }

    private func writeLast() async throws {
      let (client, life) = (client(300), try await site.life(of: 0))
      _ = try await client.call(life) {
        try await life.service.commit(
          request: .with {
            $0.database = ServeClient.database
            $0.writes = ["left/last", "right/last"].map { ServeClient.write($0, -1) }
          }, context: client.context(WireFirestore.Method.Commit.descriptor))
      }
    }
  }

  // MARK: - Checks

  extension ServeTrial {
    private func check(
      _ database: Database, _ shown: [[Int32: [String: ServeListener.Told]]]
    ) throws {
      let snapshot = database.snapshot()
      func numbers(_ collection: String) throws -> [String: Int64] {
        var numbers: [String: Int64] = [:]
        for document in try snapshot.getDocuments(database.collection(collection)).documents {
          numbers[document.documentID] = document["n"] as Int64?
        }
        return numbers
      }
      let ledger = ledger.all
      let counts = try numbers("counters")
      for (device, groups) in ledger.groups where counts["c\(device)"] != Int64(groups) {
        throw ServeFault(
          description: "device \(device) was told of \(groups) groups, and"
            + " \(counts["c\(device)"] ?? 0) are there")
      }
      try checkMade(Set(try numbers("made").keys.map { "made/\($0)" }), ledger)
      let shared = try numbers("shared")["s"] ?? 0
      guard (Int64(ledger.added)...Int64(ledger.added + ledger.unanswered)).contains(shared) else {
        throw ServeFault(
          description: "\(ledger.added) additions were acknowledged, \(ledger.unanswered) had no"
            + " answer, and the sum is \(shared)")
      }
      var expected: [Int32: [String: Int64]] = [:]
      for (target, collection) in ServeListener.collections {
        expected[target] = try numbers(collection)
      }
      expected[3] = expected[3]?.filter { $0.value >= ServeListener.leastCount }
      for targets in shown {
        let told = targets.mapValues { $0.mapValues(\.number) }
        guard told == expected else {
          throw ServeFault(
            description: "a listener ended with \(told), and a query answers \(expected)")
        }
      }
    }

    private func checkMade(_ made: Set<String>, _ ledger: ServeLedger.Entries) throws {
      let lost = ledger.made.subtracting(made).sorted()
      let undead = ledger.refused.intersection(made).sorted()
      guard lost.isEmpty, undead.isEmpty else {
        throw ServeFault(
          description: "acknowledged and not there: \(lost); refused and there: \(undead)")
      }
    }
  }
#endif
