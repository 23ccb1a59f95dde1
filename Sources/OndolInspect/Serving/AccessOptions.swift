// How `ondol serve` decides who may do what: where callers are, how connections are protected, and
// the rules.

import ArgumentParser
import Foundation
import Ondol
import OndolServer
import OndolTerminal

struct AccessOptions: ParsableArguments {
  @Option(help: "The address to listen on, 127.0.0.1 if none is named.")
  var listen: String?

  @Option(
    help: "The file with the server's certificate and those that sign it, in PEM.",
    completion: .file())
  var tlsCert: String?

  @Option(help: "The file with the certificate's private key, in PEM.", completion: .file())
  var tlsKey: String?

  @Flag(help: "A proxy encrypts connections and passes them on.")
  var behindProxy = false

  @Option(
    help: "A file with rules to deploy at the start, if they are not in force; may be repeated.",
    completion: .file())
  var rules: [String] = []

  @Flag(help: "Refuses lists that their query does not prove to be allowed, as Firestore does.")
  var strict = false

  @Flag(help: "Callers without credentials are administrators, on this machine only.")
  var open = false

  @Option(
    help:
      "The file with the administrators' token. Without it, only `owner` of this machine is one.",
    completion: .file())
  var adminTokenFile: String?

  @Option(
    help: ArgumentHelp(
      "A limit for callers, such as calls-of-address=6000; may be repeated.",
      discussion: """
        Also default=on, which is so with --listen and --behind-proxy, or default=off, and \
        NAME=off for one of them. The names: calls-of-address, calls-of-account, bytes-of-address, \
        bytes-of-account, sign-ins-of-address (each a minute), connections, \
        connections-of-address (each port), request-bytes, and within 15 minutes \
        wrong-passwords-of-address, guests-of-address and wrong-passwords (of one account).
        """, valueName: "name=n"))
  var limit: [String] = []

  @Option(
    help: "A file to which sign-ins, denials and administrators' changes are appended, as JSON.",
    completion: .file())
  var auditLog: String?

  func validate() throws {
    guard (tlsCert == nil) == (tlsKey == nil) else {
      throw ValidationError("--tls-cert and --tls-key go together")
    }
  }

  #if Server
    func apply(to options: inout Server.Options) throws {
      if let listen { options.host = listen == "localhost" ? "127.0.0.1" : listen }
      if let tlsCert, let tlsKey {
        options.certificate = Server.Certificate(chain: tlsCert, privateKey: tlsKey)
      }
      options.isBehindProxy = behindProxy
      options.isStrict = strict
      options.isOpen = open
      options.adminToken = try adminTokenFile.map { try AdminTokenFile.read($0) }
      do throws(DatabaseError) {
        try LimitArguments(limit).apply(to: &options)
        options.audit = try auditLog.map { path throws(DatabaseError) in
          try AuditFile(path).record
        }
      } catch {
        throw CommandFailure(error)
      }
    }

    /// Deploys the rules that were named, and of a project's those that they do not replace.
    func deploy(to database: Database, behind project: RulesTexts?) async throws {
      let texts = try RulesArgument.texts(rules).replacing(project ?? RulesTexts())
      guard texts != RulesTexts() else { return }
      _ = try await ServerRules.deploy(texts, to: database)
    }

    /// Many databases have rules of their own.
    func refuseRules() throws(CommandFailure) {
      guard rules.isEmpty else {
        throw CommandFailure(
          .failed, "each of many databases has its own rules; deploy them with `ondol rules deploy`"
        )
      }
    }
  #endif
}
