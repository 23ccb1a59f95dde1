// `ondol rm`: removes documents: one by its path, or those of a collection that satisfy a
// condition.

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

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "A document such as upload/lamp, or a collection such as upload.")
  var path: String

  @Flag(help: "Also everything below the document.")
  var recursive = false

  @Option(help: "The document must have this version.")
  var ifVersion: UInt64?

  @OptionGroup var selected: SelectedDocuments

  @OptionGroup var globals: GlobalOptions

  private var isDocument: Bool {
    path.split(separator: "/").count.isMultiple(of: 2)
  }

  func validate() throws {
    if isDocument, selected.condition != nil || selected.limit != nil {
      throw ValidationError("--where and --limit are for collections")
    }
    if !isDocument, recursive || ifVersion != nil {
      throw ValidationError("--recursive and --if-version are for one document")
    }
  }

  var isWriting: Bool { !selected.dryRun }

  func run(in database: Database) async throws {
    try await isDocument ? removeDocument(of: database) : removeDocuments(of: database)
  }

  private func removeDocument(of database: Database) async throws {
    let document = database.document(try DocumentPath(path))
    let old = try await document.getDocument()
    guard old.exists || recursive else {
      throw CommandFailure(.notFound, "there is no document at \(path)")
    }
    if selected.dryRun {
      return try globals.report("rm/1", [Cell("document", .string(path))])
    }
    if recursive { try confirm("\(path) and everything below it") }
    _ = try await document.delete(
      recursive: recursive, ifVersion: ifVersion.map { Version(rawValue: $0) })
  }

  private func removeDocuments(of database: Database) async throws {
    let query = try selected.query(of: path, in: database)
    let count = try await selected.count(of: query)
    if selected.dryRun { return try await selected.report("rm/1", query, globals) }
    try confirm("\(counted(count, "document")) of \(path)")
    let removed = try await globals.showing(.things("documents"), of: Int64(count)) { bar in
      try await query.deleteDocuments { bar.show($0.written) }
    }
    globals.say("Removed \(counted(removed, "document")).")
  }

  /// Asks the person, or requires `--yes` if there is none.
  private func confirm(_ what: String) throws(CommandFailure) {
    try Confirmation.ask("Remove \(what)?", yes: selected.yes, otherwise: "nothing was removed")
  }
}

/// Asks before data is destroyed.
enum Confirmation {
  /// - Parameter nothing: the message if the answer is no.
  static func ask(
    _ question: String, yes: Bool, otherwise nothing: String
  ) throws(CommandFailure) {
    if yes { return }
    guard Console.isTerminal else {
      throw CommandFailure(.usage, "\(question) Say --yes.")
    }
    Console.say("\(question) [y/N] ", terminator: "")
    guard let answer = readLine(), ["y", "yes"].contains(answer.lowercased()) else {
      throw CommandFailure(.failed, nothing)
    }
  }
}
