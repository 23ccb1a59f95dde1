// `ondol import`: JSON, JSON Lines, CSV and TSV into collections. Invalid records are skipped and
// counted, or end the import. Everything acknowledged before is in the database, so an interrupted
// import can be run again from the start or continued.

import ArgumentParser
import Foundation
import Ondol
import OndolJSON

struct ImportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Imports documents from JSON, JSON Lines, CSV or TSV.",
    discussion: """
      What a file is, is found out from its beginning; a file that could be two things is refused, \
      with the option that says which. Records that are no documents are left out, reported and \
      counted, and the status is then 1; --rejects keeps them. With --resume the import of a file \
      continues where an earlier one stopped.
      """)

  @OptionGroup var database: DatabaseArgument

  @Argument(
    help: "A file, a directory of files as export writes them, or - for input.",
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

  @OptionGroup(title: "Form of the file") var form: FormOptions

  @Flag(help: "In tables: read numbers, true, false, null and nested JSON as such.")
  var guessTypes = false

  @Flag(help: "Import objects such as {\"$date\": ...} as plain maps.")
  var plain = false

  @Option(help: "exact keeps all digits of numbers, as decimals; double rounds to the nearest.")
  var numbers = JSONNumbers.exact

  @Option(help: "A field that is not imported; may be given several times.")
  var leaveOut: [String] = []

  @Option(help: "Keep refused records unchanged in this file, with the reasons.")
  var rejects: String?

  @Flag(help: "Read and count, and write nothing.")
  var dryRun = false

  @Flag(help: "Stop at the first line that is not a document.")
  var stopOnError = false

  @Flag(help: "Continue where an earlier import of the same file with this flag ended.")
  var resume = false

  @Option(help: "The file for the progress of --resume; by default beside the database.")
  var checkpoint: String?

  @Option(help: "The number of workers that parse lines; by default one for each processor.")
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
    guard !(dryRun && resume) else {
      throw ValidationError("--dry-run writes nothing that could be resumed")
    }
    guard !(leaveOut.contains { $0 == idField }) else {
      throw ValidationError("--leave-out would remove the field of --id-field")
    }
  }

  func run() async throws {
    guard !(resume && database.isOnServer && checkpoint == nil) else {
      throw CommandFailure(.usage, "a server has no place for a checkpoint: name --checkpoint")
    }
    let files = try ImportFiles(source, into: into)
    // An ambiguous file is rejected before anything is created or written, even from the other
    // files.
    if source != "-" {
      for file in files.all {
        var reader = try PieceReader(path: file.path)
        _ = try reader.findForm(form.hints(for: file.path, idField: idField))
      }
    }
    let kept = try rejects.map { path throws(CommandFailure) in
      try ImportRejects(path: path, isDirectory: files.isDirectory, goesOn: resume)
    }
    try await withTarget { database in
      let place = checkpoint ?? Self.place(beside: self.database.place)
      var run = ImportRun(
        database: database, durability: durability.level,
        jobs: jobs ?? ProcessInfo.processInfo.activeProcessorCount, stopsOnError: stopOnError,
        isDry: dryRun, checkpoint: resume ? try ImportCheckpoint(path: place) : nil, rejects: kept,
        report: ImportReport(
          isAcknowledging: acknowledge, stopsOnError: stopOnError, isDry: dryRun,
          isQuiet: globals.quiet, showsProgress: globals.showsProgress, bytes: files.bytes))
      do {
        for file in files.all {
          let hints = form.hints(for: file.path, idField: idField)
          try await run.run(file.path, hints, form.table.columnNames ?? [], parser(file, database))
        }
      } catch {
        run.report.finish(into: into)
        throw error
      }
      run.report.finish(into: into)
      run.checkpoint?.remove()
      if let rejects, let kept = run.rejects, kept.count > 0 {
        globals.say("\(rejects) has the refused records; correct them and import that file.")
      }
      if let failure = run.report.failure { throw failure }
    }
  }

  /// Runs `body` with the database, or with an empty one if nothing is to be written.
  private func withTarget(_ body: (Database) async throws -> Void) async throws {
    guard dryRun else { return try await database.withDatabase(writing: true, body) }
    let directory = FileManager.default.temporaryDirectory
      .appending(path: "ondol-dry-run-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: directory) }
    let path = directory.path(percentEncoded: false)
    try await database.run(body) { () async throws(CommandFailure) in
      try await Database.open(at: path, writing: true)
    }
  }

  private static func place(beside directory: String) -> String {
    (directory.hasSuffix("/") ? String(directory.dropLast()) : directory) + ".import"
  }

  private func parser(_ file: ImportFiles.File, _ database: Database) -> ImportParser {
    let ids = database.collection("ids")
    return ImportParser(
      collection: file.collection, takesPaths: into == nil, idField: idField, mode: mode,
      dialect: plain ? .plain : .extended, numbers: numbers, form: FileForm(.jsonl),
      guessesTypes: guessTypes,
      takesShortRows: form.shortRows, leftOut: Set(leaveOut), stopsOnError: stopOnError,
      keepsBytes: rejects != nil,
      makeID: { ids.document().documentID }, makeEncoder: { ImportEncoder(database) })
  }
}

/// The files of an import.
struct ImportFiles {
  struct File {
    var path: String
    /// The destination of its documents; nil if their ids are whole paths.
    var collection: CollectionPath?
  }

  /// The file extensions that are taken from a directory.
  private static let endings = ["jsonl", "ndjson", "json", "geojson", "csv", "tsv"]

  private(set) var all: [File] = []
  private(set) var isDirectory = false
  /// The size of all files together; nil if unknown.
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
      isDirectory = true
      for name in try FileManager.default.contentsOfDirectory(atPath: source).sorted() {
        guard let point = name.lastIndex(of: "."),
          Self.endings.contains(String(name[name.index(after: point)...]))
        else { continue }
        let stem = name[..<point]
        // The file name of a collection below documents is not a path, so the ids are whole paths.
        let path = FileNaming.decoded(String(stem)).flatMap { try? CollectionPath($0) }
        all.append(File(path: source + "/" + name, collection: target ?? path))
      }
      guard !all.isEmpty else {
        throw CommandFailure(
          .failed,
          "no file in \(source) has a name that ends in ."
            + Self.endings.joined(separator: ", ."))
      }
    }
    for file in all {
      let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
      bytes = bytes.map { $0 + ((attributes[.size] as? NSNumber)?.int64Value ?? 0) }
    }
  }
}

extension ImportedDocument.Mode: ExpressibleByArgument {}
extension JSONNumbers: ExpressibleByArgument {}

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
