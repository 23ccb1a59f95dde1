// `ondol log`, `segment`, `manifest`, `hexdump` and `snapshots`: what is in the files, for whoever
// wants to know how the database works or where it is broken.

import ArgumentParser
import Foundation
import Ondol
import OndolEngine

/// Opens the files of a database.
private func inspector(_ database: DatabaseArgument) throws -> FileInspector {
  guard FileManager.default.fileExists(atPath: database.directory) else {
    throw CommandFailure(.notFound, "there is no database at \(database.directory)")
  }
  return try failing { () throws(EngineError) in
    try FileInspector(at: database.directory, environment: .live())
  }
}

/// Says what the engine threw as commands say it.
func failing<Result>(
  _ body: () throws(EngineError) -> Result
) throws(CommandFailure) -> Result {
  do throws(EngineError) {
    return try body()
  } catch {
    switch error {
    case .corrupt, .notADatabase: throw CommandFailure(.corrupt, "\(error)")
    case .needsNewerVersion: throw CommandFailure(.newerFormat, "\(error)")
    case .io(_, _, _, 2): throw CommandFailure(.notFound, "\(error)")
    default: throw CommandFailure(.failed, "\(error)")
    }
  }
}

/// A moment in microseconds since 1970 as commands show it.
func time(_ microseconds: Int64) -> Value {
  (try? Timestamp(microsecondsSince1970: microseconds)).map { .timestamp($0) }
    ?? .integer(microseconds)
}

struct LogCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "log", abstract: "Looks into the logs.", subcommands: [LogDumpCommand.self])
}

struct LogDumpCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "dump", abstract: "Prints the frames of all logs.",
    discussion: "A log is read up to the first frame that cannot be read.")

  @OptionGroup var database: DatabaseArgument

  @Option(help: "Only commits from this sequence on.")
  var from: UInt64 = 0

  @Option(help: "Only commits up to this sequence.")
  var to: UInt64 = .max

  @Flag(help: "The rows of each commit, with their bytes.")
  var hex = false

  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    let inspector = try inspector(database)
    let columns = ["log", "offset", "length", "kind", "sequence", "time", "rows"]
    var rows = RowWriter(globals, .report(schema: "log-dump/1", columns: columns))
    for name in try failing({ () throws(EngineError) in try inspector.logs() }) {
      let frames = try failing { () throws(EngineError) in try inspector.frames(ofLog: name) }
      for frame in frames where frame.sequence >= from && frame.sequence <= to {
        var row: [Cell] = [
          ("log", .string(name)), ("offset", .integer(Int64(clamping: frame.offset))),
          ("length", .integer(Int64(frame.length))), ("kind", .string(frame.kind)),
          ("sequence", .integer(Int64(clamping: frame.sequence))), ("time", time(frame.time)),
          ("rows", .integer(Int64(frame.operations.count))),
        ]
        if hex {
          let operations = frame.operations.map { operation in
            Value.map([
              "key": .string(HexText.digits(operation.key)),
              "value": operation.isDeletion ? .null : .string(HexText.digits(operation.value)),
            ])
          }
          row.append(("operations", .array(operations)))
        }
        try rows.write(row)
      }
    }
    try rows.finish()
  }
}

struct SegmentCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "segment", abstract: "Looks into the files of rows.",
    subcommands: [
      SegmentListCommand.self, SegmentDumpCommand.self, SegmentVerifyCommand.self,
    ])
}

struct SegmentListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls", abstract: "Lists the files of rows, as the manifest names them.")

  @OptionGroup var database: DatabaseArgument
  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    let inspector = try inspector(database)
    let columns = [
      "file", "shard", "level", "rows", "tombstones", "bytes", "rawBytes", "first", "last",
    ]
    var rows = RowWriter(globals, .report(schema: "segment-ls/1", columns: columns))
    for segment in try failing({ () throws(EngineError) in try inspector.segments() }) {
      let metadata = segment.metadata
      try rows.write([
        ("file", .string(segment.file)), ("shard", .integer(Int64(segment.shard))),
        ("level", .integer(Int64(segment.level))),
        ("rows", .integer(Int64(clamping: metadata.entries))),
        ("tombstones", .integer(Int64(clamping: metadata.tombstones))),
        ("bytes", .integer(Int64(clamping: metadata.sizeBytes))),
        ("rawBytes", .integer(Int64(clamping: metadata.rawBytes))),
        ("first", .string(HexText.digits(metadata.minKey))),
        ("last", .string(HexText.digits(metadata.maxKey))),
      ])
    }
    try rows.finish()
  }
}

struct SegmentDumpCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "dump", abstract: "Prints the rows of a file, keys and values as bytes.")

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The file, as segment ls prints it.")
  var file: String

  @Option(help: "At most so many rows.")
  var limit = Int.max

  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    let inspector = try inspector(database)
    let columns = ["kind", "key", "value"]
    var rows = RowWriter(globals, .report(schema: "segment-dump/1", columns: columns))
    var count = 0
    do {
      try inspector.forEachRow(ofSegment: file) { kind, key, value in
        guard count < limit else { return false }
        count += 1
        try rows.write([
          ("kind", .string(kind)), ("key", .string(HexText.digits(key))),
          ("value", .string(HexText.digits(value))),
        ])
        return true
      }
    } catch let error as EngineError {
      try rows.finish()
      try failing { () throws(EngineError) in throw error }
    }
    try rows.finish()
  }
}

struct SegmentVerifyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify", abstract: "Reads a file of rows through and checks it.")

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The file, as segment ls prints it.")
  var file: String

  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    let inspector = try inspector(database)
    let findings = try failing { () throws(EngineError) in
      try inspector.findings(ofSegment: file)
    }
    try CheckCommand.print(findings.map(Finding.init(stored:)), globals)
    if !findings.isEmpty { throw CommandFailure(.corrupt, "\(file) is damaged") }
  }
}

struct ManifestCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "manifest", abstract: "Looks into the manifest, the list of files that count.",
    subcommands: [ManifestDumpCommand.self])
}

struct ManifestDumpCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "dump", abstract: "Prints the edits of the manifest.")

  @OptionGroup var database: DatabaseArgument
  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    let inspector = try inspector(database)
    let columns = ["file", "offset", "ordinal", "time", "change"]
    var rows = RowWriter(globals, .report(schema: "manifest-dump/1", columns: columns))
    let name = try failing { () throws(EngineError) in try inspector.manifestName() }
    for edit in try failing({ () throws(EngineError) in try inspector.manifestEdits() }) {
      for change in edit.changes {
        try rows.write([
          ("file", .string(name)), ("offset", .integer(Int64(clamping: edit.offset))),
          ("ordinal", .integer(Int64(clamping: edit.ordinal))), ("time", time(edit.time)),
          ("change", .string(change)),
        ])
      }
    }
    try rows.finish()
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

  @Option(help: "How many bytes.")
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
    let path = URL(filePath: database.directory).appending(path: file)
      .path(percentEncoded: false)
    guard let handle = FileHandle(forReadingAtPath: path) else {
      throw CommandFailure(.notFound, "there is no file \(file) in \(database.directory)")
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

struct SnapshotsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "snapshots", abstract: "Says what keeps files that compaction has replaced.",
    discussion: """
      Snapshots belong to the process that took them, and no other can see who they are. What can \
      be seen from outside are files in the directory that the manifest names no more: somebody \
      reads them still, or the next opening removes them.
      """)

  @OptionGroup var database: DatabaseArgument
  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    let inspector = try inspector(database)
    let named = Set(
      try failing { () throws(EngineError) in try inspector.segments() }.map(\.file))
    let columns = ["file", "bytes", "reason"]
    var rows = RowWriter(globals, .report(schema: "snapshots/1", columns: columns))
    for file in try FileListing.files(in: database.directory)
    where file.name.hasSuffix(".seg") && !named.contains(file.name) {
      try rows.write([
        ("file", .string(file.name)), ("bytes", .integer(Int64(file.bytes))),
        ("reason", "the manifest does not name it: in use by a reader, or left by a crash"),
      ])
    }
    try rows.finish()
    globals.say("Who holds a snapshot is known only to the process that took it.")
  }
}
