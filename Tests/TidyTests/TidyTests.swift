// Reads the project's sources and enforces the rules of the house that the compiler cannot check.
// On no path: this is the broom.

import Testing

@Suite struct `The house is tidy` {
  @Test(arguments: Rule.all)
  func `The sources keep the rule`(_ rule: Rule) {
    for finding in rule.findings(in: .shared) {
      // Reported at the place itself, so that an editor or a log leads there.
      let place = SourceLocation(
        fileID: "ondol/\(finding.path)", filePath: finding.path, line: finding.line, column: 1)
      Issue.record("\(finding)", sourceLocation: place)
    }
  }

  @Test(arguments: Rule.all)
  func `The rule finds what was planted, where it was planted`(_ rule: Rule) {
    let found = rule.findings(in: rule.planted.tree)
    #expect(found.map(\.line) == [rule.planted.line], "\(found)")
  }

  @Test(arguments: Rule.all)
  func `The rule lets the innocent go`(_ rule: Rule) {
    for sample in rule.innocent {
      let found = rule.findings(in: sample.tree)
      #expect(found.isEmpty, "\(found)")
    }
  }

  @Test func `The tree was found, with both floors in it`() {
    let paths = SourceTree.shared.paths
    #expect(paths.contains("Package.swift"))
    #expect(paths.contains("Sources/OndolEngine"))
    #expect(paths.contains("Sources/Ondol"))
    #expect(SourceTree.shared.files.count > 20)
  }

  @Test func `Comments and strings are blanked, code and columns stay`() {
    let text = ##"""
      let a = "try! \(b as! C) \" //" // try!
      /* one /* two */ try! */ let d = 1
      let e = #"raw " \(f) \#(g)"# + "h"
      let i = """
        j "k" \(l)
        """ + m
      """##
    let expected = ##"""
      let a = "      (b as! C)      "
                               let d = 1
      let e = #"             (g)"# + " "
      let i = """
               (l)
        """ + m
      """##
    let actual = CodeText.withoutCommentsAndStrings(text)
    #expect(trimmed(actual) == trimmed(expected))
    #expect(actual.count == text.count)
  }

  private func trimmed(_ text: String) -> [String] {
    text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
      String(line.reversed().drop { $0 == " " }.reversed())
    }
  }
}
