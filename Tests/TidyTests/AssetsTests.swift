// The console's pages and the files of `ondol new` are embedded as text that scripts write: who
// changes one of them runs its script.

import Foundation
import Testing

@Suite struct `The console's assets` {
  private static let module = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "Sources/OndolConsole")

  @Test func `What is embedded is what the pages say`() throws {
    let embedded = try String(
      contentsOf: Self.module.appending(path: "Assets.swift"), encoding: .utf8)
    let web = Self.module.appending(path: "Web")
    let pages = try FileManager.default.contentsOfDirectory(atPath: web.path(percentEncoded: false))
    #expect(pages.count > 20)
    for page in pages {
      let text = Self.shipped(
        try String(contentsOf: web.appending(path: page), encoding: .utf8),
        isStyle: page.hasSuffix(".css"))
      #expect(
        embedded.contains("    \"\(page)\": ##\"\"\"\n\(text)\n\"\"\"##,\n"),
        "\(page) has changed: run Scripts/console-assets")
    }
  }

  /// The limit is on what an app carries and a browser fetches. The sources have a sixth more:
  /// indentation, empty lines, and comments on lines of their own, which are left out of that.
  @Test func `What is embedded and travels is 150 kB at most`() throws {
    let web = Self.module.appending(path: "Web")
    let pages = try FileManager.default.contentsOfDirectory(atPath: web.path(percentEncoded: false))
    let bytes = try pages.reduce(0) { sum, page in
      let text = try String(contentsOf: web.appending(path: page), encoding: .utf8)
      return sum + Self.shipped(text, isStyle: page.hasSuffix(".css")).utf8.count
    }
    #expect(bytes > 100_000)
    #expect(bytes <= 150_000)
  }

  /// A page without indentation, empty lines and comments on lines of their own, and a style sheet
  /// without blanks that mean nothing.
  private static func shipped(_ text: String, isStyle: Bool) -> String {
    let blanks = [
      (": ", ":"), (" {", "{"), ("{ ", "{"), ("; ", ";"), (";}", "}"), (" }", "}"), (", ", ","),
    ]
    var shipped = ""
    var isComment = false
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      let bare = line.trimmingCharacters(in: .whitespaces)
      isComment = isComment || bare.hasPrefix("/*")
      if !bare.isEmpty, !isComment, !bare.hasPrefix("//") {
        let isPlain = isStyle && !bare.contains("\"")
        let short = isPlain ? blanks.reduce(bare) { $0.replacing($1.0, with: $1.1) } : bare
        shipped += short + "\n"
      }
      isComment = isComment && !bare.contains("*/")
    }
    return shipped
  }
}

@Suite struct `The template of ondol new` {
  private static let root = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  @Test func `What is embedded is what the files say`() throws {
    let embedded = try String(
      contentsOf: Self.root.appending(path: "Sources/OndolInspect/Template/TemplateFiles.swift"),
      encoding: .utf8)
    let template = Self.root.appending(path: "Docs/Templates/service")
    let top = template.path(percentEncoded: false)
    let names = FileManager.default.enumerator(atPath: top)?.allObjects as? [String] ?? []
    let files = names.filter { !$0.hasPrefix(".") && $0 != "Package.resolved" }
      .filter { !template.appending(path: $0).hasDirectoryPath }
    #expect(files.count > 8)
    for file in files {
      let place = template.appending(path: file)
      guard let text = try? String(contentsOf: place, encoding: .utf8) else { continue }
      let name = file == "gitignore" ? ".gitignore" : file
      let isThere = embedded.contains("    \"\(name)\": ##\"\"\"\n\(text)\n\"\"\"##,\n")
      #expect(isThere, "\(file) has changed: run Scripts/template-files")
    }
  }
}
