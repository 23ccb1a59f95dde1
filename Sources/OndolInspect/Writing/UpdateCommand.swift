// `ondol update`: the same change to every document of a collection that satisfies a condition.

import ArgumentParser
import Ondol
import OndolJSON
import OndolTerminal

struct UpdateCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "update",
    abstract: "Sets some fields of the documents that meet a condition.",
    discussion: """
      FIELDS is a JSON object whose names are paths of fields, such as size.width; - reads it from \
      standard input. Up to 500 documents are changed together or not at all; more in several \
      commits, and an interrupt ends it between two. Status 3 when there is no document.
      """)

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "A collection, such as upload.")
  var path: String

  @Argument(help: "The fields as a JSON object, or -.")
  var fields: String?

  @Option(help: "A field to remove; repeat it for several.")
  var delete: [String] = []

  @OptionGroup var selected: SelectedDocuments

  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard fields != nil || !delete.isEmpty else {
      throw ValidationError("say which fields to set, or --delete")
    }
  }

  var isWriting: Bool { !selected.dryRun }

  func run(in database: Database) async throws {
    let changes = try DocumentText.changes(fields, deleting: delete)
    let query = try selected.query(of: path, in: database)
    let count = try await selected.count(of: query)
    if selected.dryRun { return try await selected.report("update/1", query, globals) }
    try Confirmation.ask(
      "Change \(counted(count, "document")) of \(path)?", yes: selected.yes,
      otherwise: "nothing was changed")
    let changed = try await globals.showing(.things("documents"), of: Int64(count)) { bar in
      try await query.updateDocuments(changes) { bar.show($0.written) }
    }
    globals.say("Changed \(counted(changed, "document")).")
  }
}

/// The documents of a collection that are changed or removed together.
struct SelectedDocuments: ParsableArguments {
  @Option(name: .customLong("where"), help: "Conditions, such as 'price >= 10'.")
  var condition: String?

  @Option(help: "The largest number of documents.", transform: wholeNumber)
  var limit: Int?

  @Flag(help: "Print these documents, and change nothing.")
  var dryRun = false

  @Flag(help: "Do not ask.")
  var yes = false

  /// The query for them.
  func query(of path: String, in database: Database) throws -> Query {
    let all = database.collection(path).query
    let met = try condition.map { all.whereFilter(try QueryOptions.filter($0)) } ?? all
    return limit.map { met.limit(to: $0) } ?? met
  }

  /// Their number, at least one.
  func count(of query: Query) async throws -> Int {
    let count = try await query.count.getAggregation().count
    guard count > 0 || dryRun else {
      throw CommandFailure(.notFound, "no document meets the condition")
    }
    return count
  }

  /// Prints them.
  func report(_ schema: String, _ query: Query, _ globals: GlobalOptions) async throws {
    let documents = try await query.select([]).getDocuments().documents
    try globals.report(
      schema, ["document"], documents.map { [("document", .string($0.reference.path))] })
  }
}
