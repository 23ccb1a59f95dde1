// Options for the form of a file: for an import if the file alone is ambiguous, and for tables that
// an export writes.

import ArgumentParser
import OndolJSON

/// A character between cells, given directly or by a name that is safe in a shell.
struct Delimiter: ExpressibleByArgument {
  let byte: UInt8

  init?(argument: String) {
    switch argument {
    case "tab", "\\t": byte = 0x09
    case "comma": byte = UInt8(ascii: ",")
    case "semicolon": byte = UInt8(ascii: ";")
    case "bar": byte = UInt8(ascii: "|")
    default:
      guard let only = argument.utf8.first, argument.utf8.count == 1, only < 0x7F,
        only == 0x09 || only >= 0x20, only != UInt8(ascii: "\"")
      else { return nil }
      byte = only
    }
  }
}

/// The options for the form of a table, for reading or writing.
struct TableOptions: ParsableArguments {
  @Option(
    help: """
      Tables: what is between cells, a character or tab; when not given, what the file has, or a \
      comma.
      """)
  var delimiter: Delimiter?

  @Flag(help: "Tables: without a line of names; columns that are read are column1, column2 …")
  var noHeader = false

  @Option(help: "Tables: the names of the columns in their order, with commas between.")
  var columns: String?

  /// Whether one of them is given.
  var areGiven: Bool { delimiter != nil || noHeader || columns != nil }

  /// The names of columns; nil if none were given.
  var columnNames: [String]? {
    columns?.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
  }

  mutating func validate() throws {
    let names = columnNames ?? []
    guard Set(names).count == names.count else {
      throw ValidationError("--columns has the same name twice")
    }
  }
}

/// The option for the location of documents in JSON, for reading or writing.
struct PlaceOption: ParsableArguments {
  @Option(
    help: """
      JSON: the array of documents within an object: its name, names with points between, or a \
      JSON Pointer such as /data/a.b.
      """)
  var at: String?

  /// The names that lead there; empty if the option was not given.
  var names: [String] { at.map(FormOptions.keys) ?? [] }

  mutating func validate() throws {
    if let at, at.isEmpty || names.contains("") {
      throw ValidationError("--at has an empty name in it")
    }
  }
}

/// The options for the form of a file that is read.
struct FormOptions: ParsableArguments {
  @Option(
    name: .customLong("as"),
    help: "jsonl, json, csv or tsv; by default detected from the file's beginning.")
  var format: FileFormat?

  @OptionGroup var place: PlaceOption
  @OptionGroup var table: TableOptions

  @Option(help: "The beginning of comment lines.")
  var comment: String?

  @Flag(help: "Treat missing cells at a row's end as empty.")
  var shortRows = false

  mutating func validate() throws {
    if let comment, !Self.isMark(comment, table.delimiter?.byte) {
      throw ValidationError("--comment cannot have quotes, delimiters or line breaks in it")
    }
    guard place.at == nil || format == nil || format == .json else {
      throw ValidationError("--at is for JSON, not for \(format?.rawValue ?? "")")
    }
    if format == .jsonl || format == .json || place.at != nil, table.areGiven || shortRows {
      throw ValidationError("--delimiter, --no-header, --columns and --short-rows are for tables")
    }
  }

  private static func isMark(_ mark: String, _ delimiter: UInt8?) -> Bool {
    let refused: [UInt8] = [0x22, 0x0A, 0x0D, 0x09] + Array(",;|".utf8)
    return !mark.isEmpty && !mark.utf8.contains { refused.contains($0) || $0 == delimiter }
  }

  /// The hints for the file at a path.
  func hints(for path: String, idField: String?) -> FormHints {
    var hints = FormHints()
    hints.format = format
    hints.at = place.names
    hints.delimiter = table.delimiter?.byte
    hints.comment = comment ?? ""
    hints.hasHeader = !table.noHeader
    hints.hasColumns = table.columns != nil
    hints.idField = idField
    if path != "-", let point = path.lastIndex(of: ".") {
      hints.ending = path[path.index(after: point)...].lowercased()
    }
    return hints
  }

  /// The names of a path, with points in between or as a JSON Pointer.
  static func keys(_ path: String) -> [String] {
    guard !path.isEmpty else { return [] }
    guard path.utf8.first == UInt8(ascii: "/") else {
      return path.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    }
    return path.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map {
      String($0).replacing("~1", with: "/").replacing("~0", with: "~")
    }
  }
}

extension FileFormat: ExpressibleByArgument {}
