// `ondol DIR`: a shell on one database. Every command of the program works in it without naming the
// database. Commands that begin with a dot belong to the shell. On a terminal, lines can be edited
// and names are completed. Over a pipe, lines are read as they arrive, so that a script can be the
// input.

import ArgumentParser
import Foundation
import Ondol
import OndolTerminal

struct ShellCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "shell", abstract: "Opens a shell on a database; ondol DIR does the same.",
    discussion: "Commands that write need --write. Over a pipe, the status is that of the last "
      + "command that failed.")

  @OptionGroup var database: DatabaseArgument

  @Flag(help: "Also run commands that write.")
  var write = false

  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    if !database.isOnServer { _ = try database.directory() }
    Interruption.enterShell()
    ShellSession.begin(at: database.place, mayWrite: write)
    var shell = Shell(at: database.place, format: globals.format)
    let status = try await shell.runInput(isTerminal: Terminal.isInput)
    try await ShellSession.release()
    guard status == .succeeded else { throw CommandFailure(status, "") }
  }
}

/// The shell's state between two lines.
struct Shell {
  let place: String
  var format: OutputFormat?
  private var limit: Int?
  private var isTimed = false
  private var explains = false
  private var isOver = false
  private var depth = 0
  /// The status of the last command that failed.
  private var status = ExitStatus.succeeded

  init(at place: String, format: OutputFormat?) {
    self.place = place
    self.format = format
  }

  /// Runs lines from standard input until there are no more.
  mutating func runInput(isTerminal: Bool) async throws -> ExitStatus {
    guard isTerminal else {
      while !isOver, let line = readLine() { await run(line) }
      return status
    }
    let completer = Completer(place: place)
    var editor = LineEditor(history: History.file)
    while !isOver {
      guard let line = await editor.readLine(prompt: "ondol> ", complete: completer.candidates)
      else { break }
      await run(line)
    }
    // A person has seen the failures.
    return .succeeded
  }

  private mutating func run(_ line: String) async {
    let words: [String]
    do throws(CommandFailure) {
      words = try ShellWords.split(line)
    } catch {
      return fail(error)
    }
    guard let first = words.first, !first.hasPrefix("#") else { return }
    if first.hasPrefix(".") {
      do {
        try await runOwn(first, Array(words.dropFirst()))
      } catch let failure as CommandFailure {
        fail(failure)
      } catch {
        fail(CommandFailure(.failed, "\(error)"))
      }
      return
    }
    guard first.hasPrefix("-") || Main.commandNames.contains(first) else {
      return fail(
        CommandFailure(.usage, "there is no command \"\(first)\"; help and .help list them"))
    }
    let start = ContinuousClock.now
    let result = await Main.run(completed(words), adapt: ShellHelp.adapted)
    Interruption.clear()
    if result != .succeeded { status = result }
    if isTimed {
      let milliseconds = start.duration(to: .now) / .milliseconds(1)
      Console.say("\((milliseconds * 10).rounded() / 10) ms")
    }
  }

  private mutating func fail(_ failure: CommandFailure) {
    failure.tell()
    status = failure.status
  }

  /// The words with the database and the shell's settings inserted after the command's name.
  func completed(_ words: [String]) -> [String] {
    let isGroup = Main.subcommands(of: words[0]) != nil
    let nameCount = min(words.count, isGroup ? 2 : 1)
    let name = words.prefix(nameCount)
    var settings: [String] = []
    func add(_ option: String, _ value: String?) {
      guard let value, !words.contains(option) else { return }
      settings += [option, value]
    }
    if !words.contains("--help"), !words.contains("-h"), words[0] != "help" {
      add("--format", format?.rawValue)
      if ["ls", "query"].contains(words[0]) { add("--limit", limit.map(String.init)) }
      if words[0] == "query", explains { settings.append("--explain") }
      return Array(name) + [place] + settings + words.dropFirst(nameCount)
    }
    return words
  }

  // MARK: - The shell's own commands

  private static let help = """
    Any command of ondol, without the database's name: ls items, query items 'n > 5', help.
    .mode table|json|jsonl|csv|raw|auto   how data is written
    .limit N|off                          at most N documents from ls and query
    .timer on|off                         say how long a command took
    .explain on|off                       say how queries find documents, instead of the documents
    .output FILE|off                      write data there
    .read FILE                            run the lines of a file
    .snapshot on|off                      stay at what is there now, whatever is written meanwhile
    .help                                 this
    .quit                                 the end
    """

  private mutating func runOwn(_ name: String, _ words: [String]) async throws {
    switch (name, words.first) {
    case (".quit", nil), (".exit", nil): isOver = true
    case (".help", nil): try Output.write(Data((Self.help + "\n").utf8))
    case (".mode", "auto"): format = nil
    case (".mode", let word?):
      guard let mode = OutputFormat(rawValue: word), OutputFormat.common.contains(mode) else {
        throw CommandFailure(.usage, ".mode table, json, jsonl, csv, raw or auto")
      }
      format = mode
    case (".limit", "off"): limit = nil
    case (".limit", let word?):
      guard let number = Int(word), number >= 0 else {
        throw CommandFailure(.usage, ".limit N or off")
      }
      limit = number
    case (".timer", let word?): isTimed = try Self.isOn(word)
    case (".explain", let word?): explains = try Self.isOn(word)
    case (".output", "off"): try Output.redirect(to: nil)
    case (".output", let file?): try Output.redirect(to: file)
    case (".snapshot", let word?):
      try await Self.isOn(word) ? ShellSession.hold() : ShellSession.release()
    case (".read", let file?): try await read(file)
    default: throw CommandFailure(.usage, "\(name) is no command, or lacks a word; .help lists all")
    }
  }

  private static func isOn(_ word: String) throws(CommandFailure) -> Bool {
    switch word {
    case "on": return true
    case "off": return false
    default: throw CommandFailure(.usage, "say on or off")
    }
  }

  private mutating func read(_ file: String) async throws {
    guard depth < 8 else { throw CommandFailure(.failed, "files are nested too deep") }
    guard let data = FileManager.default.contents(atPath: file) else {
      throw CommandFailure(.failed, "cannot read \(file)")
    }
    depth += 1
    defer { depth -= 1 }
    for line in String(decoding: data, as: UTF8.self).split(whereSeparator: \.isNewline) {
      if isOver || status == .interrupted { return }
      await run(String(line))
    }
  }
}
