// Type-checks a script of the documentation without generating code, with the compiler, language
// mode and modules of the package's users.

import Foundation

/// A message of the compiler about a script.
struct CompilerMessage: Sendable, CustomStringConvertible {
  /// The page of the message.
  let file: String
  let line: Int
  /// The compiler's own words, followed by the notes.
  var text: String

  var description: String { "\(file):\(line): \(text)" }
}

/// Type-checks scripts against the modules of a build.
struct TypeCheck: Sendable {
  private let arguments: [String]
  private let manifestArguments: [String]
  private let scratch: URL

  init(_ build: BuildFolder, scratch: URL) {
    self.scratch = scratch
    let common = [
      "swiftc", "-typecheck", "-swift-version", "6", "-strict-concurrency=complete",
      "-warnings-as-errors", "-module-name", "Page",
      // The next call reuses compiled modules of C targets.
      "-module-cache-path", scratch.appending(path: "modules").path(percentEncoded: false),
    ]
    arguments = common + build.searchArguments()
    // Beside the compiler: usr/bin and usr/lib/swift/pm.
    let toolchain = Self.compiler()?.deletingLastPathComponent().deletingLastPathComponent()
    let manifests = toolchain?.appending(path: "lib/swift/pm/ManifestAPI")
    manifestArguments =
      common + ["-package-description-version", "6.3.0"]
      + (manifests.map { ["-I", $0.path(percentEncoded: false)] } ?? [])
  }

  /// The compiler that a shell would run, with all links resolved.
  private static func compiler() -> URL? {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    return path.split(separator: ":").map { URL(filePath: String($0)).appending(path: "swiftc") }
      .first { FileManager.default.isExecutableFile(atPath: $0.path(percentEncoded: false)) }?
      .deletingLastPathComponent().resolvingSymlinksInPath().appending(path: "swiftc")
  }

  /// Returns the compiler's errors and warnings for the script; nothing if it is correct.
  func messages(about script: PageScript, number: Int) async throws -> [CompilerMessage] {
    let folder = scratch.appending(path: "\(number)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let file = folder.appending(path: "main.swift").path(percentEncoded: false)
    try script.source.write(toFile: file, atomically: true, encoding: .utf8)
    let words = script.kind == .manifest ? manifestArguments : arguments
    let (status, output) = try await run(words + [file], folder: folder)
    let messages = Self.messages(in: output)
    guard status != 0, messages.isEmpty else { return messages }
    return [CompilerMessage(file: script.page, line: script.line, text: output)]
  }

  /// Errors and warnings, each followed by its notes. The compiler's source excerpts are left out,
  /// because the page has the source.
  static func messages(in output: String) -> [CompilerMessage] {
    var messages: [CompilerMessage] = []
    for line in output.split(separator: "\n") {
      guard let match = line.wholeMatch(of: /(.+?):(\d+):\d+: (error|warning|note): (.*)/) else {
        continue
      }
      let (_, file, number, kind, text) = match.output
      if kind == "note" {
        guard !messages.isEmpty else { continue }
        messages[messages.count - 1].text += "\n  note: \(text)"
      } else {
        messages.append(
          CompilerMessage(file: String(file), line: Int(number) ?? 1, text: String(text)))
      }
    }
    return messages
  }

  /// Runs a command to its end. Its output goes through a file, which, unlike a pipe, never fills
  /// up.
  private func run(
    _ words: [String], folder: URL
  ) async throws -> (status: Int32, output: String) {
    let place = folder.appending(path: "output")
    try Data().write(to: place)
    let output = try FileHandle(forWritingTo: place)
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = words
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = output
    process.standardError = output
    try await withCheckedThrowingContinuation { continuation in
      process.terminationHandler = { _ in continuation.resume() }
      do {
        try process.run()
      } catch {
        process.terminationHandler = nil
        continuation.resume(throwing: error)
      }
    }
    return (process.terminationStatus, try String(contentsOf: place, encoding: .utf8))
  }
}
