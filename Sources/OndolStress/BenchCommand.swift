// `bench`: the benchmarks. They are built apart from everything else because of the peers that they
// measure, so this command only finds their script and runs it.

import ArgumentParser
import Foundation

struct BenchCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench", abstract: "Runs Scripts/bench of the checkout that built this program.",
    discussion: "All further arguments go to the script: `ondol-stress bench --all --quick`.")

  @Argument(parsing: .captureForPassthrough, help: "The script's arguments.")
  var arguments: [String] = []

  func run() throws {
    let script = try Self.script()
    let process = Process()
    process.executableURL = script
    process.arguments = arguments
    // An interrupt reaches the script as well, and this command exits with its status.
    signal(SIGINT, SIG_IGN)
    try process.run()
    process.waitUntilExit()
    let status = process.terminationStatus
    let isInterrupted = process.terminationReason == .uncaughtSignal
    print("bench: \(isInterrupted ? "interrupted" : "ended with status \(status)")")
    if isInterrupted { throw ExitCode(128 + status) }
    if status != 0 { throw ExitCode(status) }
  }

  /// The nearest `Scripts/bench` above the program or the current directory.
  private static func script() throws -> URL {
    let starts = [
      Bundle.main.executableURL, URL(filePath: FileManager.default.currentDirectoryPath),
    ].compactMap { $0?.resolvingSymlinksInPath() }
    for start in starts {
      var folder = start
      while folder.pathComponents.count > 1 {
        let script = folder.appending(path: "Scripts/bench")
        if FileManager.default.isExecutableFile(atPath: script.path) { return script }
        folder.deleteLastPathComponent()
      }
    }
    throw ValidationError("no Scripts/bench exists above this program or this directory")
  }
}
