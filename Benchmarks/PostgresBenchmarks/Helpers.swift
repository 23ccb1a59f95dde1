// Processes beside the one that measures. Each opens a database on its own, reports that it is
// ready, starts on command and ends with its result, all in lines.

import BenchmarkKit
import Foundation
import OndolPlatform

/// The machine's own clock in nanoseconds, which is the same for all its processes.
func now() -> Int64 {
  var time = timespec()
  _ = unsafe clock_gettime(CLOCK_MONOTONIC, &time)
  return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

/// A process with a role.
final class Helper {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()
  private var rest = ""

  init(_ task: SuiteTask<Plan>) throws {
    process.executableURL = Bundle.main.executableURL
    let words = String(decoding: try JSONEncoder().encode(task), as: UTF8.self)
    process.arguments = ["--child", words]
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    guard try readLine() == "ready" else {
      throw ChildFailure(description: "\(task.engine): a helper did not become ready")
    }
  }

  private func readLine() throws -> String {
    while true {
      if let end = rest.firstIndex(of: "\n") {
        defer { rest.removeSubrange(...end) }
        return String(rest[..<end])
      }
      let data = output.fileHandleForReading.availableData
      guard !data.isEmpty else { return "" }
      rest += String(decoding: data, as: UTF8.self)
    }
  }

  func begin() throws {
    try input.fileHandleForWriting.write(contentsOf: Data("go\n".utf8))
  }

  /// Returns the process's result.
  func result() throws -> [Double] {
    let line = try readLine()
    process.waitUntilExit()
    return try JSONDecoder().decode([Double].self, from: Data(line.utf8))
  }
}

/// The helper's side.
struct HelperRun {
  let plan: Plan
  let place: Place

  private func say(_ line: String) throws {
    try FileHandle.standardOutput.write(contentsOf: Data("\(line)\n".utf8))
  }

  func run<Engine: Contender>(_ type: Engine.Type, _ role: Role) async throws {
    let found: [Double]
    switch role {
    case .writer(let number, let database): found = try await write(type, number, database)
    case .listener: found = try await listen(type)
    }
    try say(String(decoding: try JSONEncoder().encode(found), as: UTF8.self))
  }

  /// Writes a per second.
  private func write<Engine: Contender>(
    _ type: Engine.Type, _ number: Int, _ database: Int
  ) async throws -> [Double] {
    let engine = try await type.open(database, at: place)
    let records = PostgresRun.records(plan, number, Plan.loneWriters)
    try await engine.write(records[0])
    try say("ready")
    _ = readLine()
    let count = try await engine.write(records, writers: 1, for: plan.duration)
    try await engine.close()
    return [Double(count) / (plan.duration / .seconds(1))]
  }

  /// Milliseconds of each delivery.
  private func listen<Engine: Contender>(_ type: Engine.Type) async throws -> [Double] {
    let engine = try await type.openToRead(at: place)
    var delays: [Double] = []
    try await engine.listen {
      try? say("ready")
      _ = readLine()
    } _: { number in
      if number == 0 { return false }
      delays.append(Double(now() - number) / 1e6)
      return true
    }
    try await engine.close()
    return delays
  }
}
