// The form of figures: three digits in aligned tables, and every significant digit in rows for
// programs.

import Foundation

/// Returns a table with aligned columns, from its heading and its rows.
package func markdown(_ cells: [[String]]) -> [String] {
  let widths = cells[0].indices.map { column in cells.map { $0[column].count }.max() ?? 0 }
  var lines = cells.map { row in
    "| "
      + zip(row, widths)
      .map { text, width in text + String(repeating: " ", count: width - text.count) }
      .joined(separator: " | ") + " |"
  }
  lines.insert(
    "|" + widths.map { String(repeating: "-", count: $0 + 2) }.joined(separator: "|") + "|",
    at: 1)
  return lines
}

/// Three significant digits, for people.
package func short(_ value: Double) -> String {
  switch abs(value) {
  case 100...: String(Int(value.rounded()))
  case 10..<100: String(format: "%.1f", value)
  default: String(format: "%.2f", value)
  }
}

/// Enough digits for any use, without noise.
package func rounded(_ value: Double) -> Double {
  (value * 1_000).rounded() / 1_000
}
