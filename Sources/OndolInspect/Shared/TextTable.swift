// Rows in columns, for a person at a terminal. Widths are measured in terminal cells, so that
// Korean names and emoji, which are two cells wide, line up. Long cells are truncated, because a
// table is only for viewing and a file keeps everything. Invisible characters, including line
// breaks, appear in a visible form.

import OndolJSON

/// A table that is printed once all its rows are known.
struct TextTable {
  static let maximumCellWidth = 40

  let columns: [String]
  /// Columns of numbers, which are aligned to the right.
  var numericColumns: Set<String> = []
  private var rows: [[String]] = []

  init(columns: [String]) {
    self.columns = columns
  }

  var isEmpty: Bool { rows.isEmpty }

  mutating func add(_ cells: [String]) {
    rows.append(cells.map(Self.shortened))
  }

  /// The lines, starting with the column names.
  var lines: [String] {
    let heads = columns.map { VisibleText.line($0) }
    let widths = heads.indices.map { index in
      ([heads[index]] + rows.map { $0[index] }).map(Self.width).max() ?? 0
    }
    let rule = widths.map { String(repeating: "-", count: $0) }
    return ([heads, rule] + rows).map { row in
      let cells = row.indices.map { index in
        let space = String(repeating: " ", count: widths[index] - Self.width(row[index]))
        return numericColumns.contains(columns[index]) ? space + row[index] : row[index] + space
      }
      let line = cells.joined(separator: "  ")
      return String(
        line[..<(line.lastIndex { $0 != " " }.map(line.index(after:)) ?? line.startIndex)])
    }
  }

  /// The text on one line, truncated if it is too long for a cell.
  private static func shortened(_ text: String) -> String {
    let line = VisibleText.line(text)
    guard width(line) > maximumCellWidth else { return line }
    var cells = 0
    let kept = line.prefix { character in
      cells += width(of: character)
      return cells < maximumCellWidth
    }
    return kept + "…"
  }

  static func width(_ text: String) -> Int {
    text.reduce(0) { $0 + width(of: $1) }
  }

  /// Two cells for East Asian wide characters and for emoji.
  private static func width(of character: Character) -> Int {
    guard let scalar = character.unicodeScalars.first else { return 0 }
    if scalar.properties.isEmojiPresentation || wideRanges.contains(where: { $0 ~= scalar.value }) {
      return 2
    }
    return 1
  }

  private static let wideRanges: [ClosedRange<UInt32>] = [
    0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x33FF, 0x3400...0x4DBF, 0x4E00...0x9FFF,
    0xA000...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
    0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x20000...0x3FFFD,
  ]
}
