// `server-history`: several processes on one database of a PostgreSQL that this command starts for
// them. Their transactions must be serializable together. In every other history one of the
// processes is killed. A commit that it saw acknowledged must be there, and a commit that it did
// not see acknowledged must be there whole or not at all. The command starts itself again as each
// of the processes.

#if Postgres
  import ArgumentParser
  import Foundation
  import Ondol
  import OndolPostgres
  import OndolPostgresTestKit
  import OndolTestKit

  struct ServerHistoryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "server-history",
      abstract: "Runs processes on one database of a server, kills some, checks their history.")

    @Option(help: "The smallest number of histories.")
    var histories = 1_000

    @Option(help: "The number of processes in a history.")
    var processes = 3

    @Option(help: .hidden)
    var worker: String?

    @Option(help: .hidden)
    var firstTask = 0

    @OptionGroup var options: StressOptions

    func validate() throws {
      guard processes > 0 else { throw ValidationError("--processes must be at least 1") }
    }

    func run() async throws {
      if let worker {
        return try await ServerWorker.work(worker, seed: options.seed ?? 0, firstTask: firstTask)
      }
      let server = try PostgresServer()
      let processes = processes
      let run = StressRun("server-history", "histories", target: histories, options)
      try await run.run { seed in
        try await ServerHistory(server: server, seed: seed, processes: processes).run()
      }
    }
  }

  /// One of the processes, which reports its transactions by lines.
  private enum ServerWorker {
    /// A transaction that is about to run, or has committed.
    struct Line: Codable {
      var isCommitted: Bool
      var record: TransactionRecord
    }

    static let tasks = 2

    static func work(_ address: String, seed: UInt64, firstTask: Int) async throws {
      let database = try await Database.open(on: .postgres(address))
      var workload = HistoryWorkload(databases: [database], seed: seed, tasks: tasks)
      workload.firstTask = firstTask
      try await workload.run {
        Int(ProcessInfo.processInfo.systemUptime * 1e9)
      } begun: {
        try tell(Line(isCommitted: false, record: $0))
      } committed: {
        try tell(Line(isCommitted: true, record: $0))
      }
      try await database.close()
    }

    /// Lines are shorter than the atomic writes of a pipe, so they do not mix.
    private static func tell(_ line: Line) throws {
      let text = try JSONEncoder().encode(line) + Data("\n".utf8)
      try FileHandle.standardOutput.write(contentsOf: text)
    }
  }

  /// One database, and the processes on it.
  private struct ServerHistory {
    struct EndedBadly: Error {
      var status: Int32
    }

    let server: PostgresServer
    let seed: UInt64
    let processes: Int

    func run() async throws -> UnitResult {
      var random = SeededRandom(seed: seed)
      let address = server.address("h\(seed)")
      let victim = random.below(2) == 0 ? random.below(processes) : nil
      let patience = random.below(2 * ServerWorker.tasks * 12)
      let workers = try (0..<processes).map { try start($0, address) }
      let lines = try await withThrowingTaskGroup(of: [ServerWorker.Line].self) { tasks in
        for (number, worker) in workers.enumerated() {
          let patience = number == victim ? patience : nil
          tasks.addTask { try Self.lines(of: worker, killedAfter: patience) }
        }
        return try await tasks.reduce(into: []) { $0 += $1 }
      }
      let database = try await Database.open(on: .postgres(address))
      let lists = try await HistoryWorkload.lists(in: database)
      try await database.close()
      let history = TransactionHistory(
        transactions: Self.transactions(lines, lists), finalLists: lists)
      var result = UnitResult(cases: 1, violation: history.violation())
      result.counts = ["transactions": history.transactions.count]
      if victim != nil { result.counts["kills"] = 1 }
      return result
    }

    /// The committed transactions: all that were reported, and those of a process that was killed
    /// before its report, if any part of them is there.
    private static func transactions(
      _ lines: [ServerWorker.Line], _ lists: [String: [Int]]
    ) -> [TransactionRecord] {
      let committed = lines.filter(\.isCommitted).map(\.record)
      let told = Set(committed.map(\.number))
      let there = Set(lists.values.joined())
      return committed
        + lines.filter { !$0.isCommitted && !told.contains($0.record.number) }.map(\.record)
        .filter { there.contains($0.number) }
    }

    private func start(_ number: Int, _ address: String) throws -> (Process, Pipe) {
      let (process, output) = (Process(), Pipe())
      process.executableURL = Bundle.main.executableURL
      process.arguments = [
        "server-history", "--worker", address, "--seed", "\(seed)", "--first-task",
        "\(number * ServerWorker.tasks)",
      ]
      process.standardOutput = output
      try process.run()
      return (process, output)
    }

    /// The lines that a process writes until it ends, or until it is killed after a number of
    /// lines.
    private static func lines(
      of worker: (process: Process, output: Pipe), killedAfter count: Int?
    ) throws -> [ServerWorker.Line] {
      var text = Data()
      var isKilled = false
      while case let data = worker.output.fileHandleForReading.availableData, !data.isEmpty {
        text += data
        if let count, !isKilled, text.count(where: { $0 == UInt8(ascii: "\n") }) >= count {
          _ = Foundation.kill(worker.process.processIdentifier, SIGKILL)
          isKilled = true
        }
      }
      worker.process.waitUntilExit()
      guard isKilled || worker.process.terminationStatus == 0 else {
        throw EndedBadly(status: worker.process.terminationStatus)
      }
      // The kill may have cut off the last line.
      let lines = text.split(separator: UInt8(ascii: "\n"))
      let whole = text.last == UInt8(ascii: "\n") ? lines[...] : lines.dropLast()
      return try whole.map { try JSONDecoder().decode(ServerWorker.Line.self, from: Data($0)) }
    }
  }
#endif
