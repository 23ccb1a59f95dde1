// The options that every command has in addition to its own: the output format and the amount of
// messages. A command includes them as an option group and requests a `RowWriter` from them, so
// that formats mean the same everywhere.

import ArgumentParser
import Foundation
import OndolTerminal

/// How data is written to standard output.
enum OutputFormat: String, ExpressibleByArgument, CaseIterable {
  /// Columns, for a person.
  case table
  /// One array, or one object if a command returns a single one.
  case json
  /// One object per line.
  case jsonl
  /// RFC 4180, starting with a line of names.
  case csv
  /// Values without quotes, separated by tabs.
  case raw
  /// Features with their geometries; only for `export`.
  case geojson

  /// The formats of every command.
  static let common = allCases.filter { $0 != .geojson }
}

/// The two ways to write values that JSON has no type for.
enum JSONStyle: String, ExpressibleByArgument, CaseIterable {
  /// Numbers and times as a person writes them, if nothing is lost.
  case relaxed
  /// Every value with its type.
  case canonical
}

/// Whether a terminal's colours are used.
enum ColorChoice: String, ExpressibleByArgument, CaseIterable {
  case auto, always, never
}

/// The options of every command.
struct GlobalOptions: ParsableArguments {
  @Option(help: "By default a table on a terminal and jsonl in a pipe.")
  var format: OutputFormat?

  @Option(help: "How JSON shows types: relaxed or canonical.")
  var ejson: JSONStyle = .relaxed

  @Option(help: "Colours: auto, always or never.")
  var color: ColorChoice = .auto

  @Flag(name: .shortAndLong, help: "Print no summary and no progress.")
  var quiet = false

  @Flag(name: .shortAndLong, help: "Print more on standard error.")
  var verbose = false

  @Flag(help: "No progress.")
  var noProgress = false

  @Option(
    help: "The file with the 32 bytes of an encrypted database's key.", completion: .file())
  var keyFile: String?

  @Option(
    help: "The file whose first line is an encrypted database's passphrase.", completion: .file())
  var passphraseFile: String?

  mutating func validate() throws {
    guard keyFile == nil || passphraseFile == nil else {
      throw ValidationError("--key-file and --passphrase-file exclude each other")
    }
    if let keyFile { try DatabaseKey.read(keyFile) }
    if let passphraseFile { try DatabaseKey.readPassphrase(passphraseFile) }
  }

  /// The requested format, or the one that suits the reader.
  var chosenFormat: OutputFormat { format ?? (Output.isTerminal ? .table : .jsonl) }

  /// Whether tables may be coloured.
  var usesColor: Bool {
    switch color {
    case .always: true
    case .never: false
    case .auto: Output.isTerminal && ProcessInfo.processInfo.environment["NO_COLOR"] == nil
    }
  }

  /// Whether to show a moving progress bar.
  var showsProgress: Bool { !quiet && !noProgress && Console.isTerminal }

  /// Writes a report: objects of one shape, "<command>/<version>", with these columns.
  ///
  /// Not inlined: the optimiser of Swift 6.3.1 crashes on its inlined form in callers.
  @inline(never)
  func report(
    _ schema: String, _ columns: [String], _ write: (inout RowWriter) async throws -> Void
  ) async throws {
    var rows = RowWriter(self, .report(schema: schema, columns: columns))
    try await write(&rows)
    try rows.finish()
  }

  /// Writes a report whose rows are known.
  func report(
    _ schema: String, _ columns: [String], _ rows: [[Cell]]
  ) throws(CommandFailure) {
    var writer = RowWriter(self, .report(schema: schema, columns: columns))
    for row in rows { try writer.write(row) }
    try writer.finish()
  }

  /// Writes a report of one row, whose names are the columns.
  func report(_ schema: String, _ row: [Cell]) throws(CommandFailure) {
    try report(schema, row.map(\.name), [row])
  }

  /// These options for a command whose events arrive one at a time. A table or an array would show
  /// nothing before the end.
  var forEvents: GlobalOptions { written(as: .jsonl, insteadOf: [.table, .json]) }

  /// These options with another format instead of certain formats.
  func written(as format: OutputFormat, insteadOf others: [OutputFormat]) -> GlobalOptions {
    var options = self
    if others.contains(chosenFormat) { options.format = format }
    return options
  }

  /// These options for output that is a line of plain text unless a format was requested.
  var forPlainText: GlobalOptions {
    var options = self
    options.format = format ?? .raw
    return options
  }

  /// Runs `body` with a progress bar, which disappears at the end.
  func showing<Result, Failure: Error>(
    _ unit: ProgressBar.Unit, of total: Int64? = nil,
    _ body: (SharedProgressBar) async throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    let bar = SharedProgressBar(unit, of: total, self)
    defer { bar.clear() }
    return try await body(bar)
  }

  /// Prints a message for the person, except with --quiet.
  func say(_ message: String) {
    if !quiet { Console.say(message) }
  }

  /// Prints a message of several lines for the person, except with --quiet.
  func say(lines: String) {
    if !quiet { Console.say(lines: lines) }
  }

  /// Prints a message only if more details were requested.
  func explain(_ message: @autoclosure () -> String) {
    if verbose, !quiet { Console.say(message()) }
  }
}
