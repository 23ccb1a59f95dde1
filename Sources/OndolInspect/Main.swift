// `ondol`: inspects and fills a database from a shell. It is not part of the library: it uses the
// public interface like any other program. This file has the root of the command line and converts
// errors to exit statuses.

import ArgumentParser
import Foundation
import OndolEngine
import OndolJSON
import OndolTerminal

@main
struct Main: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ondol",
    abstract: "Looks into an Ondol database, and fills, checks and repairs it.",
    discussion: """
      ondol shop.ondol                             a shell inside the database
      ondol ls shop.ondol items                    a collection's documents
      ondol query shop.ondol items 'price < 50'    documents that meet a condition
      ondol check shop.ondol                       is everything whole?
      ondol new ../service                         a small service to start from

      Data goes to standard output, messages to standard error. Exit status: 0 done, 1 failed, \
      2 wrong usage, 3 not found, 4 damaged data, 5 open elsewhere, 6 written by a newer version, \
      7 read only, 8 recovered with loss, 9 conflict, 130 interrupted.
      """,
    version: """
      ondol 0.1.0
      library 0.1.0
      format \(FileFormat.version)
      """,
    groupedSubcommands: [
      CommandGroup(
        name: "Look",
        subcommands: [
          ShellCommand.self, ConsoleCommand.self, InfoCommand.self, CollectionsCommand.self,
          ListCommand.self, GetCommand.self, QueryCommand.self, SearchCommand.self,
          CountCommand.self, AggregateCommand.self, PipeCommand.self, SchemaCommand.self,
          IndexesCommand.self, TreeCommand.self,
          BlobCommand.self, StatisticsCommand.self,
        ]),
      CommandGroup(name: "Watch", subcommands: [WatchCommand.self, TailCommand.self]),
      CommandGroup(
        name: "Write",
        subcommands: [
          PutCommand.self, PatchCommand.self, EditCommand.self, UpdateCommand.self,
          RemoveCommand.self, MakeIndexCommand.self, MakeIndexesCommand.self,
          RemoveIndexCommand.self, ReindexCommand.self, MakeCollectionCommand.self,
          RemoveCollectionCommand.self,
        ]),
      CommandGroup(
        name: "Move data",
        subcommands: [
          ImportCommand.self, ExportCommand.self, DumpCommand.self, LoadCommand.self,
          DiffCommand.self, DigestCommand.self,
        ]),
      CommandGroup(
        name: "Keep safe",
        subcommands: [
          CheckCommand.self, BackupCommand.self, VerifyBackupCommand.self, RestoreCommand.self,
          RecoverCommand.self, RepairCommand.self, CompactCommand.self, EncryptCommand.self,
          DecryptCommand.self, RekeyCommand.self,
        ]),
      CommandGroup(
        name: "Serve",
        subcommands: [
          ServeCommand.self, SyncCommand.self, TokensCommand.self, RulesCommand.self,
          ServerCommand.self,
        ]),
      CommandGroup(name: "Start", subcommands: [NewCommand.self]),
      CommandGroup(
        name: "Look into the files",
        subcommands: [
          IndexCommand.self, LogCommand.self, SegmentCommand.self, ManifestCommand.self,
          HexdumpCommand.self, SnapshotsCommand.self,
        ]),
    ])

  static func main() async {
    Interruption.install()
    ToolLog.install()
    warnOfLittleMemory()
    var words = Array(CommandLine.arguments.dropFirst())
    if let first = words.first, isDirectory(first) || ServerAddress.isOne(first) {
      words.insert("shell", at: 0)
    }
    await run(words).endProcess()
  }

  /// With less address space, work on large databases may fail at any point. Threads and the data
  /// collected for a merge take most of it.
  private static let comfortableAddresses = 1 << 30

  private static func warnOfLittleMemory() {
    guard let limit = SystemMemory.addressLimit, limit < comfortableAddresses else { return }
    Console.say(
      "ondol: this process may have \(limit >> 20) MiB of addresses (ulimit -v): with less than "
        + "1,024 MiB it can end for lack of memory")
  }

  /// Whether the first word names a database and not a command.
  private static func isDirectory(_ word: String) -> Bool {
    guard !word.hasPrefix("-"), !commandNames.contains(word) else { return false }
    let values = try? URL(filePath: word).resourceValues(forKeys: [.isDirectoryKey])
    return values?.isDirectory == true
  }

  /// The names of all commands.
  static var commandNames: [String] { configuration.subcommands.map { $0._commandName } + ["help"] }

  /// The names of a command's subcommands; nil if it has none.
  static func subcommands(of name: String) -> [String]? {
    let command = configuration.subcommands.first { $0._commandName == name }
    guard let names = command?.configuration.subcommands.map({ $0._commandName }), !names.isEmpty
    else { return nil }
    return names
  }

  /// The long options of the command that the words begin with, taken from its help.
  static func options(of words: [String]) -> [String] {
    var command: any ParsableCommand.Type = Main.self
    for word in words {
      guard
        let next = command.configuration.subcommands.first(where: { $0._commandName == word })
      else { break }
      command = next
    }
    let help = helpMessage(for: command)
    let names = help.split { !($0.isLetter || $0.isNumber || $0 == "-") }
    return Set(names.filter { $0.hasPrefix("--") && $0.count > 2 }.map(String.init)).sorted()
  }

  /// Runs the command that the words name, reports errors, and returns the status.
  ///
  /// - Parameter adapt: adapts a command's help and usage errors to the place where the words are
  ///   typed.
  static func run(
    _ words: [String], adapt: (String) -> String = { $0 }
  ) async -> ExitStatus {
    do {
      try await Interruption.run {
        var command = try parseAsRoot(words)
        if var command = command as? any AsyncParsableCommand {
          try await command.run()
        } else {
          try command.run()
        }
      }
      return .succeeded
    } catch let failure as CommandFailure {
      failure.tell()
      return failure.status
    } catch {
      let isHelp = exitCode(for: error) == .success
      let message = adapt(fullMessage(for: error))
      if isHelp {
        try? Output.write(Data((message + "\n").utf8))
      } else {
        Console.say(lines: quoting(words, in: message))
      }
      return isHelp ? .succeeded : .usage
    }
  }

  /// A usage error with the words that it quotes in one line each, because the rest of a word with
  /// a line break would look like a line of the program's own.
  private static func quoting(_ words: [String], in message: String) -> String {
    let values = words.compactMap { word in
      word.firstIndex(of: "=").map { String(word[word.index(after: $0)...]) }
    }
    return (words + values).filter { $0.contains(where: \.isNewline) }
      .sorted { $0.count > $1.count }
      .reduce(message) { $0.replacing($1, with: VisibleText.line($1)) }
  }
}
