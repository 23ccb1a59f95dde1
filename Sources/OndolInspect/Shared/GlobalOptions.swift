// What every command understands besides its own words: how data is written, and how much is said.
// A command takes it as an option group and asks it for a `RowWriter`, so that formats mean the
// same everywhere.

import ArgumentParser
import Foundation

/// How data is written to standard output.
enum OutputFormat: String, ExpressibleByArgument, CaseIterable {
  /// Columns, for a person.
  case table
  /// One array, or one object where a command answers with one.
  case json
  /// One object a line.
  case jsonl
  /// RFC 4180, with a line of names in front.
  case csv
  /// Values without quotes, tabs between them.
  case raw
}

/// Which of the two ways to write values that JSON has no word for.
enum JSONStyle: String, ExpressibleByArgument, CaseIterable {
  /// Numbers and moments as a person writes them, where nothing is lost.
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
  @Option(help: "A table on a terminal and jsonl in a pipe when not given.")
  var format: OutputFormat?

  @Option(help: "How JSON says types: relaxed or canonical.")
  var ejson: JSONStyle = .relaxed

  @Option(help: "Colours: auto, always or never.")
  var color: ColorChoice = .auto

  @Flag(name: .shortAndLong, help: "No summary and no progress.")
  var quiet = false

  @Flag(name: .shortAndLong, help: "Say more on standard error.")
  var verbose = false

  @Flag(help: "No progress.")
  var noProgress = false

  /// The format that was asked for, or the one that fits who reads.
  var chosenFormat: OutputFormat { format ?? (Output.isTerminal ? .table : .jsonl) }

  /// Whether tables may be coloured.
  var usesColor: Bool {
    switch color {
    case .always: true
    case .never: false
    case .auto: Output.isTerminal && ProcessInfo.processInfo.environment["NO_COLOR"] == nil
    }
  }

  /// Whether a bar that moves is wanted.
  var showsProgress: Bool { !quiet && !noProgress && Output.messagesGoToTerminal }

  /// Says something to the person, unless they want quiet.
  func say(_ message: String) {
    if !quiet { Output.say(message) }
  }

  /// Says something that only who asks for more wants to hear.
  func explain(_ message: @autoclosure () -> String) {
    if verbose, !quiet { Output.say(message()) }
  }
}
