// `ondol info`: what a database consists of, from its collections down to its files. Counts read
// all rows; `--quick` omits them.

import ArgumentParser
import Foundation
import Ondol
import OndolEngine

struct InfoCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "info",
    abstract: "Prints the format, the collections with their counts, the indexes and the files.")

  @OptionGroup var database: DatabaseArgument
  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    let (contents, metrics) = try await database.withDatabase { database in
      (try await database.contents(), database.engine.metrics)
    }
    let end = database.isOnServer ? nil : try LogEnd(of: database.directory())
    // The current files, which may differ from those that were read above.
    let files = database.isOnServer ? [] : try FileListing.files(in: database.directory())
    if globals.chosenFormat == .table {
      try print(contents, metrics, files, end)
    } else {
      try globals.report("info/1", Self.object(contents, metrics, files, end))
    }
  }

  private static func object(
    _ contents: DatabaseContents, _ metrics: EngineMetrics, _ files: [FileListing],
    _ end: LogEnd?
  ) -> [Cell] {
    let collections = contents.collections.map { collection in
      Value.map([
        "collection": .string(collection.pattern),
        "documents": .number(collection.documents),
        "bytes": .number(collection.bytes),
        "ownKey": collection.ownKey.text,
        "indexes": .array(
          collection.indexes.map { index in
            .map([
              "index": .string(index.name), "entries": .number(index.entries),
              "bytes": .number(index.bytes), "isReady": .boolean(index.isReady),
            ])
          }),
      ])
    }
    let listed = files.map { file in
      Value.map(["file": .string(file.name), "bytes": .number(file.bytes)])
    }
    var cells: [Cell] = [
      ("format", .string(contents.format)), ("sequence", .number(contents.sequence)),
    ]
    // Only databases in files have these.
    if let end {
      cells += [
        ("lastCommit", end.lastCommit), ("isClosed", .boolean(end.isClosed)),
        ("shards", .number(contents.shards)),
        ("bytes", .number(files.reduce(0) { $0 + $1.bytes })),
        ("reclaimableBytes", .number(metrics.reclaimableBytes)),
        ("pinnedBytes", .number(metrics.pins.bytes)),
      ]
    }
    return cells + [("collections", .array(collections)), ("files", .array(listed))]
  }

  private func print(
    _ contents: DatabaseContents, _ metrics: EngineMetrics, _ files: [FileListing],
    _ end: LogEnd?
  ) throws {
    var output = Output(.table)
    try output.print("format       \(contents.format)")
    try output.print("sequence     \(contents.sequence)")
    if let end {
      let closed = end.isClosed ? "in good order" : "no: open, or it crashed"
      let total = files.reduce(0) { $0 + $1.bytes }
      let reclaimable = Int(clamping: metrics.reclaimableBytes)
      try output.print("last commit  \(ValueText.plain(end.lastCommit, globals.ejson))")
      try output.print("closed       \(closed)")
      try output.print("shards       \(contents.shards)")
      try output.print("bytes        \(ByteCount.text(total))")
      try output.print("reclaimable  \(ByteCount.text(reclaimable))")
    }

    let haveKeys = contents.collections.contains { $0.ownKey != nil }
    var collections = TextTable(
      columns: ["collection", "documents", "bytes"] + (haveKeys ? ["own key"] : []))
    collections.numericColumns = ["documents", "bytes"]
    var indexes = TextTable(columns: ["collection", "index", "entries", "bytes", "state"])
    indexes.numericColumns = ["entries", "bytes"]
    for collection in contents.collections {
      collections.add(
        [collection.pattern, "\(collection.documents)", "\(collection.bytes)"]
          + (haveKeys ? [collection.ownKey?.rawValue ?? ""] : []))
      for index in collection.indexes {
        indexes.add([
          collection.pattern, index.name, "\(index.entries)", "\(index.bytes)",
          index.isReady ? "ready" : "building",
        ])
      }
    }
    var listed = TextTable(columns: ["file", "bytes"])
    listed.numericColumns = ["bytes"]
    for file in files { listed.add([file.name, "\(file.bytes)"]) }
    for table in [collections, indexes, listed] where !table.isEmpty {
      try output.print("")
      for line in table.lines { try output.print(line) }
    }
    try output.flush()
  }
}

/// Where the newest log ends.
private struct LogEnd {
  /// The time of the last commit; null before the first.
  var lastCommit = Value.null
  /// Whether the database was closed after it, and no process has it open.
  var isClosed = false

  init(of directory: String) throws(CommandFailure) {
    let environment = try DatabaseKey.environment()
    do throws(EngineError) {
      let files = try FileInspector(at: directory, environment: environment)
      guard let log = try files.logs().last, let frame = try files.frames(ofLog: log).last else {
        return
      }
      isClosed = frame.kind == "seal"
      if frame.sequence > 0 { lastCommit = .moment(frame.time) }
    } catch {
      throw CommandFailure(error)
    }
  }
}

/// A file of a database in its directory.
struct FileListing {
  var name: String
  var bytes: Int

  /// The size of all files.
  static func bytes(in directory: String) throws(CommandFailure) -> Int {
    try files(in: directory).reduce(0) { $0 + $1.bytes }
  }

  /// All files, sorted by name.
  static func files(in directory: String) throws(CommandFailure) -> [FileListing] {
    do {
      let files = try FileManager.default.contentsOfDirectory(
        at: URL(filePath: directory), includingPropertiesForKeys: [.fileSizeKey])
      return try files.map { file in
        let size = try file.resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0
        return FileListing(name: file.lastPathComponent, bytes: size)
      }.sorted { $0.name < $1.name }
    } catch {
      throw CommandFailure(.failed, "cannot list the files: \(error.localizedDescription)")
    }
  }
}
