// Docs/Decisions/README.md is how people find a decision, so it lists every page, once, with a true
// status.

import Testing

@Suite struct `The index of decisions` {
  @Test func `Each page is in it once, with a status that is true`() throws {
    let files = SourceTree.shared.files.filter { $0.isIn("Docs/Decisions/") }
    let index = try #require(files.first { $0.name == "README.md" })
    let pages = files.filter { $0.name != "README.md" }
    #expect(pages.count > 60)
    for finding in DecisionIndex.findings(in: index, pages: pages) {
      Issue.record("\(finding)")
    }
  }

  @Test func `A true index has no findings`() {
    #expect(findings(rows: [one, two]).isEmpty)
    #expect(findings(rows: [one, two], folders: true).isEmpty)
    let history = "| [0001](0001-a.md) | history | A. |"
    #expect(findings(rows: [history, two], first: "# 1. A").isEmpty)
  }

  @Test(arguments: [
    (["one"], "0002-b.md is in the index 0 times"),
    (["one", "two", "two"], "0002-b.md is in the index 2 times"),
    (["one", "two", "| [0003](0003-c.md) | holds | C. |"], "there is no page 0003-c.md"),
    (["one", "| [0003](0002-b.md) | holds | B. |"], "0002-b.md has another number than 0003"),
    (["one", "| [0002](0002-b.md) | true | B. |"], "'true' is no status"),
    (["one", "| [0002](0002-b.md) | holds |  |"], "0002-b.md has no sentence"),
    (["| [0001](0001-a.md) | replaced by 0007 | A. |", "two"], "there is no page 0007"),
    (["| [0001](0001-a.md) | holds | A. |", "two"], "0001-a.md says that it was replaced"),
    (
      ["one", "| [0002](0002-b.md) | replaced by 0001 | B. |"],
      "the first line of 0002-b.md does not say that 0001 replaced it"
    ),
  ])
  func `A mistake is found`(rows: [String], reason: String) {
    let rows = rows.map { $0 == "one" ? one : $0 == "two" ? two : $0 }
    #expect(findings(rows: rows).contains { $0.reason == reason }, "\(findings(rows: rows))")
  }

  private let one = "| [0001](0001-a.md) | replaced by 0002 | A. |"
  private let two = "| [0002](0002-b.md) | holds | B. |"

  /// The findings in an index of `rows` over two pages, the first of which begins with `first`.
  private func findings(
    rows: [String], folders: Bool = false,
    first: String = "# 1. A (replaced by [2](0002-b.md))"
  ) -> [Finding] {
    let rows = folders ? rows.map { $0.replacing(".md) |", with: ".md) | Blocks |") } : rows
    let pages = [("0001-a.md", first), ("0002-b.md", "# 2. B")].map {
      SourceFile(path: "Docs/Decisions/\($0)", text: "\($1)\n")
    }
    let text = "# Decisions\n\n" + rows.joined(separator: "\n") + "\n"
    return DecisionIndex.findings(
      in: SourceFile(path: "Docs/Decisions/README.md", text: text), pages: pages)
  }
}

/// The index's row of one page: `| [0009](0009-compaction.md) | … | holds | a sentence |`, with the
/// page's folder in the second column if a floor has folders.
private struct DecisionIndex {
  let line: Int
  let number: String
  let page: String
  let status: String
  let sentence: String

  private init?(_ text: String, line: Int) {
    let cells = text.split(separator: "|", omittingEmptySubsequences: false)
      .map { String($0).trimmed }
    guard cells.count == 5 || cells.count == 6,
      let link = cells[1].wholeMatch(of: #/\[(\d{4})\]\(([^)]+)\)/#)
    else { return nil }
    self.line = line
    number = String(link.output.1)
    page = String(link.output.2)
    status = cells[cells.count - 3]
    sentence = cells[cells.count - 2]
  }

  static func findings(in index: SourceFile, pages: [SourceFile]) -> [Finding] {
    let entries = index.lines.enumerated().compactMap { Self($0.element, line: $0.offset) }
    let counts = pages.compactMap { page in
      let count = entries.count { $0.page == page.name }
      let reason = "\(page.name) is in the index \(count) times"
      return count == 1 ? nil : index.finding(line: 0, reason)
    }
    let reasons = entries.flatMap { entry in
      entry.reasons(among: pages).map { index.finding(line: entry.line, $0) }
    }
    return counts + reasons
  }

  /// The faults of the entry.
  private func reasons(among pages: [SourceFile]) -> [String] {
    guard let file = pages.first(where: { $0.name == page }) else {
      return ["there is no page \(page)"]
    }
    var reasons: [String] = []
    if !page.hasPrefix("\(number)-") {
      reasons.append("\(page) has another number than \(number)")
    }
    if sentence.isEmpty { reasons.append("\(page) has no sentence") }
    let first = file.lines.first ?? ""
    if let match = status.wholeMatch(of: #/replaced by (\d{4})/#) {
      let other = match.output.1
      if !pages.contains(where: { $0.name.hasPrefix("\(other)-") }) {
        reasons.append("there is no page \(other)")
      } else if !first.contains("replaced by [") || !first.contains("](\(other)-") {
        reasons.append("the first line of \(page) does not say that \(other) replaced it")
      }
    } else if !["holds", "history"].contains(status) {
      reasons.append("'\(status)' is no status")
    } else if first.contains("replaced by [") {
      reasons.append("\(page) says that it was replaced")
    }
    return reasons
  }
}

extension String {
  fileprivate var trimmed: String {
    String(drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
  }
}
