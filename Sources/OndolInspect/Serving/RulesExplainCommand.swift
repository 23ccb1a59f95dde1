// `ondol rules explain`: what line of the rules allows or denies a request, with the values that it
// saw in the database.

import ArgumentParser
import Foundation
import Ondol
import OndolServer
import OndolTerminal

struct RulesExplainCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "explain", abstract: "What line allows or denies a request, and what it saw.",
    discussion: """
      Asks the rules that are in force, or those of --rules, about one document as it is stored:
        ondol rules explain shop.ondol --as ann update items/lamp --data '{"price": 30}'
      Prints the verdict, each rule that was asked, and the values of its expressions. Exit status \
      1 when the request is denied.
      """)

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "get, list, create, update or delete.")
  var method: String

  @Argument(help: "The document's path.")
  var path: String

  @Option(name: .customLong("as"), help: "The uid of the caller; nobody without it.")
  var user: String?

  @Option(help: "The claims of their token, as a JSON object.")
  var claims: String?

  @Option(help: "The document as it will be, as a JSON object.")
  var data: String?

  @Option(help: "The file with the rules instead of those in force.", completion: .file())
  var rules: String?

  @OptionGroup var globals: GlobalOptions

  func run(in database: Database) async throws {
    #if Server
      let place = try DocumentPath(path.hasPrefix("/") ? String(path.dropFirst()) : path)
      var request = ExplainedRequest(method, place, as: user)
      if let claims { request.claims = try DocumentText.fields(claims) }
      if let data { request.fields = try DocumentText.fields(data) }
      let file = try rules.map { try RulesArgument($0).parsed() }
      let (isAllowed, text) = try await request.explanation(in: database, file)
      Console.say(lines: text)
      if !isAllowed { throw CommandFailure(.failed, "") }
    #else
      throw RulesArgument.isOutOfReach
    #endif
  }
}
