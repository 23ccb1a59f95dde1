// The one way in which commands write rows. A report consists of objects with a schema ("info/1"),
// so that a program that reads them recognises them. Documents are written as they are, with their
// id under a name that no field can have, and nothing is added to them. Tables are printed at the
// end, everything else immediately.

import Foundation
import Ondol
import OndolJSON

/// A named value. A row consists of several, in display order.
typealias Cell = (name: String, value: Value)

/// Writes rows in the requested format.
struct RowWriter {
  /// The type of the rows.
  enum Kind {
    /// Objects of one shape, "<command>/<version>", with these columns.
    case report(schema: String, columns: [String])
    /// Documents: each has its own fields.
    case documents
  }

  /// Tables, and CSV of documents, are collected first. A table with more rows than this is of no
  /// use to a person.
  static let maximumTableRows = 100_000

  let format: OutputFormat
  private let kind: Kind
  private let style: JSONStyle
  private let usesColor: Bool
  private var output: Output
  /// Rows that wait for the names in later rows.
  private var gathered: [[Cell]] = []
  private var count = 0

  init(_ globals: GlobalOptions, _ kind: Kind) {
    format = globals.chosenFormat
    output = Output(globals.chosenFormat)
    style = globals.ejson
    usesColor = globals.usesColor
    self.kind = kind
  }

  /// Whether rows are shown only at the end, because the widest row determines the width of
  /// columns.
  var isGathering: Bool {
    switch (format, kind) {
    case (.table, _), (.csv, .documents), (.raw, .documents): true
    default: false
    }
  }

  /// Rejects formats that only `export` writes.
  private func check() throws(CommandFailure) {
    guard OutputFormat.common.contains(format) else {
      throw CommandFailure(.usage, "--format \(format.rawValue) is for ondol export")
    }
  }

  /// Writes one row.
  mutating func write(_ row: [Cell]) throws(CommandFailure) {
    try check()
    if isGathering {
      guard format != .table || gathered.count < Self.maximumTableRows else {
        throw CommandFailure(
          .failed, "more than \(Self.maximumTableRows) rows for a table; use --limit or --format")
      }
      gathered.append(row)
      return
    }
    switch format {
    case .json:
      try output.print((count == 0 ? "[" : ",") + object(row))
    case .jsonl:
      try output.print(object(row))
    case .csv, .raw, .table, .geojson:
      if count == 0, format == .csv { try output.print(lines: line(of: columns)) }
      try output.print(lines: line(of: columns.map { name in text(row, name) }))
    }
    count += 1
  }

  /// Writes a document.
  mutating func write(_ document: DocumentSnapshot) throws(CommandFailure) {
    try write(id: document.documentID, document.data())
  }

  /// Writes a document's fields, preceded by its id.
  mutating func write(id: String, _ fields: [String: Value]) throws(CommandFailure) {
    let ordered = fields.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
    try write([(JSONWriter.documentIDName, .string(id))] + ordered.map { ($0.key, $0.value) })
  }

  /// Makes the output visible. Commands that show events call it after each event.
  mutating func flush() throws(CommandFailure) { try output.flush() }

  /// Writes the remaining output.
  mutating func finish() throws(CommandFailure) {
    try check()
    if format == .json { try output.print(count == 0 ? "[]" : "]") }
    if format == .csv, count == 0, !isGathering {
      try output.print(lines: line(of: columns))
    }
    if isGathering { try writeGathered() }
    try output.flush()
  }

  // MARK: - Texts

  private var columns: [String] {
    if case .report(_, let columns) = kind { return columns }
    let names = Set(gathered.joined().map(\.name)).subtracting([JSONWriter.documentIDName])
    let fields = names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    let hasID = gathered.contains { $0.first?.name == JSONWriter.documentIDName }
    return (hasID ? [JSONWriter.documentIDName] : []) + fields
  }

  private func object(_ row: [Cell]) -> String {
    var row = row
    if case .report(let schema, _) = kind { row.insert(("schema", .string(schema)), at: 0) }
    return ValueText.object(row, style)
  }

  private func text(_ row: [Cell], _ name: String) -> String {
    row.first { $0.name == name }.map { ValueText.plain($0.value, style) } ?? ""
  }

  private func line(of cells: [String]) -> String {
    let cells = output.isVisible ? cells.map { VisibleText.line($0) } : cells
    guard format == .csv else {
      // By scalar, because "\r\n", and a tab followed by a combining mark, are one `Character`
      // each.
      return cells.map { cell in
        String(
          String.UnicodeScalarView(
            cell.unicodeScalars.map { ["\t", "\n", "\r"].contains($0) ? " " : $0 }))
      }
      .joined(separator: "\t")
    }
    return cells.map(Self.quoted).joined(separator: ",")
  }

  /// A field of a CSV file.
  private static func quoted(_ text: String) -> String {
    let isPlain = text.utf8.allSatisfy { byte in
      byte != UInt8(ascii: ",") && byte != UInt8(ascii: "\"") && byte != 0x0A && byte != 0x0D
    }
    return isPlain ? text : "\"" + CSV.doublingQuotes(text) + "\""
  }

  private mutating func writeGathered() throws(CommandFailure) {
    let columns = columns
    guard format == .table else {
      if format == .csv { try output.print(lines: line(of: columns)) }
      for row in gathered { try output.print(lines: line(of: columns.map { text(row, $0) })) }
      return
    }
    guard !gathered.isEmpty else { return }
    var table = TextTable(columns: columns)
    table.numericColumns = Set(
      columns.filter { name in
        gathered.allSatisfy { row in
          guard let cell = row.first(where: { $0.name == name }) else { return true }
          return cell.value.integer != nil || cell.value.double != nil
            || cell.value.decimal != nil
        }
      })
    for row in gathered { table.add(columns.map { text(row, $0) }) }
    for (index, line) in table.lines.enumerated() {
      try output.print([LinePart(text: line, isBold: usesColor && index == 0)])
    }
  }
}

extension Value {
  /// A count, a position or a number of bytes.
  static func number(_ number: some BinaryInteger) -> Value { .integer(Int64(clamping: number)) }

  static func strings(_ texts: [String]) -> Value { .array(texts.map { .string($0) }) }
}

/// Values as text.
enum ValueText {
  /// An object on one line, with its names in the given order.
  static func object(_ row: [Cell], _ style: JSONStyle) -> String {
    let members = row.map { "\(json(.string($0.name), style)):\(json($0.value, style))" }
    return "{" + members.joined(separator: ",") + "}"
  }

  /// JSON on one line.
  static func json(_ value: Value, _ style: JSONStyle) -> String {
    JSONWriter.line(value, style == .canonical ? .canonical : .relaxed)
  }

  /// The text of a cell: texts and times without quotes, blobs by their description, and
  /// everything else as JSON.
  static func plain(_ value: Value, _ style: JSONStyle) -> String {
    if let text = value.string { return text }
    if let moment = value.timestamp { return JSONWriter.dateText(moment) }
    if case .blob(let blob) = value { return describe(blob) }
    if case .null = value { return "null" }
    if case .decimal(let number) = value { return "\(number)" }
    return json(value, style)
  }

  /// The type of a value, in a word.
  static func kind(_ value: Value) -> String {
    switch value {
    case .null: "null"
    case .boolean: "boolean"
    case .integer: "integer"
    case .double: "double"
    case .decimal: "decimal"
    case .timestamp: "timestamp"
    case .string: "string"
    case .bytes: "bytes"
    case .blob: "blob"
    case .reference: "reference"
    case .geoPoint: "geoPoint"
    case .vector: "vector"
    case .array: "array"
    case .map: "map"
    }
  }

  /// The description of a blob for people: "image/jpeg 213 KB".
  static func describe(_ blob: BlobReference) -> String {
    let kind = blob.contentType ?? "blob"
    return "\(kind) \(ByteCount.text(Int(clamping: blob.length)))"
  }
}

/// Byte counts for people.
enum ByteCount {
  /// "213 KB", in units of 1024 as in file listings.
  static func text(_ bytes: Int) -> String {
    guard bytes >= 1024 else { return "\(bytes) B" }
    var value = Double(bytes)
    var unit = 0
    let units = ["B", "KB", "MB", "GB", "TB", "PB"]
    while value >= 1024, unit + 1 < units.count {
      value /= 1024
      unit += 1
    }
    let rounded = (value * 10).rounded() / 10
    let digits =
      rounded >= 100 || rounded == rounded.rounded() ? "\(Int(value.rounded()))" : "\(rounded)"
    return "\(digits) \(units[unit])"
  }
}
