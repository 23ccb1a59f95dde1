// `ondol get`: one document's fields as JSON; status 3 tells a script that there is none.

import ArgumentParser
import Ondol
import OndolJSON

struct GetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "get", abstract: "Prints one document's fields as JSON.")

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The document's path, as upload/lamp.")
  var path: String

  func run() async throws {
    try await database.withDatabase { database in
      let document = try await database.document(DocumentPath(path)).getDocument()
      guard document.exists else {
        throw CommandFailure(.notFound, "there is no document at \(path)")
      }
      var output = Output()
      try output.print(JSONWriter.line(.map(document.data())))
      try output.flush()
    }
  }
}
