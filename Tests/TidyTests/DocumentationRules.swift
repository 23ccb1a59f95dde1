// The documentation for users: every public declaration has its sentence, and links in the
// documents lead somewhere.

extension Rule {
  static let documentation = [
    Rule(
      "Every public declaration of Ondol and of its test kit has a doc comment",
      planted: Sample(
        "Sources/Ondol/A.swift", "/// A.\npublic struct A {\n  public var b: Int { 1 }\n}\n",
        line: 3),
      innocent: [
        Sample(
          "Sources/Ondol/A.swift",
          "/// A.\n@frozen\n@available(\n  macOS 26, *)\npublic struct A {}\npublic import B\n"
        ),
        Sample(
          "Sources/Ondol/A.swift",
          "extension A: Hashable {\n  public func hash(into hasher: inout Hasher) {}\n}\n"),
      ]
    ) { file, _ in
      guard
        file.isIn(
          "Sources/Ondol/", "Sources/OndolAccounts/", "Sources/OndolConsole/",
          "Sources/OndolPostgres/", "Tests/OndolTestKit/Product/"), file.isSwift
      else {
        return []
      }
      return file.code.indices
        .filter { file.code[$0].contains(publicDeclaration) && !file.code[$0].contains(witness) }
        .filter { !file.hasDocumentation(above: $0) }
        .map { file.finding(line: $0, "say in a sentence what this is") }
    },

    Rule(
      "Relative links in the documents lead to files",
      planted: Sample("Docs/A.md", "# A\n\nSee [b](Decisions/b.md#c).\n", line: 3),
      innocent: [
        Sample(
          "Docs/A.md", "[one](https://a.b/c.md) [two](#part) [A](A.md) [up](../Docs/A.md)\n")
      ]
    ) { file, tree in
      guard file.path.hasSuffix(".md"), file.isIn("Docs/") || !file.path.contains("/") else {
        return []
      }
      return file.lines.indices.flatMap { index in
        file.lines[index].matches(of: /\]\(([^)\s]+)\)/).map { String($0.output.1) }
          .filter { !tree.contains(link: $0, from: file.path) }
          .map { file.finding(line: index, "nothing is at \($0)") }
      }
    },
  ]

  private static var publicDeclaration: Regex<AnyRegexOutput> {
    let attributes = #"(?:@\w+(?:\([^)]*\))?\s+)*"#
    let modifiers = #"(?:(?:static|final|nonisolated|mutating|indirect|override|consuming)\s+)*"#
    return pattern(#"^\s*"# + attributes + modifiers + #"public\s+(?!import\b|extension\b)"#)
  }

  // Members whose sentence is at the protocol that requires them. Documentation tools inherit it.
  private static var witness: Regex<AnyRegexOutput> {
    let functions = #"\bfunc\s+(?:==|<|hash\(into|encode\(to|makeAsyncIterator|next\()"#
    let properties = #"\bvar\s+(?:description|debugDescription|hashValue|id)\b"#
    let initialisers = #"\binit\((?:from decoder|\w+Literal)\b"#
    let types = #"\btypealias\s+(?:Element|Failure|AsyncIterator)\b"#
    return pattern([functions, properties, initialisers, types].joined(separator: "|"))
  }
}

extension SourceFile {
  /// True if a `///` line precedes line `index`, ignoring attributes in between.
  fileprivate func hasDocumentation(above index: Int) -> Bool {
    var place = index - 1
    while place >= 0 {
      let line = lines[place].drop { $0 == " " }
      if line.hasPrefix("///") { return true }
      let isAttribute = line.hasPrefix("@") || line.hasSuffix(")") && !line.contains("{")
      guard isAttribute else { return false }
      place -= 1
    }
    return false
  }
}

extension SourceTree {
  /// True if a link in the file at `path` leads out of the project or to something in it.
  fileprivate func contains(link: String, from path: String) -> Bool {
    guard !link.hasPrefix("#"), !link.contains("://"), !link.hasPrefix("mailto:") else {
      return true
    }
    var parts = path.split(separator: "/").dropLast().map(String.init)
    for part in link.prefix(while: { $0 != "#" }).split(separator: "/") where part != "." {
      if part == ".." {
        guard parts.popLast() != nil else { return false }
      } else {
        parts.append(String(part))
      }
    }
    return parts.isEmpty || paths.contains(parts.joined(separator: "/"))
  }
}
