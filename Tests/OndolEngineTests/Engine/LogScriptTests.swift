// The scripts of recovery: commits, ends of every kind, damage, and the recovered rows.
//
//   commit DURABILITY key=value -key    one commit
//   fill COUNT DURABILITY               a number of commits, of the keys 0, 1, 2 and so on
//   flush, close                        the engine's calls
//   kill, cut-power                     the process ends; the second also loses unsynced bytes
//   overwrite FIRST COUNT BYTE          pages of the newest log that is not blank
//   read, read unnamed                  prints what opening would read, with or without the
//                                       manifest's list of logs
//   open                                opens, and prints the rows and the newest commit
//   logs                                the logs with their frames

import OndolTestKit
import Testing

@testable import OndolEngine

/// A database on a simulated disk.
private struct LogWorld {
  private static let path = "/db"

  private var files = SimulatedFileSystem()
  private var lives: UInt64 = 0
  private var engine: Engine?
  /// The log with overwritten pages.
  private var overwritten: [UInt8] = []

  private var environment: Environment {
    SimulatedWorld(fileSystem: files, seed: 3 + lives).environment
  }

  private func directory() throws -> any Directory {
    try files.openDirectory(at: Self.path, create: false)
  }

  mutating func run(_ step: GoldenScript.Step) async throws -> String {
    let words = step.words
    switch step.name {
    case "commit":
      try await opened().put(rows(words.dropFirst()), durability: durability(words[0]))
    case "fill":
      for number in 0..<(Int(words[0]) ?? 0) {
        try await opened().put([rowKey("\(number)"): [1]], durability: durability(words[1]))
      }
    case "flush": try await opened().flush()
    case "close":
      try await opened().close()
      end(files.kill())
    case "kill": end(files.kill())
    case "cut-power": end(files.crash(seed: 3 + lives))
    case "overwrite": try overwrite(words.compactMap { Int($0) })
    case "read": return try read(isNamed: words.isEmpty)
    case "open": return try await describe(opened())
    case "logs": return try logs()
    default: throw step.unknown
    }
    return ""
  }

  private mutating func opened() async throws -> Engine {
    if let engine { return engine }
    // Commits go into the existing log, whenever one written ahead would be ready.
    var options = EngineOptions()
    options.firstPrewrittenSize = 0
    let engine = try await Engine.open(
      at: Self.path, options: options, environment: environment)
    self.engine = engine
    return engine
  }

  private mutating func end(_ files: SimulatedFileSystem) {
    self.files = files
    engine = nil
    lives += 1
  }

  private func durability(_ word: String) -> Durability {
    word == "power" ? .power : word == "process" ? .process : .memory
  }

  private func rows(_ words: ArraySlice<String>) -> [[UInt8]: [UInt8]?] {
    var rows: [[UInt8]: [UInt8]?] = [:]
    for word in words {
      let parts = word.split(separator: "=", maxSplits: 1).map(String.init)
      let value = parts.count == 2 ? Array(parts[1].utf8) : nil
      rows.updateValue(value, forKey: rowKey(value == nil ? String(word.dropFirst()) : parts[0]))
    }
    return rows
  }

  private func describe(_ engine: Engine) throws -> String {
    let rows = try engine.rows().map { row in
      "\(text(row.key.dropFirst(4)))=\(text(row.value[...]))"
    }
    let shown = rows.count > 8 ? "\(rows.count) rows" : rows.joined(separator: " ")
    return "\(shown.isEmpty ? "nothing" : shown), commit \(engine.metrics.sequence.rawValue)"
  }

  private func text(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }

  // MARK: - Logs

  private func logNumbers() throws -> [FileNumber] {
    try directory().list().compactMap { FileNumber.parse($0, prefix: "LOG-") }.sorted()
  }

  private mutating func overwrite(_ numbers: [Int]) throws {
    let directory = try directory()
    for number in try logNumbers().reversed() {
      let log = try directory.open(number.logName, access: .readWrite)
      guard try log.read(at: 0, count: 64 << 10).contains(where: { $0 != 0 }) else { continue }
      let start = UInt64(numbers[0] * 4096)
      let length = min(numbers[1] * 4096, Int(try log.size() - start))
      let bytes = [UInt8](repeating: UInt8(numbers[2]), count: length)
      try log.write(bytes.bytes, at: start)
      overwritten = try log.read(at: 0, count: 1 << 20)
      return
    }
  }

  private func read(isNamed: Bool) throws -> String {
    let directory = try directory()
    let slots = try directory.open(Superblock.name, access: .readOnly)
    let manifest = try Manifest.load(
      try Superblock.read(from: slots), directory: directory, environment: environment,
      rotationSize: 1 << 20)
    var state = manifest.state
    if !isNamed { state.namedLogs = [:] }
    var recovery = Recovery(
      directory: directory, identity: manifest.superblock.identity, manifest: state,
      memtableSize: 1 << 20)
    try recovery.replay(try directory.list())
    return "\(recovery.commits.count) commits, \(recovery.headless.count) logs without a header,"
      + " \(recovery.unread.count) unread\(recovery.isClean ? ", closed in good order" : "")"
  }

  private func logs() throws -> String {
    let inspector = try FileInspector(at: Self.path, environment: environment)
    var lines: [String] = []
    for log in try inspector.logs() {
      var runs: [(kind: String, first: UInt64, last: UInt64)] = []
      for frame in try inspector.frames(ofLog: log) {
        if let last = runs.last, last.kind == frame.kind {
          runs[runs.count - 1].last = frame.sequence
        } else {
          runs.append((frame.kind, frame.sequence, frame.sequence))
        }
      }
      let texts = runs.map { "\($0.kind) \($0.first == $0.last ? "" : "\($0.first)-")\($0.last)" }
      lines.append("\(log): \(texts.isEmpty ? "nothing" : texts.joined(separator: ", "))")
    }
    for name in try directory().list().sorted() where name.hasPrefix("LOG-") && name.contains(".") {
      let bytes = try directory().open(name, access: .readOnly).read(at: 0, count: 1 << 20)
      lines.append("\(name): \(bytes == overwritten ? "as it was found" : "changed")")
    }
    return lines.joined(separator: "\n")
  }
}

/// The scripts address bytes of plain frames.
@Suite(.disabled(if: TestedEncryption.isOn)) struct LogScriptTests {
  @Test(arguments: try GoldenScript.all(in: "log"))
  func `Recovery matches the script`(script: GoldenScript) async throws {
    var world = LogWorld()
    try await script.check { try await world.run($0) }
  }
}
