// `ondol repair`, `ondol compact` and `ondol restore`: what makes a database sound, small, or what
// it was.

import ArgumentParser
import Foundation
import Ondol

struct RepairCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "repair", abstract: "Builds indexes anew that disagree with their documents.",
    discussion: """
      Repairs in place only what can be made from sound documents. For everything else there are \
      restore and recover.
      """)

  @OptionGroup var database: DatabaseArgument

  @Flag(help: "Build indexes anew.")
  var rebuildIndex = false

  @Argument(help: "The collection; all that have indexes when not given.")
  var collection: String?

  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard rebuildIndex else { throw ValidationError("say what to repair: --rebuild-index") }
  }

  func run() async throws {
    try await database.withDatabase(writing: true) { database in
      let bar = SharedProgressBar(.things("documents"), globals)
      var rows = RowWriter(
        globals, .report(schema: "repair/1", columns: ["collection", "index"]))
      for entry in try await database.contents().collections
      where !entry.indexes.isEmpty && (collection == nil || entry.pattern == collection) {
        try Interruption.check()
        // Any ids will do between the names: an index belongs to all collections of a pattern.
        let path = entry.pattern.split(separator: "/").joined(separator: "/any/")
        let built = try await database.rebuildIndexes(of: try CollectionPath(path), named: nil) {
          bar.show(Int64($0.documents))
        }
        for name in built {
          try rows.write([("collection", .string(entry.pattern)), ("index", .string(name))])
        }
      }
      bar.clear()
      try rows.finish()
    }
  }
}

struct CompactCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "compact",
    abstract: "Merges files, so that what was deleted takes no space.",
    discussion: "^C ends it between two steps; what was merged by then stays so.")

  @OptionGroup var database: DatabaseArgument

  @Option(name: .customLong("max-mb-s"), help: "Merge so many megabytes a second at most.")
  var maxMBS: Double?

  @Option(help: "Only when at least this share of the bytes, from 0 to 1, would be given back.")
  var targetRatio = 0.0

  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    if let maxMBS, !(0.001...1e6).contains(maxMBS) {
      throw ValidationError("--max-mb-s must be from 0.001 to 1000000")
    }
    guard (0...1).contains(targetRatio) else {
      throw ValidationError("--target-ratio must be from 0 to 1")
    }
  }

  func run() async throws {
    func bytes() throws -> Int {
      try FileListing.files(in: database.directory).reduce(0) { $0 + $1.bytes }
    }
    guard FileManager.default.fileExists(atPath: database.directory) else {
      throw CommandFailure(.notFound, "there is no database at \(database.directory)")
    }
    let before = try bytes()
    try await database.withDatabase(writing: true) { database in
      let metrics = database.metrics
      guard
        Double(metrics.reclaimableBytes) >= targetRatio * Double(max(1, metrics.fileBytes))
      else { return }
      var bar: SharedProgressBar?
      let bytesPerSecond = maxMBS.map { max(1, Int($0 * 1e6)) }
      try await database.compact(bytesPerSecond: bytesPerSecond) { progress in
        let total = Int64(clamping: progress.totalBytes)
        bar = bar ?? SharedProgressBar(.bytes, of: total, globals)
        bar?.show(Int64(clamping: progress.completedBytes))
      }
      bar?.clear()
    }
    var rows = RowWriter(
      globals, .report(schema: "compact/1", columns: ["bytesBefore", "bytesAfter"]))
    try rows.write([
      ("bytesBefore", .integer(Int64(before))), ("bytesAfter", .integer(Int64(try bytes()))),
    ])
    try rows.finish()
  }
}

struct RestoreCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore", abstract: "Makes a database from a backup, checking every byte.",
    discussion: "A backup is a database, too: it can also be opened where it is.")

  @Argument(help: "The backup's directory.", completion: .directory)
  var backup: String

  @Argument(help: "A new or empty directory.")
  var target: String

  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    var source = DatabaseArgument()
    source.directory = backup
    try await source.withDatabase { database in
      var bar: SharedProgressBar?
      do throws(DatabaseError) {
        try await database.backup(to: target) { progress in
          let total = Int64(clamping: progress.totalBytes)
          bar = bar ?? SharedProgressBar(.bytes, of: total, globals)
          bar?.show(Int64(clamping: progress.completedBytes))
        }
      } catch {
        bar?.clear()
        guard error.code == .alreadyExists else { throw error }
        throw CommandFailure(.failed, error.message)
      }
      bar?.clear()
    }
  }
}
