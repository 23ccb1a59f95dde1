// The program starts itself once for each engine and run, so that memory and caches start empty.
// Each process has a directory of its own, which is removed afterwards.

import Foundation

/// A process that failed.
package struct ChildFailure: Error, CustomStringConvertible {
  package var description: String

  package init(description: String) {
    self.description = description
  }
}

/// Starts this program again with `task` after `--child`, and reads its output.
///
/// - Parameter command: words before the command. Those of `BENCH_RUN_UNDER` come first.
package func runChild<Task: Encodable, Result: Decodable>(
  _ task: Task, named name: String, under command: [String] = [],
  as type: Result.Type = Result.self
) throws -> Result {
  let process = Process()
  let program = Bundle.main.executableURL?.path ?? CommandLine.arguments[0]
  let tool = ProcessInfo.processInfo.environment["BENCH_RUN_UNDER"]?.split(separator: " ")
  process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
  process.arguments =
    (tool ?? []).map(String.init) + command + [
      program, "--child", String(decoding: try JSONEncoder().encode(task), as: UTF8.self),
    ]
  let output = Pipe()
  process.standardOutput = output
  try process.run()
  let data = try output.fileHandleForReading.readToEnd() ?? Data()
  process.waitUntilExit()
  guard process.terminationStatus == 0 else {
    throw ChildFailure(description: "\(name): the process ended with \(process.terminationStatus)")
  }
  return try JSONDecoder().decode(type, from: data)
}

/// Gives `body` an empty directory, removes it, and waits until the system has written out the
/// rest, so that no engine pays for the one before.
package func inFreshDirectory<Result>(
  _ place: String, _ body: (String) throws -> Result
) throws -> Result {
  try? FileManager.default.removeItem(atPath: place)
  try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
  defer {
    try? FileManager.default.removeItem(atPath: place)
    writeOutEverything()
  }
  return try body(place)
}

/// One line that overwrites itself on a terminal.
package func progress(_ text: String) {
  guard isatty(STDERR_FILENO) == 1 else { return }
  FileHandle.standardError.write(Data("\r\u{1B}[K\(text)".utf8))
}
