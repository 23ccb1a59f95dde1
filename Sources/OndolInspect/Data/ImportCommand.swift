// `ondol import`: JSON Lines into a collection, in memory for one batch at a time. A line that is
// no document ends it, with the line's number; what was acknowledged before is in the database, so
// an import that was killed or refused can be run again from the start.

import ArgumentParser
import Ondol
import OndolJSON

struct ImportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Imports JSON Lines, one document a line; replaces documents that have the same id.")

  /// Documents in a commit.
  static let batchDocuments = 1_000
  /// A commit is not held up for more bytes than these.
  static let batchBytes = 8 << 20

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The file; - is standard input.", completion: .file())
  var file: String

  @Option(help: "The collection, a path as upload or users/alice/posts.")
  var into: String

  @Option(help: "The field that has the document's id, a text or a whole number.")
  var idField: String

  @Option(help: "What a commit survives: power, process or memory.")
  var durability: DurabilityOption = .power

  @Flag(help: "Print the number of documents imported so far after each commit.")
  var acknowledge = false

  @Flag(help: "No progress.")
  var quiet = false

  func run() async throws {
    var lines = try LineReader(path: file)
    try await database.withDatabase(writing: true) { database in
      let collection = try CollectionPath(into)
      var progress = ImportProgress(isAcknowledging: acknowledge, isQuiet: quiet)
      var failure: CommandFailure?
      var isAtEnd = false
      while !isAtEnd, failure == nil {
        let batch = database.batch()
        var (documents, bytes) = (0, 0)
        do throws(CommandFailure) {
          while documents < Self.batchDocuments, bytes < Self.batchBytes {
            guard let line = try lines.next() else {
              isAtEnd = true
              break
            }
            try add(line, numbered: lines.lineNumber, to: batch, in: collection, of: database)
            documents += 1
            bytes += line.count
          }
        } catch {
          failure = error
        }
        if documents > 0 {
          try await batch.commit(durability: durability.level)
          try progress.add(documents)
        }
      }
      progress.finish(into: into)
      if let failure { throw failure }
    }
  }

  private func add(
    _ line: [UInt8], numbered number: Int, to batch: WriteBatch, in collection: CollectionPath,
    of database: Database
  ) throws(CommandFailure) {
    do {
      guard case .map(var fields) = try JSONReader.read(line) else {
        throw CommandFailure(.failed, "line \(number): a document must be an object in braces")
      }
      let id = try documentID(in: fields, line: number)
      // The id under its own name comes from `ondol ls`, and no field can be called so.
      if idField == JSONWriter.documentIDName { fields[idField] = nil }
      // Taken literally: a "/" in an id is a mistake, not the way into a subcollection.
      try batch.setData(fields, forDocument: database.document(try collection.document(id)))
    } catch let failure as CommandFailure {
      throw failure
    } catch let error as JSONError {
      throw CommandFailure(.failed, "line \(number), column \(error.column): \(error.reason)")
    } catch let error as DatabaseError {
      throw CommandFailure(.failed, "line \(number): \(error.message)")
    } catch {
      throw CommandFailure(.failed, "line \(number): \(error)")
    }
  }

  private func documentID(in fields: [String: Value], line: Int) throws(CommandFailure) -> String {
    switch fields[idField] {
    case .string(let id): return id
    case .integer(let id): return String(id)
    case nil: throw CommandFailure(.failed, "line \(line): there is no field \"\(idField)\"")
    case let other?:
      throw CommandFailure(
        .failed, "line \(line): \"\(idField)\" must be a text or a whole number, and is \(other)")
    }
  }
}

/// The levels by their names on the command line.
enum DurabilityOption: String, ExpressibleByArgument, CaseIterable {
  case power, process, memory

  var level: Durability {
    switch self {
    case .power: .power
    case .process: .process
    case .memory: .memory
    }
  }
}

/// Tells the person, and on request the program that started this one, how far it got.
struct ImportProgress {
  let isAcknowledging: Bool
  let isQuiet: Bool
  private var count = 0
  private var output = Output()
  private let start = ContinuousClock.now

  init(isAcknowledging: Bool, isQuiet: Bool) {
    self.isAcknowledging = isAcknowledging
    self.isQuiet = isQuiet
  }

  mutating func add(_ documents: Int) throws(CommandFailure) {
    count += documents
    if isAcknowledging {
      try output.print("\(count)")
      try output.flush()
    }
    if !isQuiet, Output.messagesGoToTerminal {
      Output.say("\r\(count) documents", terminator: "")
    }
  }

  func finish(into collection: String) {
    guard !isQuiet else { return }
    let seconds = (ContinuousClock.now - start) / .seconds(1)
    let time = "\((seconds * 100).rounded() / 100)"
    let lineStart = Output.messagesGoToTerminal ? "\r" : ""
    Output.say("\(lineStart)Imported \(count) documents into \(collection) in \(time) s.")
  }
}
