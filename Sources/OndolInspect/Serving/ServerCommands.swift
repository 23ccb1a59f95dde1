// `ondol server`: what an operator does on a server, as the owner of the tables there.

import ArgumentParser
import OndolEngine

#if Postgres
  import OndolPostgres
#endif

struct ServerCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "server",
    abstract: "Prepares a PostgreSQL server for databases.",
    discussion: """
      An app needs fewer rights on a server than it takes to make the tables there. These commands \
      are for the tables' owner; the app's role then gets by with those that prepare grants.
      """,
    subcommands: [ServerPrepareCommand.self, ServerUpgradeCommand.self])
}

struct ServerPrepareCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "prepare", abstract: "Makes the tables, and lets the app's role use them.",
    discussion: """
      Tables and functions are made in the schema that the search path of the address's user begins \
      with. What is there already stays. The role gets USAGE on the schema, SELECT, INSERT, UPDATE \
      and DELETE on the tables, and EXECUTE on the functions.
      """)

  @Argument(help: "The server's address, with the tables' owner as its user.")
  var address: String

  @Option(help: "The role that the app connects as; none is granted anything when not given.")
  var role: String?

  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    #if Postgres
      let isNew = try await ServerAddress.administrating(address) {
        (server) async throws(EngineError) in try await server.prepare(for: role)
      }
      globals.say(isNew ? "Made the tables." : "The tables are there.")
      if let role { globals.say("\(role) may use them.") }
    #else
      throw ServerAddress.isOutOfReach
    #endif
  }
}

struct ServerUpgradeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "upgrade", abstract: "Brings the tables of an older version up to date.",
    discussion: """
      Apps of the older version go on using them. Who could use the tables before can afterwards.
      """)

  @Argument(help: "The server's address, with the tables' owner as its user.")
  var address: String

  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    #if Postgres
      let isNew = try await ServerAddress.administrating(address) {
        (server) async throws(EngineError) in try await server.upgrade()
      }
      globals.say(isNew ? "Brought the tables up to date." : "The tables are up to date.")
    #else
      throw ServerAddress.isOutOfReach
    #endif
  }
}
