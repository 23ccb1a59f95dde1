// `ondol`: see into a database, and fill one, from a shell. On no path of the library: it uses the
// public interface as any program does. This file has the command line's root and turns errors into
// exit statuses.

import ArgumentParser

@main
struct Main: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ondol",
    abstract: "Sees into an Ondol database, and fills one.",
    discussion: """
      Data goes to standard output, messages to standard error. Exit status: 0 done, 1 failed, \
      2 wrong usage, 3 not found, 4 damaged data, 5 open elsewhere, 6 written by a newer version, \
      8 recovered with loss.
      """,
    version: "ondol 0.1.0",
    subcommands: [
      ImportCommand.self, ListCommand.self, GetCommand.self, InfoCommand.self, CheckCommand.self,
      BackupCommand.self, VerifyBackupCommand.self, RecoverCommand.self,
    ])

  static func main() async {
    do {
      var command = try parseAsRoot()
      if var command = command as? any AsyncParsableCommand {
        try await command.run()
      } else {
        try command.run()
      }
    } catch let failure as CommandFailure {
      Output.say("ondol: \(failure.message)")
      failure.status.endProcess()
    } catch {
      let isHelp = exitCode(for: error) == .success
      let message = fullMessage(for: error)
      if isHelp {
        print(message)
      } else {
        Output.say(message)
      }
      (isHelp ? ExitStatus.succeeded : .usage).endProcess()
    }
  }
}
