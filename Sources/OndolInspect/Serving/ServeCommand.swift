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
      and one for each other port that is named, and serves until it is interrupted. Google's \
      clients that have this in their environment use the database as they use Firestore. With \
      --firebase DIR, the ports and the rules are those of DIR/firebase.json, and options here \
      replace them. Until rules are deployed, every program of this machine may read and write. \
      For callers from elsewhere, it wants an address to listen on, a certificate or a proxy, an \
      administrators' token, and rules.
      """)

  @OptionGroup var database: DatabaseArgument

  @Flag(
    help: "Databases by project and id, made when first used: in a folder, or in a server's tables."
  )
  var many = false

  @Option(
    help: "The folder of a Firebase project: its firebase.json has ports and rules.",
    completion: .directory)
  var firebase: String?

  @Option(
    name: .customLong("import"),
    help: "A folder that `firebase emulators:export` wrote, for a database that has no data.",
    completion: .directory)
  var export: String?

  @Option(help: "The port for Firestore's clients, 8080 if none is named; a free port for 0.")
  var portFirestore: Int?

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

  @Option(
    help: "The port for the console, with the server's page, in a browser; a free port for 0.")
  var console: Int?

  @Option(help: "Seconds that calls get to finish when it is interrupted.")
  var grace = 10.0

  @OptionGroup var access: AccessOptions
  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    let ports = [portFirestore, portDatabase, portMetrics, portAuth, portStorage, console]
    for port in ports.compactMap(\.self) where UInt16(exactly: port) == nil {
      throw ValidationError("ports are from 0 to 65535")
    }
    guard grace >= 0, grace <= 86_400 else {
      throw ValidationError("--grace is from 0 to 86400 seconds")
    }
    guard !many || firebase == nil && export == nil && console == nil else {
      throw ValidationError(
        "--firebase, --import and --console are for one database, and not for --many")
    }
  }

  #if Server
    func run() async throws {
      try await Interruption.whileWriting {
        do {
          many ? try await serveMany() : try await serveOne()
        } catch let error as DatabaseError {
          throw CommandFailure(error)
        } catch let fault as ProjectFault {
          throw CommandFailure(.failed, "\(fault)")
        }
      }
    }

    private func serveOne() async throws {
      let project = try self.project()
      let export = try export.map { try EmulatorExport(at: $0) }
      let (place, options) = (database.place, try Self.options)
      let isOnServer = database.isOnServer
      _ = try ServerAddress.store(place, creates: true)
      let opened = OpenedDatabase { () throws(DatabaseError) in
        guard isOnServer else { return try await Database.open(at: place, options: options) }
        return try await Self.open(onServer: place, options)
      }
      do {
        let served = try await opened.served()
        if let export { try await load(export, into: served.database) }
        try await access.deploy(to: served.database, behind: project?.rules)
        var beside: ServerConsole?
        if let console { beside = try await ServerConsole(served.database, console) }
        do {
          try await serve(SingleDatabase(opened), project, beside)
        } catch {
          await beside?.stop()
          throw error
        }
        await beside?.stop()
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
        try await serve(folder, nil, nil)
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

    /// The Firebase project that is served; nil for none.
    private func project() throws -> FirebaseProject? {
      guard let firebase else { return nil }
      let project = try FirebaseProject(at: firebase)
      if access.listen == nil { try project.checkIsLocal() }
      if !project.unserved.isEmpty {
        globals.say("not served: \(project.unserved.joined(separator: ", "))")
      }
      return project
    }

    private func load(_ export: EmulatorExport, into database: Database) async throws {
      let counts = try await globals.showing(.things("documents")) { bar in
        try await export.load(into: database) { counts in
          try Interruption.check()
          bar.show(counts.documents, note: counted(counts.objects, "object"))
        }
      }
      globals.say("imported: \(counts.summary)")
    }

    private func serve(
      _ directory: any DatabaseDirectory, _ project: FirebaseProject?, _ beside: ServerConsole?
    ) async throws {
      var options = Server.Options()
      try access.apply(to: &options)
      let usual = options.firestorePort
      options.firestorePort = portFirestore ?? project?.ports[.firestore] ?? usual
      options.databasePort = portDatabase ?? project?.ports[.database]
      options.metricsPort = portMetrics
      options.authPort = portAuth ?? project?.ports[.auth]
      options.storagePort = portStorage ?? project?.ports[.storage]
      accounts.apply(to: &options)
      options.project = options.project ?? project?.id
      options.grace = .seconds(grace)
      options.view = beside?.view
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
          if let beside { lines += "# console: \(beside.url)\n" }
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
