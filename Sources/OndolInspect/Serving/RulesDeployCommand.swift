// `ondol rules deploy`: puts rules in force, in a database that nobody has open or on a server that
// runs.

import ArgumentParser
import Foundation
import Ondol
import OndolServer
import OndolTerminal

struct RulesDeployCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "deploy", abstract: "Puts rules in force.",
    discussion: """
      Checks the files first: if one has an error, nothing is deployed. Rules of kinds that no \
      file has stay as they are. The last ten deployments stay in the database's collection \
      serverRules.

      A server follows a deployment at once. It has its database's files locked, so name the server:
        ondol rules deploy http://127.0.0.1:8080/demo firestore.rules
        ondol rules deploy https://shop.example:8443/shop firestore.rules --admin-token-file token
      where demo and shop are projects; /shop/NAME is another database than (default).
      """)

  @Argument(
    help: "The database's directory, its address on PostgreSQL, or a server's address.",
    completion: .directory)
  var place: String

  @Argument(
    help: "firestore.rules, storage.rules, database.rules.json, or several.", completion: .file())
  var files: [String]

  @Option(help: "The file with the administrators' token of the server.", completion: .file())
  var adminTokenFile: String?

  @Option(
    help: "The file with the certificates to trust instead of the machine's, in PEM.",
    completion: .file())
  var certificates: String?

  @OptionGroup var globals: GlobalOptions

  #if Server
    func run() async throws {
      let texts = try RulesArgument.texts(files)
      do {
        let number = try await deploy(texts)
        globals.say(
          number.map { "deployment \($0) is in force" } ?? "these rules are in force already")
      } catch let error as DatabaseError {
        throw CommandFailure(error)
      }
    }

    private func deploy(_ texts: RulesTexts) async throws -> Int64? {
      if let server = try server() { return try await server.deploy(texts) }
      guard adminTokenFile == nil, certificates == nil else {
        throw CommandFailure(.failed, "a token and certificates are for a server's address")
      }
      return try await DatabaseArgument(at: place).withDatabase(writing: true) { database in
        try await ServerRules.deploy(texts, to: database)
      }
    }

    /// The server that the place names; nil for a database.
    private func server() throws -> RulesServer? {
      guard let url = URL(string: place), let scheme = url.scheme?.lowercased(),
        ["http", "https"].contains(scheme)
      else { return nil }
      let names = url.pathComponents.filter { $0 != "/" }
      guard let host = url.host(), let port = url.port, (1...2).contains(names.count) else {
        throw CommandFailure(
          .failed, "\(place) is not of the form http://HOST:PORT/PROJECT or …/PROJECT/DATABASE")
      }
      return RulesServer(
        host: host, port: port, project: names[0],
        database: names.count > 1 ? names[1] : "(default)",
        token: try adminTokenFile.map { try AdminTokenFile.read($0) } ?? "owner",
        isEncrypted: scheme == "https", certificates: certificates)
    }
  #else
    func run() async throws {
      throw RulesArgument.isOutOfReach
    }
  #endif
}
