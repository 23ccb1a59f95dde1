// A running export: writes the documents of one collection after another, page by page, in the
// requested form.

import Foundation
import Ondol
import OndolJSON
import OndolTerminal

/// The form of an export's output.
struct ExportShape {
  let format: OutputFormat
  let form: JSONForm
  let blobs: ExportCommand.Blobs
  /// Whether documents include their names.
  let hasIDs: Bool
  /// Whether documents at the top level are named by their ids alone.
  let takesIDs: Bool
  /// The names of the object around the array.
  let at: [String]
  /// The requested columns, in order.
  let columns: [String]?
  let delimiter: UInt8
  let hasHeader: Bool
  let geometry: String?

  var isCSV: Bool { format == .csv }

  /// The text before the documents.
  var opening: String {
    switch format {
    case .json: at.map { "{\(JSONWriter.line(.string($0))):" }.joined() + "["
    case .geojson: "{\"type\":\"FeatureCollection\",\"features\":["
    default: ""
    }
  }

  /// The text after the documents.
  var closing: String {
    switch format {
    case .json: "\n]" + String(repeating: "}", count: at.count) + "\n"
    case .geojson: "\n]}\n"
    default: ""
    }
  }
}

/// A running export.
final class ExportRun {
  private let reader: DumpReader
  private let target: ExportTarget
  private let shape: ExportShape
  private let globals: GlobalOptions
  private let bar: SharedProgressBar
  private(set) var documents = 0
  /// The contents that the collection's documents refer to, if they are written to files.
  private var contents: [BlobDigest: BlobReference] = [:]

  init(
    reader: DumpReader, target: ExportTarget, shape: ExportShape, globals: GlobalOptions,
    bar: SharedProgressBar
  ) {
    self.reader = reader
    self.target = target
    self.shape = shape
    self.globals = globals
    self.bar = bar
  }

  func export(_ collection: DumpedCollection) async throws {
    let name = FileNaming.encoded(collection.pattern.joined(separator: "/"))
    // All columns must be known before the first line.
    let columns = shape.isCSV ? try await self.columns(of: collection) : []
    try target.begin(name + "." + shape.format.rawValue)
    if shape.isCSV {
      let names = (shape.hasIDs ? [JSONWriter.documentIDName] : []) + columns
      if shape.hasHeader { try write(names.map { CSV.Cell($0) }) }
    } else {
      try target.write(Array(shape.opening.utf8))
    }
    var writer = JSONWriter(shape.form)
    var isFirst = true
    try await forEachPage(of: collection) { page in
      for document in page {
        let id = id(of: document, in: collection)
        let fields = document.fields.compactMapValues(shown)
        if shape.isCSV {
          let first = shape.hasIDs ? [cell(.string(id))] : []
          try write(first + columns.map { fields[$0].map(cell) ?? CSV.Cell("") })
          continue
        }
        if shape.format != .jsonl { writer.separate(isFirst: isFirst) }
        isFirst = false
        try write(fields, id, to: &writer)
        if shape.format == .jsonl { writer.endLine() }
      }
      documents += page.count
      bar.show(documents)
      try target.write(writer.bytes)
      writer.removeAll()
    }
    try target.write(Array(shape.closing.utf8))
    for (digest, blob) in contents.sorted(by: { $0.key < $1.key })
    where !target.has(Self.file(of: digest)) {
      try target.begin(Self.file(of: digest))
      _ = try await reader.content(of: blob) { try target.write($0) }
    }
    contents = [:]
  }

  private func id(of document: DumpedDocument, in collection: DumpedCollection) -> String {
    guard shape.takesIDs, collection.pattern.count == 1 else { return document.name }
    return String(document.name.dropFirst(collection.pattern[0].count + 1))
  }

  /// Writes a document as JSON.
  private func write(
    _ fields: [String: Value], _ id: String, to writer: inout JSONWriter
  ) throws(CommandFailure) {
    let name: [(String, Value)] =
      shape.hasIDs ? [(JSONWriter.documentIDName, .string(id))] : []
    guard shape.format == .geojson else { return writer.write(fields: fields, behind: name) }
    let feature = try GeoJSON.feature(
      of: fields, id: shape.hasIDs ? id : nil, geometry: shape.geometry, document: id)
    writer.write(fields: feature, behind: [])
  }

  /// Writes a CSV record.
  private func write(_ cells: [CSV.Cell]) throws {
    let shown =
      target.isVisible
      ? cells.map { CSV.Cell(VisibleText.line($0.text), isQuoted: $0.isQuoted) } : cells
    try target.write(Array(CSV.record(shown, delimiter: shape.delimiter).utf8))
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
    let all = names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    guard let chosen = shape.columns else { return all }
    let others = all.filter { !chosen.contains($0) }
    if !others.isEmpty {
      globals.say("\(others.joined(separator: ", ")): left out, because --columns lacks them")
    }
    return chosen
  }

  private static func file(of digest: BlobDigest) -> String {
    "blobs/\(digest.hex.prefix(2))/\(digest.hex)"
  }

  private func file(of blob: BlobReference) -> Value {
    contents[blob.digest] = blob
    return .string(Self.file(of: blob.digest))
  }

  /// The value with references to contents in the requested form; nil if it is an unwanted
  /// reference.
  private func shown(_ value: Value) -> Value? {
    switch value {
    case .blob(let blob):
      switch shape.blobs {
      case .none: nil
      case .refs: value
      case .files: file(of: blob)
      }
    case .array(let elements): .array(elements.map { shown($0) ?? .null })
    case .map(let fields): .map(fields.compactMapValues(shown))
    default: value
    }
  }

  /// Texts are quoted if they could be mistaken for another type.
  private func cell(_ value: Value) -> CSV.Cell {
    guard let text = value.string else {
      let line = JSONWriter.line(value, shape.form)
      // A date is a text in the plain form.
      guard line.hasPrefix("\""), let plain = try? JSONReader.read(Array(line.utf8), .plain).string
      else { return CSV.Cell(line) }
      return CSV.Cell(plain)
    }
    let isAmbiguous = text.isEmpty || (try? JSONReader.read(Array(text.utf8), .plain)) != nil
    return CSV.Cell(text, isQuoted: isAmbiguous)
  }
}
