// The form of a file of documents: its format, the separators of its records, and the bytes before
// them. FormFinder detects it, and readers follow it. If it is in doubt, the finder refuses the
// file, and reports what it saw and the option that decides it.

/// The names of the formats on a command line.
package enum FileFormat: String, Sendable, CaseIterable {
  /// An object on each line.
  case jsonl
  /// Objects in an array, in an array within an object, or one after another across any number of
  /// lines.
  case json
  /// Cells with commas or another character between them.
  case csv
  /// Cells with tabs between them.
  case tsv

  package var isTable: Bool { self == .csv || self == .tsv }
}

/// The form of a file.
package struct FileForm: Sendable, Equatable {
  package var format: FileFormat
  /// The place of the objects, in JSON that is not line by line.
  package var layout = JSONSplitter.Layout.sequence
  /// The separators of cells, and the line end in every format.
  package var table = CSV.Form()
  /// Whether a table's first record has the column names.
  package var hasHeader = true
  /// The column names of a table without a header: column1, column2 and so on.
  package var columns: [String] = []
  /// The bytes before everything else: a byte order mark.
  package var startBytes = 0
  /// Whether the user stated the format. Bad lines are then bad lines, and no sign of another
  /// format.
  package var isSaid = false

  package init(_ format: FileFormat) {
    self.format = format
  }

  /// A description for people: "CSV with ';' between cells".
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

  /// A delimiter in the form that people write.
  package static func name(_ delimiter: UInt8) -> String {
    delimiter == 0x09 ? "tab" : "'" + String(decoding: [delimiter], as: UTF8.self) + "'"
  }

  /// The possible beginning of a file in UTF-8.
  package static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]
}

/// The user's statements about a file's form.
package struct FormHints: Sendable {
  package var format: FileFormat?
  /// The names on the way to the array; empty if the file is the array or has none.
  package var at: [String] = []
  package var delimiter: UInt8?
  package var comment = ""
  package var hasHeader = true
  /// Whether the user gave the column names, and the file has none.
  package var hasColumns = false
  /// The ending of the file's name, without the dot.
  package var ending = ""
  /// A field that only a document has, in addition to `__name__`: the one with its id.
  package var idField: String?

  package init() {}
}

/// Why the form of a file is in doubt or unreadable.
package struct FormDoubt: Error, Sendable {
  /// What the finder saw, and the option that decides it.
  package let reason: String
  /// The line, counted from one; nil for the whole file.
  package var line: Int?
  /// The column, in bytes from the beginning of the line.
  package var column: Int?

  init(_ reason: String) {
    self.reason = reason
  }

  /// - Parameter offset: the place in `bytes`, the beginning of the file.
  init(_ reason: String, in bytes: [UInt8], at offset: Int, lineBreak: UInt8) {
    self.reason = reason
    let before = bytes[..<min(offset, bytes.count)]
    line = before.count { $0 == lineBreak } + 1
    column = before.count - (before.lastIndex(of: lineBreak).map { $0 + 1 } ?? 0) + 1
  }
}
