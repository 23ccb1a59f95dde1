// `ondol rm`: removes documents, one by its path or those of a collection that meet a condition.
// Many are removed a thousand at a time, so that an interrupt ends it between two commits.

import ArgumentParser
import Foundation
import Ondol
import OndolTerminal
import OndolJSON

struct RemoveCommand: DatabaseCommand {
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

  @Option(help: "At most so many documents.", transform: wholeNumber)
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
    if isDocument, condition != nil || limit != nil {
      throw ValidationError("--where and --limit are for collections")
    }
    if !isDocument, recursive || ifVersion != nil {
      throw ValidationError("--recursive and --if-version are for one document")
    }
  }

  var isWriting: Bool { !dryRun }

  func run(in database: Database) async throws {
    try await isDocument ? removeDocument(of: database) : removeDocuments(of: database)
  }

  private func removeDocument(of database: Database) async throws {
    let document = database.document(try DocumentPath(path))
    let old = try await document.getDocument()
    guard old.exists || recursive else {
      throw CommandFailure(.notFound, "there is no document at \(path)")
    }
    if dryRun { return try report([old]) }
    if recursive { try confirm("\(path) and everything below it") }
    _ = try await document.delete(
      recursive: recursive, ifVersion: ifVersion.map { Version(rawValue: $0) })
  }

  private func removeDocuments(of database: Database) async throws {
    let all = database.collection(path).query
    let query = try condition.map { all.whereFilter(try QueryOptions.filter($0)) } ?? all
    let count = min(try await query.count.getAggregation().count, limit ?? .max)
    if dryRun { return try report(await query.limit(to: count).getDocuments().documents) }
    guard count > 0 else { throw CommandFailure(.notFound, "no document meets the condition") }
    try confirm("\(count) documents of \(path)")
    var removed = 0
    try await globals.showing(.things("documents"), of: Int64(count)) { bar in
      while removed < count {
        try Interruption.check()
        let page = try await query.limit(to: min(Self.batchDocuments, count - removed))
          .getDocuments().documents
        if page.isEmpty { break }
        let batch = database.batch()
        for document in page { batch.deleteDocument(document.reference) }
        try await batch.commit()
        removed += page.count
        bar.show(removed)
      }
    }
    globals.say("Removed \(removed) documents.")
  }

  private func report(_ documents: [DocumentSnapshot]) throws(CommandFailure) {
    try globals.report(
      "rm/1", ["document"], documents.map { [("document", .string($0.reference.path))] })
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
    guard Console.isTerminal else {
      throw CommandFailure(.usage, "\(question) Say --yes.")
    }
    Console.say("\(question) [y/N] ", terminator: "")
    guard let answer = readLine(), ["y", "yes"].contains(answer.lowercased()) else {
      throw CommandFailure(.failed, "nothing was removed")
    }
  }
}
