// `ondol stats`: the numbers of a database, once or again and again, for people or for Prometheus.
// What only the process that writes can know, such as its listeners, is not among them.

import ArgumentParser
import Foundation
import Ondol
import OndolEngine

struct StatisticsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stats", abstract: "Prints sizes and counts, once or every so often.")

  @OptionGroup var database: DatabaseArgument

  @Option(help: "Again and again, so often: 500ms, 1s, 2m.")
  var watch: Interval?

  @Flag(help: "As Prometheus reads it.")
  var prom = false

  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    try await database.withDatabase { database in
      var globals = globals
      if watch != nil, globals.chosenFormat == .json { globals.format = .jsonl }
      var rows = RowWriter(
        globals, .report(schema: "stats/1", columns: Self.names(of: Self.numbers(database, 0))))
      while true {
        let files = try FileListing.files(in: self.database.directory)
        let numbers = Self.numbers(database, files.reduce(0) { $0 + $1.bytes })
        if prom {
          try Self.printMetrics(numbers)
        } else if globals.chosenFormat == .table {
          try printLines(numbers)
        } else {
          try rows.write(numbers.map { ($0.name, .integer($0.value)) })
          try rows.flush()
        }
        guard let watch else { break }
        try await Task.sleep(for: watch.duration)
        try await database.refresh()
      }
      if !prom, globals.chosenFormat != .table { try rows.finish() }
    }
  }

  private struct Number {
    var name: String
    var value: Int64
    var help: String
  }

  private static func names(of numbers: [Number]) -> [String] { numbers.map(\.name) }

  private static func numbers(_ database: Database, _ bytes: Int) -> [Number] {
    let engine = database.engine.metrics
    let metrics = database.metrics
    let levels = engine.shards.flatMap(\.levels)
    return [
      Number(
        name: "sequence", value: Int64(clamping: engine.sequence.rawValue),
        help: "Number of the newest commit"),
      Number(name: "directoryBytes", value: Int64(bytes), help: "Bytes of all files"),
      Number(
        name: "rowBytes", value: Int64(clamping: metrics.fileBytes),
        help: "Bytes of files of rows and large values"),
      Number(
        name: "memoryBytes", value: Int64(metrics.memoryBytes),
        help: "Bytes of rows that are in logs only"),
      Number(
        name: "reclaimableBytes", value: Int64(clamping: metrics.reclaimableBytes),
        help: "Bytes that compaction would free"),
      Number(
        name: "rows", value: Int64(clamping: levels.reduce(0) { $0 + $1.rows }),
        help: "Rows in files, deletions among them"),
      Number(
        name: "tombstones", value: Int64(clamping: levels.reduce(0) { $0 + $1.tombstones }),
        help: "Deletions in files"),
      Number(
        name: "segments", value: Int64(levels.reduce(0) { $0 + $1.segments }),
        help: "Files of rows"),
      Number(
        name: "runs", value: Int64(metrics.runs),
        help: "Sorted runs of the shard that has most"),
      Number(name: "shards", value: Int64(engine.shards.count), help: "Parts of the database"),
    ]
  }

  private func printLines(_ numbers: [Number]) throws(CommandFailure) {
    var output = Output()
    for number in numbers {
      let name = number.name.padding(toLength: 18, withPad: " ", startingAt: 0)
      let isBytes = number.name.hasSuffix("Bytes")
      let text = isBytes ? ByteCount.text(Int(number.value)) : "\(number.value)"
      try output.print("\(name)\(text)")
    }
    if watch != nil { try output.print("") }
    try output.flush()
  }

  private static func printMetrics(_ numbers: [Number]) throws(CommandFailure) {
    var output = Output()
    for number in numbers {
      let name = "ondol_" + snakeCase(number.name)
      try output.print("# HELP \(name) \(number.help)")
      try output.print("# TYPE \(name) gauge")
      try output.print("\(name) \(number.value)")
    }
    try output.flush()
  }

  private static func snakeCase(_ name: String) -> String {
    name.reduce(into: "") { text, character in
      if character.isUppercase { text += "_" }
      text += character.lowercased()
    }
  }
}

/// A time on a command line: a number and a unit.
struct Interval: ExpressibleByArgument {
  let duration: Duration

  init?(argument: String) {
    let digits = argument.prefix { $0.isNumber || $0 == "." }
    guard let number = Double(digits), number > 0, number < 1e6 else { return nil }
    switch argument.dropFirst(digits.count) {
    case "ms": duration = .milliseconds(number)
    case "s", "": duration = .seconds(number)
    case "m", "min": duration = .seconds(number * 60)
    default: return nil
    }
  }
}
