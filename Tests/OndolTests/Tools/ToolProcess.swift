// Runs the built `ondol` as a shell would: arguments and standard input in, output and status out.
// The program is beside the test bundle, because both are built together.

import Foundation
import Testing
import OndolPlatform

/// The result of a tool's run.
struct ToolResult {
  var status: Int32
  var output: String
  var messages: String

  var lines: [String] { output.split(separator: "\n").map(String.init) }
}

/// A directory of its own for one test, removed at the end.
final class ScratchDirectory {
  let directory: URL

  init() throws {
    directory = FileManager.default.temporaryDirectory
      .appending(path: "ondol-tool-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
  }

  deinit {
    try? FileManager.default.removeItem(at: directory)
  }

  func path(_ name: String) -> String {
    directory.appending(path: name).path(percentEncoded: false)
  }

  /// Runs `ondol` to its end.
  func ondol(_ arguments: String..., input: String = "") async throws -> ToolResult {
    try await ondol(arguments, input: input)
  }

  /// Runs `ondol` to its end.
  ///
  /// - Parameter launcher: a program with arguments that starts it.
  func ondol(
    _ arguments: [String], input: String = "", environment: [String: String] = [:],
    through launcher: [String] = []
  ) async throws -> ToolResult {
    let tool = try Self.executable(named: "ondol").path(percentEncoded: false)
    return try await run(launcher + [tool] + arguments, input: input, environment: environment)
  }

  /// Runs a program to its end. Its output goes through files, which, unlike pipes, never fill up.
  func run(
    _ words: [String], input: String = "", environment: [String: String] = [:]
  ) async throws -> ToolResult {
    let process = Process()
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    process.executableURL = URL(filePath: words[0])
    process.arguments = Array(words.dropFirst())
    process.standardInput = try handle(path("input"), content: input)
    process.standardOutput = try handle(path("output"))
    process.standardError = try handle(path("messages"))
    try await withCheckedThrowingContinuation { continuation in
      process.terminationHandler = { _ in continuation.resume() }
      do {
        try process.run()
      } catch {
        process.terminationHandler = nil
        continuation.resume(throwing: error)
      }
    }
    return ToolResult(
      status: process.terminationStatus,
      output: try String(contentsOfFile: path("output"), encoding: .utf8),
      messages: try String(contentsOfFile: path("messages"), encoding: .utf8))
  }

  /// Runs `ondol` on a terminal, types at its first prompt, and waits for its end.
  ///
  /// - Parameters:
  ///   - keys: the keys to type; nothing if empty.
  ///   - arguments: the words, without single quotes in them.
  ///   - prompt: the text to wait for.
  func typing(
    _ keys: String, into arguments: [String], when prompt: String = "ondol> ",
    environment: [String: String] = [:]
  ) async throws -> ToolResult {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/script")
    let tool = try Self.executable(named: "ondol").path(percentEncoded: false)
    let command = ([tool] + arguments).map { "'\($0)'" }.joined(separator: " ")
    process.arguments = ["-qec", command, "/dev/null"]
    process.environment = ProcessInfo.processInfo.environment
      .merging(["ONDOL_HISTORY": path("history"), "TERM": "xterm"]) { $1 }
      .merging(environment) { $1 }
    let (keyboard, screen) = (Pipe(), Pipe())
    process.standardInput = keyboard
    process.standardOutput = screen
    process.standardError = screen
    let ended = AsyncStream<Void> { continuation in
      process.terminationHandler = { _ in continuation.finish() }
    }
    try process.run()
    var output = Data()
    var hasTyped = false
    while case let piece = screen.fileHandleForReading.availableData, !piece.isEmpty {
      output += piece
      if !hasTyped, !keys.isEmpty, String(decoding: output, as: UTF8.self).contains(prompt) {
        hasTyped = true
        try keyboard.fileHandleForWriting.write(contentsOf: Data(keys.utf8))
      }
    }
    for await _ in ended {}
    return ToolResult(
      status: process.terminationStatus, output: String(decoding: output, as: UTF8.self),
      messages: "")
  }

  /// Runs `ondol` until it has printed `count` lines, kills it, and returns its output so far.
  func ondol(
    _ arguments: String..., killedAfterLines count: Int
  ) async throws -> [String] {
    let process = Process()
    process.executableURL = try Self.executable(named: "ondol")
    process.arguments = arguments
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = try handle(path("messages"))
    let ended = AsyncStream<Void> { continuation in
      process.terminationHandler = { _ in continuation.finish() }
    }
    try process.run()
    var text = ""
    while text.count(where: { $0 == "\n" }) < count {
      // Blocks until the program prints or ends, whichever comes first.
      let piece = pipe.fileHandleForReading.availableData
      guard !piece.isEmpty else { break }
      text += String(decoding: piece, as: UTF8.self)
    }
    kill(process.processIdentifier, SIGKILL)
    for await _ in ended {}
    text += String(decoding: try pipe.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    return text.split(separator: "\n").map(String.init)
  }

  private func handle(_ path: String, content: String = "") throws -> FileHandle {
    try Data(content.utf8).write(to: URL(filePath: path))
    return try #require(FileHandle(forUpdatingAtPath: path))
  }

  static func executable(named name: String) throws -> URL {
    let bundles = Bundle.allBundles.map(\.bundleURL).filter { $0.pathExtension == "xctest" }
    let runner = try #require(Bundle.main.executableURL)
    let places = (bundles + [runner]).map {
      $0.deletingLastPathComponent().appending(path: name)
    }
    return try #require(
      places.first {
        FileManager.default.isExecutableFile(atPath: $0.path(percentEncoded: false))
      }, "\(name) was not built beside the tests: \(places)")
  }
}

/// An `ondol` that runs until it is told to end.
final class RunningTool {
  private let process = Process()
  private let pipe = Pipe()
  private var text = ""
  private let ended: AsyncStream<Void>

  init(_ arguments: String...) throws {
    process.executableURL = try ScratchDirectory.executable(named: "ondol")
    process.arguments = arguments
    process.standardOutput = pipe
    process.standardInput = FileHandle.nullDevice
    let process = process
    ended = AsyncStream { continuation in
      process.terminationHandler = { _ in continuation.finish() }
    }
    try process.run()
  }

  deinit {
    if process.isRunning { kill(process.processIdentifier, SIGKILL) }
  }

  /// Returns the next line that it prints; nil after its end. Blocks until there is one.
  func line() -> String? {
    while true {
      if let end = text.firstIndex(of: "\n") {
        defer { text.removeSubrange(...end) }
        return String(text[..<end])
      }
      let piece = pipe.fileHandleForReading.availableData
      guard !piece.isEmpty else { return nil }
      text += String(decoding: piece, as: UTF8.self)
    }
  }

  /// Presses ^C, and returns the status.
  func interrupt() async -> Int32 {
    kill(process.processIdentifier, SIGINT)
    for await _ in ended {}
    return process.terminationStatus
  }

  /// Stops reading its output.
  func closeOutput() { try? pipe.fileHandleForReading.close() }

  /// Waits for its end and returns the status.
  func end() async -> Int32 {
    for await _ in ended {}
    return process.terminationStatus
  }
}
