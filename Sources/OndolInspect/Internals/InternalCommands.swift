// `ondol log`, `segment`, `manifest`, `hexdump` and `snapshots`: the contents of the files, to
// study how the database works or where it is damaged.

import ArgumentParser
import Foundation
import Ondol
import OndolEngine

/// A command that examines the files of a database, whether or not they form a valid one.
protocol FileCommand: AsyncParsableCommand {
  var database: DatabaseArgument { get }

  func run(in files: FileInspector) throws
}

extension FileCommand {
  func run() async throws {
    let directory = try database.directory()
    do {
      try run(in: FileInspector(at: directory, environment: DatabaseKey.environment()))
    } catch let error as EngineError {
      throw CommandFailure(error)
    }
  }
}

extension CommandFailure {
  /// The engine's error, in the form of commands.
  init(_ error: EngineError) {
    let status: ExitStatus =
      switch error {
      case .corrupt, .notADatabase: .corrupt
      case .needsNewerVersion: .newerFormat
      case .io(_, _, _, 2): .notFound
      default: .failed
      }
    self.init(status, "\(error)")
  }
}

extension Value {
  /// A time in microseconds since 1970, as commands show it.
  static func moment(_ microseconds: Int64) -> Value {
    (try? Timestamp(microsecondsSince1970: microseconds)).map { .timestamp($0) }
      ?? .integer(microseconds)
  }

  static func hexadecimal(_ bytes: [UInt8]) -> Value { .string(bytes.hexadecimal) }
}

struct LogCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "log", abstract: "Looks into the logs.", subcommands: [LogDumpCommand.self])
}

struct LogDumpCommand: FileCommand {
  static let configuration = CommandConfiguration(
    commandName: "dump", abstract: "Prints the frames of all logs.",
    discussion: "It reads a log up to the first unreadable frame.")

  @OptionGroup var database: DatabaseArgument

  @Option(help: "Only commits from this sequence on.")
  var from: UInt64 = 0

  @Option(help: "Only commits up to this sequence.")
  var to: UInt64 = .max

  @Flag(help: "The rows of each commit, with their bytes.")
  var hex = false

  @OptionGroup var globals: GlobalOptions

  func run(in files: FileInspector) throws {
    let columns = ["log", "offset", "length", "kind", "sequence", "time", "rows"]
    var rows = RowWriter(globals, .report(schema: "log-dump/1", columns: columns))
    for log in try files.logs() {
      for frame in try files.frames(ofLog: log)
      where frame.sequence >= from && frame.sequence <= to {
        try rows.write(row(frame, of: log))
      }
    }
    try rows.finish()
  }

  private func row(_ frame: FileInspector.LoggedFrame, of log: String) -> [Cell] {
    let row: [Cell] = [
      ("log", .string(log)), ("offset", .number(frame.offset)),
      ("length", .number(frame.length)), ("kind", .string(frame.kind)),
      ("sequence", .number(frame.sequence)), ("time", .moment(frame.time)),
      ("rows", .number(frame.operations.count)),
    ]
    guard hex else { return row }
    let operations = frame.operations.map { operation in
      Value.map([
        "key": .hexadecimal(operation.key),
        "value": operation.isDeletion ? .null : .hexadecimal(operation.value),
      ])
    }
    return row + [("operations", .array(operations))]
  }
}

struct SegmentCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "segment", abstract: "Looks into the files of rows.",
    subcommands: [
      SegmentListCommand.self, SegmentDumpCommand.self, SegmentVerifyCommand.self,
    ])
}

struct SegmentListCommand: FileCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls", abstract: "Lists the files of rows in the manifest.")

  @OptionGroup var database: DatabaseArgument
  @OptionGroup var globals: GlobalOptions

  func run(in files: FileInspector) throws {
    let columns = [
      "file", "shard", "level", "rows", "tombstones", "bytes", "rawBytes", "first", "last",
    ]
    let rows: [[Cell]] = try files.segments().map { segment in
      let metadata = segment.metadata
      return [
        ("file", .string(segment.file)), ("shard", .number(segment.shard)),
        ("level", .number(segment.level)), ("rows", .number(metadata.entries)),
        ("tombstones", .number(metadata.tombstones)), ("bytes", .number(metadata.sizeBytes)),
        ("rawBytes", .number(metadata.rawBytes)), ("first", .hexadecimal(metadata.minKey)),
        ("last", .hexadecimal(metadata.maxKey)),
      ]
    }
    try globals.report("segment-ls/1", columns, rows)
  }
}

struct SegmentDumpCommand: FileCommand {
  static let configuration = CommandConfiguration(
    commandName: "dump", abstract: "Prints the rows of a file, keys and values as bytes.")

  @OptionGroup var place: SegmentArgument

  @Option(help: "The largest number of rows.")
  var limit = Int.max

  @OptionGroup var globals: GlobalOptions

  var database: DatabaseArgument { place.database }

  func run(in files: FileInspector) throws {
    let columns = ["kind", "key", "value"]
    var rows = RowWriter(globals, .report(schema: "segment-dump/1", columns: columns))
    var count = 0
    // The readable part before the damage is shown as well.
    let result = Result {
      try files.forEachRow(ofSegment: place.file) { kind, key, value in
        guard count < limit else { return false }
        count += 1
        try rows.write([
          ("kind", .string(kind)), ("key", .hexadecimal(key)), ("value", .hexadecimal(value)),
        ])
        return true
      }
    }
    try rows.finish()
    try result.get()
  }
}

/// A file of rows.
struct SegmentArgument: ParsableArguments {
  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The file, as segment ls prints it.")
  var file: String
}

struct SegmentVerifyCommand: FileCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify", abstract: "Reads a whole file of rows and verifies it.")

  @OptionGroup var place: SegmentArgument

  @OptionGroup var globals: GlobalOptions

  var database: DatabaseArgument { place.database }

  func run(in files: FileInspector) throws {
    let findings = try files.findings(ofSegment: place.file)
    try CheckCommand.print(findings.map(Finding.init(stored:)), globals)
    if !findings.isEmpty { throw CommandFailure(.corrupt, "\(place.file) is damaged") }
  }
}

struct ManifestCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "manifest", abstract: "Looks into the manifest, the list of current files.",
    subcommands: [ManifestDumpCommand.self])
}

struct ManifestDumpCommand: FileCommand {
  static let configuration = CommandConfiguration(
    commandName: "dump", abstract: "Prints the edits of the manifest.")

  @OptionGroup var database: DatabaseArgument
  @OptionGroup var globals: GlobalOptions

  func run(in files: FileInspector) throws {
    let name = try files.manifestName()
    let rows = try files.manifestEdits().flatMap { edit in
      edit.changes.map { change in
        [
          Cell("file", .string(name)), Cell("offset", .number(edit.offset)),
          Cell("ordinal", .number(edit.ordinal)), Cell("time", .moment(edit.time)),
          Cell("change", .string(change)),
        ]
      }
    }
    try globals.report("manifest-dump/1", ["file", "offset", "ordinal", "time", "change"], rows)
  }
}

struct HexdumpCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "hexdump", abstract: "Prints bytes of one of the database's files.")

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The file's name, as info prints it.")
  var file: String

  @Argument(help: "The place of the first byte.")
  var offset: UInt64 = 0

  @Option(help: "The number of bytes.")
  var length = 256

  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard (0...(1 << 24)).contains(length) else {
      throw ValidationError("--length must be from 0 to \(1 << 24)")
    }
    guard !file.contains("/"), file != ".." else {
      throw ValidationError("name a file of the database, without a directory")
    }
  }

  func run() async throws {
    let directory = try database.directory()
    let path = URL(filePath: directory).appending(path: file)
      .path(percentEncoded: false)
    guard let handle = FileHandle(forReadingAtPath: path) else {
      throw CommandFailure(.notFound, "there is no file \(file) in \(directory)")
    }
    do {
      try handle.seek(toOffset: offset)
      let bytes = [UInt8](try handle.read(upToCount: length) ?? Data())
      var output = Output()
      for line in HexText.lines(bytes, from: offset) { try output.print(line) }
      try output.flush()
    } catch let failure as CommandFailure {
      throw failure
    } catch {
      throw CommandFailure(.failed, "cannot read \(file): \(error.localizedDescription)")
    }
  }
}

struct SnapshotsCommand: FileCommand {
  static let configuration = CommandConfiguration(
    commandName: "snapshots",
    abstract: "Shows which readers still need files that compaction has replaced.",
    discussion: """
      Snapshots belong to the process that took them, and no other can see who they are. What can \
      be seen from outside are files in the directory that the manifest names no more: somebody \
      reads them still, or the next opening removes them.
      """)

  @OptionGroup var database: DatabaseArgument
  @OptionGroup var globals: GlobalOptions

  func run(in files: FileInspector) throws {
    let names = Set(try files.leftFiles())
    let left = try FileListing.files(in: database.directory()).filter { names.contains($0.name) }
    let reason = "the manifest does not name it: in use by a reader, or left by a crash"
    try globals.report(
      "snapshots/1", ["file", "bytes", "reason"],
      left.map { file in
        [
          ("file", .string(file.name)), ("bytes", .number(file.bytes)), ("reason", .string(reason)),
        ]
      })
    globals.say("Only the process that took a snapshot knows its holder.")
  }
}
