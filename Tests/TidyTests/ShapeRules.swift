// The shape of a file: it says why it exists, and it is short enough to be read.

extension Rule {
  static let maximumLines = 500
  static let maximumColumns = 100

  static let shape = [
    Rule(
      "Every Swift file begins with its reason",
      planted: Sample("Sources/Ondol/A.swift", "import Logging\n\n// Late.\n", line: 1),
      innocent: [
        Sample("Sources/Ondol/A.swift", "// Holds what the reader of a file is told first.\n"),
        Sample("Package.swift", "// swift-tools-version: 6.3\n"),
      ]
    ) { file, _ in
      guard file.isSwift, file.name != "Package.swift" else { return [] }
      let head = file.lines.prefix { $0.hasPrefix("//") && !$0.hasPrefix("///") }
      let words = head.joined(separator: " ").split(separator: " ").filter { $0 != "//" }
      return words.count >= 5
        ? [] : [file.finding(line: 0, "begin with a comment that says why this file exists")]
    },

    Rule(
      "A Swift file has at most \(maximumLines) lines",
      planted: Sample(
        "Sources/Ondol/A.swift", String(repeating: "a\n", count: maximumLines + 1),
        line: maximumLines + 1),
      innocent: [
        Sample("Sources/Ondol/A.swift", String(repeating: "a\n", count: maximumLines)),
        Sample("Docs/A.md", String(repeating: "a\n", count: maximumLines + 1)),
      ]
    ) { file, _ in
      // The empty piece after the last line break is no line.
      let count = file.lines.count - (file.lines.last == "" ? 1 : 0)
      guard file.isSwift, count > maximumLines else { return [] }
      return [file.finding(line: count - 1, "\(count) lines: split it")]
    },

    Rule(
      "A line of Swift has at most \(maximumColumns) columns",
      planted: Sample(
        "Tests/OndolTests/A.swift", "\n" + String(repeating: "한", count: maximumColumns + 1),
        line: 2),
      innocent: [Sample("Sources/Ondol/A.swift", String(repeating: "한", count: maximumColumns))]
    ) { file, _ in
      guard file.isSwift else { return [] }
      return file.lines.indices.filter { file.lines[$0].count > maximumColumns }
        .map { file.finding(line: $0, "\(file.lines[$0].count) columns") }
    },
  ]
}
