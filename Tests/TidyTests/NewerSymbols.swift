// The symbols in the sources that Apple's older systems lack. The compiler checks that on those
// systems and ignores it on Linux, so the answer comes from two outputs of the compiler: the index
// of a build, and the graphs of the toolchain's symbols. Tests/Systems combines them. This file
// finds the tools and reads the answer.

import Foundation
import Testing

/// One of Apple's systems and a version of it, as in the manifest.
struct SystemVersion: Hashable, Sendable, CustomStringConvertible {
  let system: String
  let number: Int

  var description: String { "\(system) \(number)" }

  /// The systems that a manifest or a page writes as `.macOS(.v15)`, with the line's index.
  static func all(in file: SourceFile) -> [(line: Int, version: SystemVersion)] {
    file.lines.indices.flatMap { line in
      file.lines[line].matches(of: /\.(macOS|iOS|tvOS|watchOS|visionOS)\(\.v([0-9]+)\)/).map {
        (line, SystemVersion(system: String($0.output.1), number: Int($0.output.2) ?? 0))
      }
    }
  }
}

/// The symbols of the toolchain that a build uses and that a system may lack.
struct NewerSymbols: Sendable {
  struct Use: Sendable {
    let path: String
    let line: Int
    let symbol: String
    /// The first system that lacks it; or, for a symbol without availability, the name that it is
    /// listed under.
    let detail: String
  }

  /// Files that the index knows.
  private(set) var files: Set<String> = []
  private(set) var newer: [Use] = []
  private(set) var unstated: [Use] = []

  /// Reads what the script prints.
  init(output: String) {
    for line in output.split(separator: "\n") {
      let words = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
      switch (words.first, words.count) {
      case ("file", 2): files.insert(words[1])
      case ("newer", 5): newer.append(Self.use(words))
      case ("unstated", 5): unstated.append(Self.use(words))
      default: Issue.record("cannot be read: \(line)")
      }
    }
  }

  private static func use(_ words: [String]) -> Use {
    Use(path: words[1], line: Int(words[2]) ?? 0, symbol: words[3], detail: words[4])
  }

  /// The symbols that the build with this index uses and that `systems` lack.
  init(index: URL, root: URL, systems: [SystemVersion]) async throws {
    let tools = try #require(SymbolTools.found)
    let words =
      [tools.python, tools.script, tools.toolchain, index, root].map {
        $0.path(percentEncoded: false)
      } + systems.map { "\($0.system)=\($0.number)" }
    let (status, output) = try await SymbolTools.run(words)
    try #require(status == 0, "\(output)")
    self.init(output: output)
  }
}

/// The tools that find them.
struct SymbolTools: Sendable {
  let python: URL
  /// The folder above the compiler's `bin`.
  let toolchain: URL

  var compiler: URL { toolchain.appending(path: "bin/swiftc") }
  var script: URL { Self.root.appending(path: "Tests/Systems/newer_symbols.py") }

  static let root = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()

  /// Nil if one of them is missing, and on Apple's systems, where the compiler does the work.
  static let found: SymbolTools? = {
    #if os(Linux)
      guard let python = program("python3"), let compiler = program("swiftc") else { return nil }
      let toolchain = compiler.deletingLastPathComponent().resolvingSymlinksInPath()
        .deletingLastPathComponent()
      let needed = ["bin/swiftc", "bin/swift-symbolgraph-extract", "lib/libIndexStore.so"]
      guard needed.allSatisfy({ exists(toolchain.appending(path: $0)) }) else { return nil }
      return SymbolTools(python: python, toolchain: toolchain)
    #else
      return nil
    #endif
  }()

  /// The index of the build that this test belongs to; nil if there is none, as in an optimised
  /// build.
  static let index: URL? = {
    let bundles = Bundle.allBundles.map(\.bundleURL).filter { $0.pathExtension == "xctest" }
    for start in bundles + [Bundle.main.executableURL].compactMap(\.self) {
      var folder = start
      for _ in 0..<4 {
        folder.deleteLastPathComponent()
        let index = folder.appending(path: "index/store")
        if exists(index.appending(path: "v5")) { return index }
      }
    }
    return nil
  }()

  private static func exists(_ place: URL) -> Bool {
    FileManager.default.fileExists(atPath: place.path(percentEncoded: false))
  }

  private static func program(_ name: String) -> URL? {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    return path.split(separator: ":").map { URL(filePath: String($0)).appending(path: name) }
      .first { FileManager.default.isExecutableFile(atPath: $0.path(percentEncoded: false)) }
  }

  /// Runs a command to its end. Its output goes through a file, which, unlike a pipe, never fills
  /// up.
  static func run(_ words: [String]) async throws -> (status: Int32, output: String) {
    let place = FileManager.default.temporaryDirectory
      .appending(path: "ondol-symbols-\(UUID().uuidString)")
    try Data().write(to: place)
    defer { try? FileManager.default.removeItem(at: place) }
    let output = try FileHandle(forWritingTo: place)
    let process = Process()
    process.executableURL = URL(filePath: words[0])
    process.arguments = Array(words.dropFirst())
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
