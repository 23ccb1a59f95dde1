// `ondol rm`: removes documents, one by its path or those of a collection that meet a condition.
// Many are removed a thousand at a time, so that an interrupt ends it between two commits.

import ArgumentParser
import Foundation
import Ondol
import OndolJSON

struct RemoveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rm",
    abstract: "Removes documents.",
    discussion: """
      PATH is a document, or a collection of which those go that meet the condition. More than one \
      document is asked for, or needs --yes. Status 3 when there is no document.
      """)

  private static let batchDocuments = 1_000

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "A document as upload/lamp, or a collection as upload.")
  var path: String

  @Option(name: .customLong("where"), help: "Conditions, as 'price >= 10'.")
  var condition: String?

  @Option(help: "At most so many documents.")
  var limit: Int?

  @Flag(help: "Also everything below the document.")
  var recursive = false

  @Option(help: "The document must have this version.")
  var ifVersion: UInt64?

  @Flag(help: "Print what would be removed, and remove nothing.")
  var dryRun = false

  @Flag(help: "Do not ask.")
  var yes = false

  @OptionGroup var globals: GlobalOptions

  private var isDocument: Bool {
    path.split(separator: "/").count.isMultiple(of: 2)
  }

  func validate() throws {
    guard limit ?? 0 >= 0 else { throw ValidationError("--limit must not be negative") }
    if isDocument, condition != nil || limit != nil {
      throw ValidationError("--where and --limit are for collections")
    }
    if !isDocument, recursive || ifVersion != nil {
      throw ValidationError("--recursive and --if-version are for one document")
    }
  }

  func run() async throws {
    if isDocument { return try await removeDocument() }
    try await Interruption.whileWriting {
      try await database.withDatabase(writing: !dryRun) { try await removeDocuments(of: $0) }
    }
  }

  private func removeDocument() async throws {
    try await database.withDatabase(writing: !dryRun) { database in
      let document = database.document(try DocumentPath(path))
      let old = try await document.getDocument()
      guard old.exists || recursive else {
        throw CommandFailure(.notFound, "there is no document at \(path)")
      }
      if dryRun {
        return try report([old])
      }
      if recursive { try confirm("\(path) and everything below it") }
      _ = try await document.delete(
        recursive: recursive, ifVersion: ifVersion.map { Version(rawValue: $0) })
    }
  }

  private func removeDocuments(of database: Database) async throws {
    let query = try self.query(database)
    let count = min(try await query.count.getAggregation().count, limit ?? .max)
    if dryRun {
      var rows = RowWriter(globals, .report(schema: "rm/1", columns: ["document"]))
      for document in try await query.limit(to: count).getDocuments().documents {
        try rows.write([Cell("document", .string(document.reference.path))])
      }
      return try rows.finish()
    }
    guard count > 0 else { throw CommandFailure(.notFound, "no document meets the condition") }
    try confirm("\(count) documents of \(path)")
    var removed = 0
    let bar = SharedProgressBar(.things("documents"), of: Int64(count), globals)
    while removed < count {
      try Interruption.check()
      let page = try await query.limit(to: min(Self.batchDocuments, count - removed))
        .getDocuments().documents
      if page.isEmpty { break }
      let batch = database.batch()
      for document in page { batch.deleteDocument(document.reference) }
      try await batch.commit()
      removed += page.count
      bar.show(Int64(removed))
    }
    bar.clear()
    globals.say("Removed \(removed) documents.")
  }

  private func query(_ database: Database) throws(CommandFailure) -> Query {
    let all = database.collection(path).query
    guard let condition else { return all }
    return all.whereFilter(
      try QueryOptions.read { () throws(WhereError) in try WhereExpression(condition) }.filter)
  }

  private func report(_ documents: [DocumentSnapshot]) throws(CommandFailure) {
    var rows = RowWriter(globals, .report(schema: "rm/1", columns: ["document"]))
    for document in documents {
      try rows.write([Cell("document", .string(document.reference.path))])
    }
    try rows.finish()
  }

  /// Asks the person, or wants `--yes` where there is none.
  private func confirm(_ what: String) throws(CommandFailure) {
    try Confirmation.ask("Remove \(what)?", yes: yes)
  }
}

/// Asks before something is destroyed.
enum Confirmation {
  static func ask(_ question: String, yes: Bool) throws(CommandFailure) {
    if yes { return }
    guard Output.messagesGoToTerminal else {
      throw CommandFailure(.usage, "\(question) Say --yes.")
    }
    Output.say("\(question) [y/N] ", terminator: "")
    guard let answer = readLine(), ["y", "yes"].contains(answer.lowercased()) else {
      throw CommandFailure(.failed, "nothing was removed")
    }
  }
}
