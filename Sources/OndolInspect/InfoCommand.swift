// `ondol info`: what a database is made of, from its collections down to its files.

import ArgumentParser
import Foundation
import Ondol

struct InfoCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "info",
    abstract: "Prints the format, the collections with their counts, the indexes and the files.")

  @OptionGroup var database: DatabaseArgument

  func run() async throws {
    let contents = try await database.withDatabase { try await $0.contents() }
    var output = Output()
    try output.print("format    \(contents.format)")
    try output.print("sequence  \(contents.sequence)")
    try output.print("shards    \(contents.shards)")

    var collections = TextTable(columns: ["collection", "documents", "bytes"])
    collections.numericColumns = ["documents", "bytes"]
    var indexes = TextTable(columns: ["collection", "index", "entries", "bytes", "state"])
    indexes.numericColumns = ["entries", "bytes"]
    for collection in contents.collections {
      collections.add([
        collection.pattern, "\(collection.documents)", "\(collection.bytes)",
      ])
      for index in collection.indexes {
        indexes.add([
          collection.pattern, index.name, "\(index.entries)", "\(index.bytes)",
          index.isReady ? "ready" : "building",
        ])
      }
    }
    // As the files are by now, which may be more or less than what was read above.
    var files = TextTable(columns: ["file", "bytes"])
    files.numericColumns = ["bytes"]
    for (name, bytes) in try filesWithSizes() {
      files.add([name, "\(bytes)"])
    }
    for table in [collections, indexes, files] where !table.isEmpty {
      try output.print("")
      for line in table.lines { try output.print(line) }
    }
    try output.flush()
  }

  private func filesWithSizes() throws(CommandFailure) -> [(name: String, bytes: Int)] {
    do {
      let directory = URL(filePath: database.directory)
      let files = try FileManager.default.contentsOfDirectory(
        at: directory, includingPropertiesForKeys: [.fileSizeKey])
      return try files.map { file in
        (file.lastPathComponent, try file.resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0)
      }.sorted { $0.0 < $1.0 }
    } catch {
      throw CommandFailure(.failed, "cannot list the files: \(error.localizedDescription)")
    }
  }
}
