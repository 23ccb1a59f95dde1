// `ondol serve`: a database for Firestore's own clients. When it is ready, it prints its addresses
// as lines for a shell to read and a person to paste.

import ArgumentParser
import Foundation
import Ondol
import OndolServer
import OndolTerminal

struct ServeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve",
    abstract: "Serves the database to Firestore's own clients.",
    discussion: """
      Prints a line to paste into a shell, for instance
        export FIRESTORE_EMULATOR_HOST=127.0.0.1:8080
      and with --port-auth another for Firebase's clients for accounts, and serves until it is \
      interrupted. Google's clients that have this in their environment use the database as they \
      use Firestore. Until rules are deployed, every program of this machine may read and write. \
      For callers from elsewhere, it wants an address to listen on, a certificate or a proxy, an \
      administrators' token, and rules.
      """)

  @OptionGroup var database: DatabaseArgument

  @Flag(
    help: "Databases by project and id, made when first used: in a folder, or in a server's tables."
  )
  var many = false

  @Option(help: "The port for Firestore's clients; a free port for 0.")
  var portFirestore = 8080

  @Option(help: "The port for the Realtime Database's clients, such as 9000; a free port for 0.")
  var portDatabase: Int?

  @Option(help: "The port for Firebase's clients for accounts; a free port for 0.")
  var portAuth: Int?

  @Option(
    help: "The port for clients of Cloud Storage, such as 9199; a free port for 0.")
  var portStorage: Int?

  @OptionGroup var accounts: AccountsOptions

  @Option(help: "The port for Prometheus, which reads /metrics; a free port for 0.")
  var portMetrics: Int?

  @Option(help: "Seconds that calls get to finish when it is interrupted.")
  var grace = 10.0

  @OptionGroup var access: AccessOptions
  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    let ports =
      [portFirestore] + [portDatabase, portMetrics, portAuth, portStorage].compactMap(\.self)
    for port in ports where UInt16(exactly: port) == nil {
      throw ValidationError("ports are from 0 to 65535")
    }
    guard grace >= 0, grace <= 86_400 else {
      throw ValidationError("--grace is from 0 to 86400 seconds")
    }
  }

  #if Server
    func run() async throws {
      try await Interruption.whileWriting {
        do {
          many ? try await serveMany() : try await serveOne()
        } catch let error as DatabaseError {
          throw CommandFailure(error)
        }
      }
    }

    private func serveOne() async throws {
      let (place, options) = (database.place, try Self.options)
      let isOnServer = database.isOnServer
      _ = try ServerAddress.store(place, creates: true)
      let opened = OpenedDatabase { () throws(DatabaseError) in
        guard isOnServer else { return try await Database.open(at: place, options: options) }
        return try await Self.open(onServer: place, options)
      }
      do {
        let served = try await opened.served()
        try await access.deploy(to: served.database)
        try await serve(SingleDatabase(opened))
      } catch {
        try? await Self.finish { try await opened.close() }
        throw error
      }
      try await Self.finish { try await opened.close() }
    }

    private func serveMany() async throws {
      try access.refuseRules()
      let (place, options) = (database.place, try Self.options)
      // An error of the address is reported immediately.
      _ = try ServerAddress.store(place, creates: true)
      let folder = ManyDatabases {
        [isOnServer = database.isOnServer] (project, id) throws(DatabaseError) in
        guard isOnServer else {
          let path = try ManyDatabases.path(in: place, project: project, id: id)
          return try await Database.open(at: path, options: options)
        }
        return try await Self.open(
          onServer: ManyDatabases.address(at: place, project: project, id: id), options)
      }
      do {
        try await serve(folder)
      } catch {
        try? await Self.finish { try await folder.close() }
        throw error
      }
      try await Self.finish { try await folder.close() }
    }

    /// Opens a database in a server's tables, which has no key of its own.
    private static func open(
      onServer address: String, _ options: Database.Options
    ) async throws(DatabaseError) -> Database {
      guard let store = try? ServerAddress.store(address, creates: true) else {
        throw DatabaseError(.unavailable, "the server cannot be reached")
      }
      var options = options
      options.encryption = nil
      return try await Database.open(on: store, options: options)
    }

    /// Changes are kept, so that reconnecting clients receive the difference.
    private static var options: Database.Options {
      get throws(CommandFailure) {
        var options = Database.Options(encryption: try DatabaseKey.current())
        options.changeRetention = Database.ChangeRetention()
        return options
      }
    }

    private func serve(_ directory: any DatabaseDirectory) async throws {
      var options = Server.Options()
      try access.apply(to: &options)
      options.firestorePort = portFirestore
      options.databasePort = portDatabase
      options.metricsPort = portMetrics
      options.authPort = portAuth
      options.storagePort = portStorage
      accounts.apply(to: &options)
      options.grace = .seconds(grace)
      let server = Server(directory, options: options)
      // Service managers stop it with this signal.
      let termination = Interrupt(of: SIGTERM) { _ in server.shutDown() }
      defer { termination.end() }
      // The server ends by itself, so that running calls can finish.
      let running = Task {
        try await server.run { addresses in
          var lines = "export FIRESTORE_EMULATOR_HOST=\(addresses.firestore)\n"
          if let auth = addresses.auth { lines += "export FIREBASE_AUTH_EMULATOR_HOST=\(auth)\n" }
          if let database = addresses.database {
            lines += "export FIREBASE_DATABASE_EMULATOR_HOST=\(database)\n"
          }
          if let storage = addresses.storage {
            lines += "export STORAGE_EMULATOR_HOST=\(storage)\n"
          }
          if let metrics = addresses.metrics { lines += "# metrics: http://\(metrics)/metrics\n" }
          try? Output.write(Data(lines.utf8))
        }
      }
      try await withTaskCancellationHandler {
        try await running.value
      } onCancel: {
        server.shutDown()
      }
    }

    /// Performs the final work even though the command was interrupted.
    private static func finish(
      _ body: @escaping @Sendable () async throws -> Void
    ) async throws {
      try await Task { try await body() }.value
    }
  #else
    func run() async throws {
      throw CommandFailure(
        .failed, "this build of ondol does not serve; build it with --traits Server")
    }
  #endif
}
