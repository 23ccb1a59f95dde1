// Texts of documents compare by their bytes. Swift's own comparisons use Unicode's canonical
// equivalence, so the code that handles names and values must not use them, as far as a pattern can
// recognise a text.

extension Rule {
  static let texts = [
    Rule(
      "Names and texts of documents are compared by their bytes",
      planted: Sample(
        "Sources/Ondol/Query/A.swift", "// A\nlet a = other.name == value\n", line: 2),
      innocent: [
        Sample("Sources/Ondol/Query/A.swift", "let a = isSame(other.name, name)\n"),
        Sample("Sources/Ondol/Query/A.swift", "let a = names.count == 1 && text == nil\n"),
        Sample("Sources/Ondol/Query/A.swift", "let a = compare(name, other) == 0\n"),
        Sample("Sources/Ondol/Query/A.swift", "if id == \".\" || field == .documentID {}\n"),
        Sample("Sources/Ondol/Contents/ContentSniffer.swift", "let a = text == word\n"),
      ]
    ) { file, _ in
      guard file.hasTexts else { return [] }
      return file.findings(
        of:
          #/
          \b(?:name|names|text|segments|documentID|collectionIDs|root|prefix)(?:\[\w+\])?
          \s[!=]=\s(?![.\d"\-]|nil\b)
          /#,
        "compare texts with `isSame`, `ExactText` or `ValueOrder`")
        + file.findings(
          of:
            #/
            [\w\])]\s[!=]=\s(?:\w+\.)*
            (?:name|names|text|segments|documentID|collectionIDs|root)\b(?![.(])
            /#,
          "compare texts with `isSame`, `ExactText` or `ValueOrder`")
    },

    Rule(
      "What texts of documents begin with is told by their bytes",
      planted: Sample("Sources/Ondol/Values/A.swift", "let a = text.hasPrefix(b)\n", line: 1),
      innocent: [
        Sample("Sources/Ondol/Values/A.swift", "case .hasPrefix(let prefix): text.utf8\n"),
        Sample("Sources/Ondol/Values/A.swift", "let a = condition == .hasPrefix(b)\n"),
      ]
    ) { file, _ in
      guard file.hasTexts else { return [] }
      return file.findings(
        of: /[\w\])]\.has(?:Prefix|Suffix)\(/, "ask `utf8.starts(with:)`")
    },

    Rule(
      "No set or dictionary takes two spellings of a text for one",
      planted: Sample(
        "Sources/Ondol/Documents/A.swift", "var a = 1\nlet b = fields[name]\n", line: 2),
      innocent: [
        Sample("Sources/Ondol/Documents/A.swift", "let b = fields[exactly: name]\n"),
        Sample("Sources/Ondol/Documents/A.swift", "let a: Set<ExactText> = []\n"),
        Sample("Sources/Ondol/Values/ExactNames.swift", "var names: Set<String> = []\n"),
      ]
    ) { file, _ in
      guard file.hasTexts else { return [] }
      return file.findings(of: /\bSet<String>/, "keep `ExactText`s")
        + file.findings(
          of:
            /\b(?:fields|before|after|stored|visible|plain|nested|data)\[(?:name|first|text|key)\]/,
          "ask `[exactly:]`, and `put(_:at:)`")
    },
  ]
}

extension SourceFile {
  /// Whether the file handles names and values of documents. The one place that makes them exact is
  /// excluded, and so are the house's own names.
  fileprivate var hasTexts: Bool {
    let folders = [
      "Catalog", "Commits", "Documents", "Health", "Keys", "Observation", "Query", "Upkeep",
      "Values",
    ]
    let ownNames = ["Keys/TreePath.swift", "Values/ExactNames.swift"]
    return folders.contains { isIn("Sources/Ondol/\($0)/") }
      && !ownNames.contains { path == "Sources/Ondol/\($0)" }
  }
}
