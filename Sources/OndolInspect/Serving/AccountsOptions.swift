// How `ondol serve` serves accounts, and `ondol tokens`, which replaces the key that signs their
// tokens.

import ArgumentParser
import Foundation
import Ondol
import OndolAccounts
import OndolServer
import OndolTerminal

/// Options of accounts.
struct AccountsOptions: ParsableArguments {
  @Option(
    help: "The project of requests for accounts that name none; otherwise the API key is its name.")
  var project: String?

  @Flag(
    help: "Takes tokens that nobody has signed, as Firebase's emulators do: for tests alone.")
  var insecureEmulator = false

  #if Server
    func apply(to options: inout Server.Options) {
      options.project = project
      options.acceptsUnsignedTokens = insecureEmulator
      // The program sends no mail. It prints the links at its terminal.
      options.sendMail = { mail in
        Console.say("\(mail.operation) for \(mail.address): \(mail.link)")
      }
    }
  #endif
}

struct TokensCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "tokens",
    abstract: "Replaces the key that signs the tokens of accounts.",
    subcommands: [TokensRotateCommand.self])
}

struct TokensRotateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rotate", abstract: "Makes a new key; tokens of the old one stay valid.",
    discussion: """
      The new key signs from now on. The old one stays published until its last token has ended: \
      two weeks later. Prints the new key's id. Status 3 when there is no database.
      """)

  @OptionGroup var database: DatabaseArgument
  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    #if Server
      if !database.isOnServer { _ = try database.directory() }
      let id = try await database.withDatabase(writing: true) { try await TokenKeys.rotate(in: $0) }
      try Output.write(Data("\(id)\n".utf8))
    #else
      throw CommandFailure(
        .failed, "this build of ondol has no tokens; build it with --traits Server")
    #endif
  }
}
