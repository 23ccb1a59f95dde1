// The parent's side: starts a process per engine and run, removes what it left, and compares what
// it read with the reference.

import Foundation
import Peers

struct Comparison {
  let plan: Plan
  let engines: [String]
  let runs: Int
  let directory: String

  func perform(childArguments: [String]) async throws -> Report {
    try FileManager.default.createDirectory(
      atPath: directory, withIntermediateDirectories: true)
    let reference = Reference(plan, Dataset(valueLength: plan.valueLength))
    var report = Report(plan: plan, runs: runs, directory: directory)
    for round in 1...runs {
      report.deviceFloors.append(
        try deviceFloor(
          lengthBytes: KeyList.keyLength + plan.valueLength, times: 200, in: directory))
      for engine in engines {
        progress("run \(round) of \(runs): \(engine)")
        do {
          let result = try runChild(engine, childArguments)
          report.errors += mismatches(in: result, reference)
          report.results.append(result)
        } catch {
          report.errors.append("\(error)")
        }
      }
    }
    progress("")
    return report
  }

  private func runChild(_ engine: String, _ arguments: [String]) throws -> RunResult {
    let place = directory + "/" + engine
    try? FileManager.default.removeItem(atPath: place)
    try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
    defer {
      try? FileManager.default.removeItem(atPath: place)
      writeOutEverything()
    }
    let process = Process()
    process.executableURL = Bundle.main.executableURL
    process.arguments = ["--child", engine, "--directory", place] + arguments
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let data = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw PeerError(engine, "run", "the process ended with \(process.terminationStatus)")
    }
    return try JSONDecoder().decode(RunResult.self, from: data)
  }

  private func mismatches(in result: RunResult, _ reference: Reference) -> [String] {
    result.measurements.compactMap { measurement in
      guard let found = measurement.checksum,
        let wanted = reference.checksums[measurement.workload], found != wanted
      else { return nil }
      return
        "\(result.engine): \(measurement.workload.rawValue): read other bytes than were written "
        + "(checksum \(found) instead of \(wanted))"
    }
  }

  /// One line that overwrites itself on a terminal.
  private func progress(_ text: String) {
    guard isatty(STDERR_FILENO) == 1 else { return }
    FileHandle.standardError.write(Data("\r\u{1B}[K\(text)".utf8))
  }
}
