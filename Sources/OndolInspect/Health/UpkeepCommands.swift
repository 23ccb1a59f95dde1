// `ondol repair` and `ondol compact`: repair a database, or make it smaller.

import ArgumentParser
import Foundation
import Ondol

struct RepairCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "repair", abstract: "Rebuilds indexes that disagree with their documents.",
    discussion: """
      Repairs in place only what can be made from sound documents. For everything else there are \
      restore and recover.
      """)

  @OptionGroup var database: DatabaseArgument

  @Flag(help: "Rebuild the indexes.")
  var rebuildIndex = false

  @Argument(help: "The collection; by default all that have indexes.")
  var collection: String?

  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard rebuildIndex else { throw ValidationError("say what to repair: --rebuild-index") }
  }

  var isWriting: Bool { true }

  func run(in database: Database) async throws {
    var rows: [[Cell]] = []
    try await globals.showing(.things("documents")) { bar in
      for entry in try await database.contents().collections
      where !entry.indexes.isEmpty && (collection == nil || entry.pattern == collection) {
        try Interruption.check()
        // Any ids can be used between the names, because an index belongs to all collections of a
        // pattern.
        let path = entry.pattern.split(separator: "/").joined(separator: "/any/")
        let built = try await database.rebuildIndexes(of: try CollectionPath(path), named: nil) {
          bar.show($0.documents)
        }
        rows += built.map { [("collection", .string(entry.pattern)), ("index", .string($0))] }
      }
    }
    try globals.report("repair/1", ["collection", "index"], rows)
  }
}

struct CompactCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "compact",
    abstract: "Merges files, so that deleted data takes no space.",
    discussion: "^C ends it between two steps and keeps the finished ones.")

  @OptionGroup var database: DatabaseArgument

  @Option(name: .customLong("max-mb-s"), help: "Merge at most this many megabytes a second.")
  var maxMBS: Double?

  @Option(help: "Only if it frees at least this share of the bytes, from 0 to 1.")
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
    let directory = try database.directory()
    let before = try FileListing.bytes(in: directory)
    try await database.withDatabase(writing: true) { database in
      let metrics = database.metrics
      guard
        Double(metrics.reclaimableBytes) >= targetRatio * Double(max(1, metrics.fileBytes))
      else { return }
      let bytesPerSecond = maxMBS.map { max(1, Int($0 * 1e6)) }
      try await globals.showing(.bytes) { bar in
        try await database.compact(bytesPerSecond: bytesPerSecond) { progress in
          bar.show(progress.completedBytes, of: progress.totalBytes)
        }
      }
    }
    let after = try FileListing.bytes(in: directory)
    try globals.report(
      "compact/1", [("bytesBefore", .number(before)), ("bytesAfter", .number(after))])
  }
}
