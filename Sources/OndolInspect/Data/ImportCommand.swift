// `ondol import`: JSON Lines or CSV into collections. Lines that are no documents are left out and
// counted, or end it; what was acknowledged before is in the database, so an import that was killed
// can be run again from the start, or go on where it was.

import ArgumentParser
import Foundation
import Ondol
import OndolJSON

struct ImportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Imports JSON Lines or CSV, one document a line.",
    discussion: """
      Lines that are no documents are left out, reported and counted, and the status is then 1. \
      With --resume the import of a file continues where an earlier one stopped.
      """)

  @OptionGroup var database: DatabaseArgument

  @Argument(
    help: "A file, a directory of .jsonl and .csv files as export writes them, or - for input.",
    completion: .file())
  var source: String

  @Option(help: "The collection, a path such as upload or users/alice/posts.")
  var into: String?

  @Option(help: "The field that has the document's id, a text or a whole number; __name__ if none.")
  var idField: String?

  @Option(
    help: """
      What happens to a document that exists: insert refuses it, upsert replaces it, merge sets \
      the line's fields; replace refuses one that does not exist.
      """)
  var mode = ImportedDocument.Mode.upsert

  @Option(name: .customLong("as"), help: "jsonl or csv; the file's name says it when not given.")
  var format: ImportFormat?

  @Flag(help: "In CSV: numbers, true, false, null and nested JSON are what they look like.")
  var guessTypes = false

  @Flag(help: "Take objects as {\"$date\": ...} for the maps they are.")
  var plain = false

  @Flag(help: "End with the first line that is no document.")
  var stopOnError = false

  @Flag(help: "Go on where an earlier import of the same file with this flag ended.")
  var resume = false

  @Option(help: "Where --resume remembers how far it came; beside the database when not given.")
  var checkpoint: String?

  @Option(help: "Lines are parsed by so many workers; one for each processor when not given.")
  var jobs: Int?

  @Option(help: "What a commit survives: power, process or memory.")
  var durability = DurabilityOption.power

  @Flag(help: "Print the number of documents imported so far after each commit.")
  var acknowledge = false

  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard jobs ?? 1 >= 1 else { throw ValidationError("--jobs must be at least 1") }
    guard source != "-" || !resume else {
      throw ValidationError("standard input cannot be resumed")
    }
  }

  func run() async throws {
    guard !(resume && database.isOnServer && checkpoint == nil) else {
      throw CommandFailure(.usage, "beside a server is no room for a checkpoint: name --checkpoint")
    }
    let files = try ImportFiles(source, into: into)
    try await database.withDatabase(writing: true) { database in
      let place = checkpoint ?? Self.place(beside: self.database.place)
      var run = ImportRun(
        database: database, durability: durability.level,
        jobs: jobs ?? ProcessInfo.processInfo.activeProcessorCount, stopsOnError: stopOnError,
        checkpoint: resume ? try ImportCheckpoint(path: place) : nil,
        report: ImportReport(
          isAcknowledging: acknowledge, stopsOnError: stopOnError, isQuiet: globals.quiet,
          showsProgress: globals.showsProgress, bytes: files.bytes))
      do {
        for file in files.all { try await run.run(file.path, parser(file, database)) }
      } catch {
        run.report.finish(into: into)
        throw error
      }
      run.report.finish(into: into)
      run.checkpoint?.remove()
      guard run.report.badLines == 0 else {
        throw CommandFailure(
          .failed,
          run.report.badLines == 1
            ? "a line was no document" : "\(run.report.badLines) lines were no documents")
      }
    }
  }

  private static func place(beside directory: String) -> String {
    (directory.hasSuffix("/") ? String(directory.dropLast()) : directory) + ".import"
  }

  private func parser(_ file: ImportFiles.File, _ database: Database) -> ImportParser {
    let ids = database.collection("ids")
    return ImportParser(
      collection: file.collection, takesPaths: into == nil, idField: idField, mode: mode,
      dialect: plain ? .plain : .extended, format: format ?? ImportFormat(path: file.path),
      guessesTypes: guessTypes, stopsOnError: stopOnError,
      makeID: { ids.document().documentID }, makeEncoder: { ImportEncoder(database) })
  }
}

/// The files of an import.
struct ImportFiles {
  struct File {
    var path: String
    /// Where its documents go; nil when their ids are whole paths.
    var collection: CollectionPath?
  }

  private(set) var all: [File] = []
  /// Of all files together; nil when nobody knows.
  private(set) var bytes: Int64? = 0

  init(_ source: String, into: String?) throws {
    let target = try into.map { try CollectionPath($0) }
    if source == "-" {
      all = [File(path: source, collection: target)]
      bytes = nil
      return
    }
    guard let attributes = try? FileManager.default.attributesOfItem(atPath: source) else {
      throw CommandFailure(.failed, "cannot read \(source)")
    }
    if attributes[.type] as? FileAttributeType != .typeDirectory {
      all = [File(path: source, collection: target)]
    } else {
      for name in try FileManager.default.contentsOfDirectory(atPath: source).sorted() {
        guard name.hasSuffix(".jsonl") || name.hasSuffix(".csv") else { continue }
        let stem = name[..<(name.lastIndex(of: ".") ?? name.endIndex)]
        // The name of a file for a collection below documents is no path: ids are whole paths then.
        let path = FileNaming.decoded(String(stem)).flatMap { try? CollectionPath($0) }
        all.append(File(path: source + "/" + name, collection: target ?? path))
      }
      guard !all.isEmpty else {
        throw CommandFailure(.failed, "there is no .jsonl and no .csv file in \(source)")
      }
    }
    for file in all {
      let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
      bytes = bytes.map { $0 + ((attributes[.size] as? NSNumber)?.int64Value ?? 0) }
    }
  }
}

extension ImportedDocument.Mode: ExpressibleByArgument {}
extension ImportFormat: ExpressibleByArgument {}

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
