// What a file of documents is: which form it has, what stands between its records, and what comes
// before them. FormFinder finds it out; readers follow it. What is in doubt is refused with what
// was seen, and with the option that says it.

/// Names of the forms on a command line.
package enum FileFormat: String, Sendable, CaseIterable {
  /// An object a line.
  case jsonl
  /// Objects in an array, in an array within an object, or one after the other over any number of
  /// lines.
  case json
  /// Cells with commas or another character between.
  case csv
  /// Cells with tabs between.
  case tsv

  package var isTable: Bool { self == .csv || self == .tsv }
}

/// The form of a file.
package struct FileForm: Sendable, Equatable {
  package var format: FileFormat
  /// Where the objects are, in JSON that is no lines.
  package var layout = JSONSplitter.Layout.sequence
  /// What stands between cells, and what ends a line in every form.
  package var table = CSV.Form()
  /// Whether a table's first record has the names of its columns.
  package var hasHeader = true
  /// The names of the columns of a table that has none: column1, column2 and so on.
  package var columns: [String] = []
  /// Bytes before everything else: a byte order mark.
  package var startBytes = 0
  /// Whether somebody said it: bad lines are bad lines then, and no sign of another form.
  package var isSaid = false

  package init(_ format: FileFormat) {
    self.format = format
  }

  /// What it is, for a person: "CSV with ';' between cells".
  package var description: String {
    switch format {
    case .jsonl: return "JSON Lines"
    case .csv: return "CSV with \(Self.name(table.delimiter)) between cells"
    case .tsv: return "TSV"
    case .json: break
    }
    return switch layout {
    case .sequence: "JSON objects one after the other"
    case .array: "a JSON array"
    case .member(let names): "the JSON array \"\(names.joined(separator: "\".\""))\""
    }
  }

  /// A delimiter as people write it.
  package static func name(_ delimiter: UInt8) -> String {
    delimiter == 0x09 ? "tab" : "'" + String(decoding: [delimiter], as: UTF8.self) + "'"
  }

  /// How a file in UTF-8 may begin.
  package static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]
}

/// What somebody said about a file's form.
package struct FormHints: Sendable {
  package var format: FileFormat?
  /// The names on the way to the array, none when the file is the array or has none.
  package var at: [String] = []
  package var delimiter: UInt8?
  package var comment = ""
  package var hasHeader = true
  /// Whether the names of the columns are given, and the file has none.
  package var hasColumns = false
  /// What the file's name ends with, without the point.
  package var ending = ""
  /// A field that only a document has, beside `__name__`: where its id is.
  package var idField: String?

  package init() {}
}

/// Why the form of a file is in doubt, or is none that can be read.
package struct FormDoubt: Error, Sendable {
  /// What was seen, and which option says what it is.
  package let reason: String
  /// Where it was seen, counted from one; nil where it is the whole.
  package var line: Int?
  /// In bytes from the beginning of the line.
  package var column: Int?

  init(_ reason: String) {
    self.reason = reason
  }

  /// - Parameter offset: the place in `bytes`, which are the beginning of the file.
  init(_ reason: String, in bytes: [UInt8], at offset: Int, lineBreak: UInt8) {
    self.reason = reason
    let before = bytes[..<min(offset, bytes.count)]
    line = before.count { $0 == lineBreak } + 1
    column = before.count - (before.lastIndex(of: lineBreak).map { $0 + 1 } ?? 0) + 1
  }
}
