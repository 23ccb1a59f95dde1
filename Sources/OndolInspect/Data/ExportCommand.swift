// `ondol export`: documents for other programs, as JSON Lines or CSV. What they are to Ondol is
// lost unless `--typed` keeps it; a dump is what keeps everything.

import ArgumentParser
import Foundation
import Ondol
import OndolJSON
import OndolTerminal

struct ExportCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Writes collections as plain JSON Lines or CSV.",
    discussion: """
      A document's id stands under __name__; of collections below documents, or of several in one \
      stream, its whole path. Dates and bytes are texts, vectors arrays; --typed writes Extended \
      JSON, which import reads back as it was. `ondol dump` writes everything without loss.
      """)

  /// What becomes of references to contents.
  enum Blobs: String, ExpressibleByArgument, CaseIterable {
    case none, refs, files
  }

  @OptionGroup var database: DatabaseArgument

  @Argument(
    help: "Collections, such as upload or users/posts for every user's; all when none is named.")
  var collections: [String] = []

  @Option(name: .shortAndLong, help: "A directory for a file of each collection, or -.")
  var output: String

  @Option(help: "Contents: left out, by their digests, or as files beside the documents.")
  var blobs = Blobs.refs

  @Flag(help: "Extended JSON, with the types of values.")
  var typed = false

  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard [nil, .jsonl, .csv].contains(globals.format) else {
      throw ValidationError("--format must be jsonl or csv")
    }
    guard output != "-" || blobs != .files else {
      throw ValidationError("--blobs files needs a directory")
    }
  }

  func run(in database: Database) async throws {
    let reader = try DumpReader(database)
    let chosen = try await chosenCollections(reader)
    if collections.isEmpty { try await reader.nameLocked() }
    guard output != "-" || globals.format != .csv || chosen.count == 1 else {
      throw CommandFailure(.usage, "CSV of several collections needs a directory")
    }
    let form: JSONForm = typed ? globals.ejson == .canonical ? .canonical : .relaxed : .plain
    let count = try await globals.showing(.things("documents")) { bar in
      let run = ExportRun(
        reader: reader, target: try ExportTarget(output), isCSV: globals.format == .csv,
        form: form, blobs: blobs, takesIDs: output != "-" || chosen.count == 1, bar: bar)
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

/// Where an export goes.
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

  /// Whether a person looks at what is written.
  var isVisible: Bool { directory == nil && Output.isTerminal }

  /// Whether the directory has a file already.
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

/// An export under way.
final class ExportRun {
  private let reader: DumpReader
  private let target: ExportTarget
  private let isCSV: Bool
  private let form: JSONForm
  private let blobs: ExportCommand.Blobs
  /// Whether documents at the top are called by their ids alone.
  private let takesIDs: Bool
  private let bar: SharedProgressBar
  private(set) var documents = 0
  /// What documents of the collection refer to, where it becomes files.
  private var contents: [BlobDigest: BlobReference] = [:]

  init(
    reader: DumpReader, target: ExportTarget, isCSV: Bool, form: JSONForm,
    blobs: ExportCommand.Blobs, takesIDs: Bool, bar: SharedProgressBar
  ) {
    self.reader = reader
    self.target = target
    self.isCSV = isCSV
    self.form = form
    self.blobs = blobs
    self.takesIDs = takesIDs
    self.bar = bar
  }

  func export(_ collection: DumpedCollection) async throws {
    let name = FileNaming.encoded(collection.pattern.joined(separator: "/"))
    // All columns must be known before the first line.
    let columns = isCSV ? try await self.columns(of: collection) : []
    try target.begin(name + (isCSV ? ".csv" : ".jsonl"))
    if isCSV {
      let names = [JSONWriter.documentIDName] + columns
      try write(names.map { CSV.Cell($0) })
    }
    var writer = JSONWriter(form)
    try await forEachPage(of: collection) { page in
      for document in page {
        let id =
          takesIDs && collection.pattern.count == 1
          ? String(document.name.dropFirst(collection.pattern[0].count + 1)) : document.name
        let fields = document.fields.compactMapValues(shown)
        if isCSV {
          let cells = [cell(.string(id))] + columns.map { fields[$0].map(cell) ?? CSV.Cell("") }
          try write(cells)
        } else {
          writer.write(fields: fields, behind: [(JSONWriter.documentIDName, .string(id))])
          writer.endLine()
        }
      }
      documents += page.count
      bar.show(documents)
      try target.write(writer.bytes)
      writer.removeAll()
    }
    for (digest, blob) in contents.sorted(by: { $0.key < $1.key })
    where !target.has(Self.file(of: digest)) {
      try target.begin(Self.file(of: digest))
      _ = try await reader.content(of: blob) { try target.write($0) }
    }
    contents = [:]
  }

  /// Writes a record of CSV.
  private func write(_ cells: [CSV.Cell]) throws {
    let shown =
      target.isVisible
      ? cells.map { CSV.Cell(VisibleText.line($0.text), isQuoted: $0.isQuoted) } : cells
    try target.write(Array(CSV.record(shown).utf8))
  }

  private func forEachPage(
    of collection: DumpedCollection, _ body: ([DumpedDocument]) throws -> Void
  ) async throws {
    var last: [UInt8]?
    repeat {
      try Interruption.check()
      let part = try await reader.documents(of: collection, after: last)
      last = part.last
      try body(part.documents)
    } while last != nil
  }

  private func columns(of collection: DumpedCollection) async throws -> [String] {
    var names: Set<String> = []
    try await forEachPage(of: collection) { page in
      for document in page { names.formUnion(document.fields.keys) }
    }
    return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  private static func file(of digest: BlobDigest) -> String {
    "blobs/\(digest.hex.prefix(2))/\(digest.hex)"
  }

  private func file(of blob: BlobReference) -> Value {
    contents[blob.digest] = blob
    return .string(Self.file(of: blob.digest))
  }

  /// The value with references to contents as they are wanted; nil when it is one that is not.
  private func shown(_ value: Value) -> Value? {
    switch value {
    case .blob(let blob):
      switch blobs {
      case .none: nil
      case .refs: value
      case .files: file(of: blob)
      }
    case .array(let elements): .array(elements.map { shown($0) ?? .null })
    case .map(let fields): .map(fields.compactMapValues(shown))
    default: value
    }
  }

  /// Texts stand in quotes where they would be taken for something else.
  private func cell(_ value: Value) -> CSV.Cell {
    guard let text = value.string else {
      let line = JSONWriter.line(value, form)
      // A date is a text in the plain form.
      guard line.hasPrefix("\""), let plain = try? JSONReader.read(Array(line.utf8), .plain).string
      else { return CSV.Cell(line) }
      return CSV.Cell(plain)
    }
    let isAmbiguous = text.isEmpty || (try? JSONReader.read(Array(text.utf8), .plain)) != nil
    return CSV.Cell(text, isQuoted: isAmbiguous)
  }
}
