// The sync suite: devices in one process and their server in another, over the loopback interface.
// It measures what a local write pays for being written down, how long a first load and a full
// outbox take, how soon another device has a change, and what a follow keeps in memory and sends
// when nothing is new. `Scripts/bench --suite sync` builds it.

#if Server && Sync
  import ArgumentParser
  import BenchmarkKit
  import Foundation
  import Ondol
  import OndolSync

  @main
  struct SyncBenchmarks: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "bench --suite sync", abstract: "Times devices of a server.")

    @OptionGroup var options: SuiteOptions

    /// The task of the child process.
    struct Plan: Codable, Sendable {
      /// The number of turns of each measurement.
      var turns: Int
      var documents: Int
      /// Writes that wait.
      var waiting: Int
      /// What the process is there for; nil for the one that measures.
      var role: Role?
    }

    /// A process beside the one that measures.
    enum Role: Codable, Sendable {
      case server
      /// A device that starts again and reports its memory.
      case restarted(port: Int)
    }

    func run() async throws {
      if let task = try options.childTask(of: Plan.self) {
        switch task.plan.role {
        case .server?: return try await ServerProcess.run(task)
        case .restarted(let port)?:
          return try options.tell(try await SyncTrial.restart(task, port: port))
        case nil: break
        }
        var result = SuiteResult(engine: task.engine)
        try await SyncTrial(task.plan, in: task.directory).run(&result)
        return try options.tell(result)
      }
      let documents = options.documentCount(usually: 100_000, quick: 10_000)
      var report = SuiteReport(
        "sync", try options.workloads() ?? Workload.allCases, runs: options.runCount,
        documents: { _ in documents }, valueSize: { _ in 100 })
      let plan = Plan(
        turns: options.passes ?? (options.quick ? 5 : 40), documents: documents,
        waiting: documents / 10)
      options.takeTurns(["Ondol"], plan, into: &report)
      try options.tell(report)
    }
  }

  /// The measured workloads.
  enum Workload: String, SuiteWorkload {
    case plainWrite = "local write"
    case write = "local write of a followed collection"
    case writeByPlain = "followed by plain"
    case firstLoad = "first load of 100000"
    case delivery = "device to device, p95"
    case outbox = "10000 waiting writes sent"
    case outboxOfOne = "1000 waiting writes of one document sent"
    /// Of a device that starts again with caches of 1 MiB, beyond the open database.
    case memory = "memory of a follow of 100000"
    case restart = "bytes of a restart with nothing new"

    var unit: String {
      switch self {
      case .plainWrite, .write: "µs"
      case .writeByPlain: "x"
      case .firstLoad, .outbox, .outboxOfOne: "s"
      case .delivery: "ms"
      case .memory: "MiB"
      case .restart: "KB"
      }
    }

    var goal: Double? {
      switch self {
      case .writeByPlain: 1.25
      case .firstLoad: 10
      case .delivery: 30
      case .outbox: 5
      case .outboxOfOne: 2
      case .memory: 16
      case .restart: 10
      case .plainWrite, .write: nil
      }
    }
  }

  /// One run.
  struct SyncTrial: Sendable {
    private static let writes = 200

    private let plan: SyncBenchmarks.Plan
    private let directory: String

    init(_ plan: SyncBenchmarks.Plan, in directory: String) {
      self.plan = plan
      self.directory = directory
    }

    static func fields(_ number: Int) -> [String: Value] {
      [
        "number": .integer(Int64(number)),
        "text": .string(String(repeating: "abcdefgh", count: 10)),
      ]
    }

    private func open(
      _ name: String, _ options: Database.Options = Database.Options()
    ) async throws -> Database {
      try await Database.open(at: "\(directory)/\(name)", options: options)
    }

    func run(_ result: inout SuiteResult) async throws {
      let server = try ServerProcess(plan, in: directory)
      let line = try await CountingLine.begin(to: server.port)
      try await measureWrites(&result)
      try await measureLoads(line, &result)
      try await measureOutbox(port: server.port, &result)
      await line.end()
      try server.end()
    }

    private func sync(_ database: Database, port: Int) async throws -> Sync {
      try await Sync(database, with: try .ondol("http://127.0.0.1:\(port)", project: "bench"))
    }

    // MARK: - Writes

    /// Without a server, so that nothing but the writing takes time.
    private func measureWrites(_ result: inout SuiteResult) async throws {
      let (plain, followed) = (try await open("plain"), try await open("followed"))
      // Nobody listens there.
      let sync = try await sync(followed, port: 1)
      try await sync.follow(followed.collection("items"))
      var times: [Workload: [Double]] = [:]
      for turn in 0..<plan.turns {
        for (workload, database) in [(Workload.plainWrite, plain), (.write, followed)] {
          let time = try await microseconds {
            for number in 0..<Self.writes {
              try await database.document("items/d\(turn * Self.writes + number)")
                .setData(Self.fields(number))
            }
          }
          times[workload, default: []].append(time / Double(Self.writes))
        }
      }
      let (one, other) = (median(times[.plainWrite] ?? [.nan]), median(times[.write] ?? [.nan]))
      result.note(Workload.plainWrite, one)
      result.note(Workload.write, other)
      result.note(Workload.writeByPlain, other / one)
      await sync.stop()
      try await plain.close()
      try await followed.close()
    }

    private func measureOutbox(port: Int, _ result: inout SuiteResult) async throws {
      result.note(
        Workload.outbox,
        try await measureOutbox("outbox", port: port) { database in
          for number in 0..<plan.waiting {
            try await database.document("written/d\(number)").setData(Self.fields(number))
          }
        })
      result.note(
        Workload.outboxOfOne,
        try await measureOutbox("counter", port: port) { database in
          let counter = database.document("written/counter")
          try await counter.setData(["n": 0])
          for _ in 1..<(plan.waiting / 10) {
            try await counter.updateData(["n": FieldValue.increment(1)])
          }
        })
    }

    /// The seconds in which a device exchanges what `write` has written without a server.
    private func measureOutbox(
      _ name: String, port: Int, _ write: (Database) async throws -> Void
    ) async throws -> Double {
      let database = try await open(name)
      let offline = try await sync(database, port: 1)
      try await offline.follow(database.collection("written"))
      try await write(database)
      await offline.stop()
      let time = try await microseconds {
        let online = try await sync(database, port: port)
        try await online.settle()
        await online.stop()
      }
      try await database.close()
      return time / 1_000_000
    }

    // MARK: - Loads and changes

    private func measureLoads(
      _ line: CountingLine, _ result: inout SuiteResult
    ) async throws {
      let (left, right) = (try await open("left"), try await open("right"))
      let first = try await sync(left, port: line.port)
      let time = try await microseconds {
        try await first.follow(left.collection("items"))
        try await first.settle()
      }
      result.note(Workload.firstLoad, time / 1_000_000)
      await first.stop()

      // A restart: the rows of the follow are there, and the server has nothing new.
      let before = line.bytes
      let again = try await sync(left, port: line.port)
      try await again.settle()
      result.note(Workload.restart, Double(line.bytes - before) / 1_000)

      let second = try await sync(right, port: line.port)
      try await second.follow(right.collection("pings"))
      try await again.follow(left.collection("pings"))
      try await second.settle()
      try await again.settle()
      result.note(Workload.delivery, try await delivery(from: left, to: right))
      await again.stop()
      await second.stop()
      try await left.close()
      try await right.close()
      var plan = plan
      plan.role = .restarted(port: line.port)
      let restarted: SuiteResult = try runChild(
        SuiteTask(engine: "Ondol", plan: plan, directory: directory), named: "the device")
      result.values.merge(restarted.values) { _, new in new }
    }

    /// The memory that a follow takes in a process that does nothing else.
    static func restart(
      _ task: SuiteTask<SyncBenchmarks.Plan>, port: Int
    ) async throws -> SuiteResult {
      var result = SuiteResult(engine: task.engine)
      let trial = SyncTrial(task.plan, in: task.directory)
      let database = try await trial.open("left", Database.Options(cacheSize: 1 << 20))
      let before = ProcessMemory.current()?.residentBytes
      let sync = try await trial.sync(database, port: port)
      try await sync.settle()
      if let before, let now = ProcessMemory.current()?.residentBytes {
        result.note(Workload.memory, Double(now - before) / Double(1 << 20))
      }
      await sync.stop()
      try await database.close()
      return result
    }

    /// Milliseconds from a write on one device to its result on another.
    private func delivery(from left: Database, to right: Database) async throws -> Double {
      let (arrivals, note) = AsyncStream.makeStream(of: (Int64, ContinuousClock.Instant).self)
      let listening = Task {
        for try await snapshot in right.document("pings/one").snapshots {
          if let number = snapshot["number"] as Int64? { note.yield((number, .now)) }
        }
      }
      var times: [Double] = []
      var iterator = arrivals.makeAsyncIterator()
      for number in 0..<Int64(max(20, plan.turns * 5)) {
        let begin = ContinuousClock.now
        try await left.document("pings/one").setData(["number": number])
        while let (arrived, time) = await iterator.next() {
          guard arrived >= number else { continue }
          times.append((time - begin).microseconds / 1_000)
          break
        }
      }
      listening.cancel()
      return percentile(0.95, ofSorted: times.sorted())
    }
  }
#else
  // The suite needs a build with the traits Server and Sync.
  @main
  enum SyncBenchmarks {
    static func main() {}
  }
#endif
