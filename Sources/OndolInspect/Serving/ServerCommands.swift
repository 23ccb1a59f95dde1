// `ondol server`: an operator's tasks on a server, as the owner of its tables.

import ArgumentParser
import Ondol
import OndolEngine

#if Postgres
  import OndolPostgres
#endif

struct ServerCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "server",
    abstract: "Prepares a PostgreSQL server, and lists and removes what is on it.",
    discussion: """
      An app needs fewer rights on a server than it takes to make the tables there. These commands \
      are for the tables' owner; the app's role then gets by with those that prepare grants.
      """,
    subcommands: [
      ServerPrepareCommand.self, ServerUpgradeCommand.self, ServerListCommand.self,
      ServerRemoveCommand.self,
    ])
}

struct ServerPrepareCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "prepare", abstract: "Makes the tables, and lets the app's role use them.",
    discussion: """
      Tables and functions are made in the schema that the search path of the address's user \
      begins with. What is there already stays. The role gets USAGE on the schema, SELECT, \
      INSERT, UPDATE and DELETE on the tables, and EXECUTE on the functions.
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

struct ServerListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "Lists the databases that share a server's tables.",
    discussion: """
      Of each its newest commit and when that was made, how many processes have it open, and \
      whether a load into it has not come to its end.
      """)

  @Argument(help: "The server's address.")
  var address: String

  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    #if Postgres
      let databases = try await ServerAddress.administrating(address) {
        (server) async throws(EngineError) in try await server.list()
      }
      let rows = databases.map { database -> [Cell] in
        let time = database.time.flatMap { try? Timestamp(microsecondsSince1970: $0) }
        return [
          ("name", .string(database.name)),
          ("version", .integer(Int64(clamping: database.version))),
          ("time", time.map { .timestamp($0) } ?? .null),
          ("processes", .integer(Int64(database.processes))),
          ("unfinished", .boolean(database.isUnfinished)),
        ]
      }
      try globals.report(
        "server/1", ["name", "version", "time", "processes", "unfinished"], rows)
    #else
      throw ServerAddress.isOutOfReach
    #endif
  }
}

struct ServerRemoveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove", abstract: "Removes a database from a server, and all that is in it.",
    discussion: """
      It is refused while a process has the database open, or was killed with it less than ten \
      minutes ago. Also what a load has left that was killed goes so. On a terminal it asks first; \
      elsewhere it needs --yes.
      """)

  @Argument(help: "The database's address; `default` without ondol= in it.")
  var address: String

  @Flag(help: "Do not ask.")
  var yes = false

  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    #if Postgres
      let name = ServerAddress.name(of: address)
      try Confirmation.ask(
        "Remove \(name) and everything in it?", yes: yes, otherwise: "nothing was removed")
      try await ServerAddress.administrating(address) { (server) async throws(EngineError) in
        try await server.remove()
      }
      globals.say("Removed \(name).")
    #else
      throw ServerAddress.isOutOfReach
    #endif
  }
}
