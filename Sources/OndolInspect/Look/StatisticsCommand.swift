// `ondol stats`: the statistics of a database, once or repeatedly, for people or for Prometheus. It
// does not include statistics that only the writing process has, such as its listeners.

import ArgumentParser
import Foundation
import Ondol
import OndolEngine

struct StatisticsCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "stats", abstract: "Prints sizes and counts, once or repeatedly.")

  @OptionGroup var database: DatabaseArgument

  @Option(help: "Repeat at this interval: 500ms, 1s, 2m.")
  var watch: Interval?

  @Flag(help: "Print them in Prometheus's text format.")
  var prom = false

  @OptionGroup var globals: GlobalOptions

  func run(in database: Database) async throws {
    let globals = watch == nil ? globals : globals.written(as: .jsonl, insteadOf: [.json])
    var rows = RowWriter(
      globals, .report(schema: "stats/1", columns: Self.numbers(database, 0).map(\.name)))
    while true {
      let numbers = Self.numbers(database, try bytes(of: database))
      if prom {
        try Self.printMetrics(numbers)
      } else if globals.chosenFormat == .table {
        try printLines(numbers)
      } else {
        try rows.write(numbers.map { ($0.name, .number($0.value)) })
        try rows.flush()
      }
      guard let watch else { break }
      try await Task.sleep(for: watch.duration)
      try await database.refresh()
    }
    if !prom, globals.chosenFormat != .table { try rows.finish() }
  }

  /// The size of all files; 0 for a database on a server.
  private func bytes(of database: Database) throws(CommandFailure) -> Int {
    database.isOnStore ? 0 : try FileListing.bytes(in: self.database.directory())
  }

  private struct Number {
    var name: String
    var value: Int
    var help: String

    init(_ name: String, _ value: some BinaryInteger, _ help: String) {
      self.name = name
      self.value = Int(clamping: value)
      self.help = help
    }
  }

  private static func numbers(_ database: Database, _ bytes: Int) -> [Number] {
    let engine = database.engine.metrics
    let metrics = database.metrics
    let levels = engine.shards.flatMap(\.levels)
    return [
      Number("sequence", engine.sequence.rawValue, "Number of the newest commit"),
      Number("directoryBytes", bytes, "Bytes of all files"),
      Number("rowBytes", metrics.fileBytes, "Bytes of files of rows and large values"),
      Number("memoryBytes", metrics.memoryBytes, "Bytes of rows that are in logs only"),
      Number("reclaimableBytes", metrics.reclaimableBytes, "Bytes that compaction would free"),
      Number("rows", levels.reduce(0) { $0 + $1.rows }, "Rows in files, including deletions"),
      Number("tombstones", levels.reduce(0) { $0 + $1.tombstones }, "Deletions in files"),
      Number("segments", levels.reduce(0) { $0 + $1.segments }, "Files of rows"),
      Number("runs", metrics.runs, "Sorted runs of the shard that has the most"),
      Number("shards", engine.shards.count, "Parts of the database"),
    ]
  }

  private func printLines(_ numbers: [Number]) throws(CommandFailure) {
    var output = Output(.table)
    for number in numbers {
      let name = number.name.padding(toLength: 18, withPad: " ", startingAt: 0)
      let isBytes = number.name.hasSuffix("Bytes")
      let text = isBytes ? ByteCount.text(number.value) : "\(number.value)"
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
