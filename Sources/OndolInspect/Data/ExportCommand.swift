// `ondol export`: documents for other programs, as JSON Lines, JSON, CSV or GeoJSON. Ondol's types
// are lost unless `--typed` keeps them. A dump keeps everything.

import ArgumentParser
import Foundation
import Ondol
import OndolJSON
import OndolTerminal

struct ExportCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Writes collections as plain JSON Lines, JSON, CSV or GeoJSON.",
    discussion: """
      With --firebase, writes everything as `firebase emulators:export` does, for Firebase's \
      emulators and for `ondol serve --import`: documents, accounts without passwords, the tree, \
      objects.

      A document's id stands under __name__; of collections below documents, or of several in one \
      stream, its whole path; --no-ids leaves it out. Dates and bytes are texts, vectors arrays; \
      --typed writes Extended JSON, which import reads back as it was. `ondol dump` writes \
      everything without loss.
      """)

  /// How references to contents are exported.
  enum Blobs: String, ExpressibleByArgument, CaseIterable {
    case none, refs, files
  }

  @OptionGroup var database: DatabaseArgument

  @Argument(
    help: "Collections, such as upload or users/posts for every user's; all when none is named.")
  var collections: [String] = []

  @Option(name: .shortAndLong, help: "A directory for a file of each collection, or -.")
  var output: String

  @Flag(help: "An export of Firebase's emulators, with everything, in a new or empty directory.")
  var firebase = false

  @Option(help: "The id of the project that an export of Firebase's emulators is for.")
  var project: String?

  @Option(help: "Contents: left out, by their digests, or as files beside the documents.")
  var blobs = Blobs.refs

  @Flag(help: "Extended JSON, with the types of values.")
  var typed = false

  @Flag(name: .customLong("no-ids"), help: "Leave out __name__, or the id of a feature.")
  var withoutIDs = false

  @OptionGroup var place: PlaceOption
  @OptionGroup var table: TableOptions

  @Option(help: "GeoJSON: the field with a geo point or a geometry; found if there is only one.")
  var geometry: String?

  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard [nil, .jsonl, .json, .csv, .geojson].contains(globals.format) else {
      throw ValidationError("--format must be jsonl, json, csv or geojson")
    }
    guard globals.format == .csv || !table.areGiven else {
      throw ValidationError("--columns, --delimiter and --no-header are for --format csv")
    }
    guard globals.format == .json || place.at == nil else {
      throw ValidationError("--at is for --format json")
    }
    guard globals.format == .geojson || geometry == nil else {
      throw ValidationError("--geometry is for --format geojson")
    }
    guard output != "-" || blobs != .files else {
      throw ValidationError("--blobs files needs a directory")
    }
    guard firebase == (project != nil) else {
      throw ValidationError("--firebase and --project go together")
    }
    guard !firebase || collections.isEmpty && globals.format == nil && output != "-" else {
      throw ValidationError("--firebase writes everything, in its own form, into a directory")
    }
  }

  func run(in database: Database) async throws {
    if let project {
      return try await FirebaseExport.write(database, of: project, to: output, globals)
    }
    let reader = try DumpReader(database)
    let chosen = try await chosenCollections(reader)
    if collections.isEmpty { try await reader.nameLocked() }
    let format = globals.format ?? .jsonl
    guard output != "-" || format == .jsonl || chosen.count == 1 else {
      throw CommandFailure(
        .usage, "\(format.rawValue) of several collections needs a directory")
    }
    let shape = ExportShape(
      format: format, form: typed ? globals.ejson == .canonical ? .canonical : .relaxed : .plain,
      blobs: blobs, hasIDs: !withoutIDs, takesIDs: output != "-" || chosen.count == 1,
      at: place.names, columns: table.columnNames,
      delimiter: table.delimiter?.byte ?? UInt8(ascii: ","), hasHeader: !table.noHeader,
      geometry: geometry)
    let count = try await globals.showing(.things("documents")) { bar in
      let run = ExportRun(
        reader: reader, target: try ExportTarget(output), shape: shape, globals: globals, bar: bar)
      for collection in chosen { try await run.export(collection) }
      return run.documents
    }
    globals.say("Exported \(counted(count, "document")).")
  }

  private func chosenCollections(_ reader: DumpReader) async throws -> [DumpedCollection] {
    let all = try await reader.collections().filter { !$0.isStorage }
    guard !collections.isEmpty else {
      var filled: [DumpedCollection] = []
      for collection in all {
        let part = try await reader.documents(of: collection, after: nil, limit: 1)
        if !part.documents.isEmpty || part.last != nil { filled.append(collection) }
      }
      return filled
    }
    return try collections.map { try all.collection(named: $0) }
  }
}

/// The destination of an export.
final class ExportTarget {
  private let directory: String?
  private var handle: FileHandle?

  init(_ output: String) throws(CommandFailure) {
    directory = output == "-" ? nil : output
    if let directory { try Self.create(directory) }
  }

  private static func create(_ directory: String) throws(CommandFailure) {
    do {
      try FileManager.default.createDirectory(
        atPath: directory, withIntermediateDirectories: true)
    } catch {
      throw CommandFailure(.failed, "cannot make \(directory): \(error.localizedDescription)")
    }
  }

  /// Whether a person sees the output.
  var isVisible: Bool { directory == nil && Output.isTerminal }

  /// Whether the directory already has a file.
  func has(_ file: String) -> Bool {
    directory.map { FileManager.default.fileExists(atPath: $0 + "/" + file) } ?? false
  }

  func begin(_ file: String) throws(CommandFailure) {
    guard let directory else { return }
    let path = directory + "/" + file
    try Self.create(URL(filePath: path).deletingLastPathComponent().path(percentEncoded: false))
    try? handle?.close()
    handle = try FileHandle.creating(path)
  }

  func write(_ bytes: [UInt8]) throws(CommandFailure) {
    guard let handle else { return try Output.write(Data(bytes)) }
    do {
      try handle.write(contentsOf: Data(bytes))
    } catch {
      throw CommandFailure(.failed, "cannot write: \(error.localizedDescription)")
    }
  }
}
