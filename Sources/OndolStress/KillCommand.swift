// `kill`: real processes on real files, really killed. The command starts itself again as the
// worker that it kills. The system's memory survives a kill, so this shows only the promise of
// `.process`. `crash` tests the promise of `.power`.

import ArgumentParser
import Foundation
import OndolTestKit

struct KillCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "kill", abstract: "Kills processes that write (shows `.process`, not `.power`).")

  @Option(help: "The smallest number of kills.")
  var kills = 100

  @Option(help: "What the processes write: documents or blobs.")
  var floor = KillWork.Matter.documents

  @Option(help: .hidden)
  var worker: String?

  @OptionGroup var options: StressOptions

  func run() async throws {
    if let worker {
      let work = KillWork(path: worker, seed: options.seed ?? 0, matter: floor)
      try await work.workUntilKilled { number in
        try FileHandle.standardOutput.write(contentsOf: Data("\(number)\n".utf8))
      }
    }
    let remark = "a kill shows what .process promises, not .power"
    let run = StressRun("kill", "kills", target: kills, remark: remark, options)
    let floor = floor
    try await run.run { seed in try await KillUnit(seed: seed, matter: floor).run() }
  }
}

extension KillWork.Matter: ExpressibleByArgument {}

/// One database, and the processes that are killed on it.
private struct KillUnit {
  private static let rounds = 10

  let seed: UInt64
  let matter: KillWork.Matter

  func run() async throws -> UnitResult {
    let directory = FileManager.default.temporaryDirectory
      .appendingPathComponent("ondol-stress-\(ProcessInfo.processInfo.processIdentifier)-\(seed)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    let work = KillWork(
      path: directory.appendingPathComponent("killed.ondol").path, seed: seed, matter: matter)
    var random = SeededRandom(seed: seed)
    var result = UnitResult()
    var acknowledged = 0
    for _ in 0..<Self.rounds {
      let worker = try Worker(work)
      acknowledged = max(acknowledged, try worker.kill(after: random.below(120)))
      result.cases += 1
      acknowledged = try await work.check(acknowledged: acknowledged)
    }
    return result
  }
}

/// This program, started again as a process that writes until it is killed.
private struct Worker {
  struct EndedByItself: Error {
    var status: Int32
  }

  private let process = Process()
  private let output = Pipe()

  init(_ work: KillWork) throws {
    process.executableURL = Bundle.main.executableURL
    process.arguments = [
      "kill", "--worker", work.path, "--seed", "\(work.seed)", "--floor", work.matter.rawValue,
    ]
    process.standardOutput = output
    try process.run()
  }

  /// Kills the process after a number of acknowledgements, and returns the last one.
  func kill(after count: Int) throws -> Int {
    var text = ""
    var isKilled = false
    while true {
      let lines = text.split(separator: "\n", omittingEmptySubsequences: true)
      if !isKilled, lines.count >= count {
        _ = Foundation.kill(process.processIdentifier, SIGKILL)
        isKilled = true
      }
      let data = output.fileHandleForReading.availableData
      if data.isEmpty { break }
      text += String(decoding: data, as: UTF8.self)
    }
    process.waitUntilExit()
    guard process.terminationReason == .uncaughtSignal, process.terminationStatus == SIGKILL else {
      throw EndedByItself(status: process.terminationStatus)
    }
    // The kill may have cut off the last line.
    let whole = text[..<(text.lastIndex(of: "\n") ?? text.startIndex)]
    return whole.split(separator: "\n").last.flatMap { Int($0) } ?? 0
  }
}
