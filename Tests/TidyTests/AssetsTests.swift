// The console's pages are embedded as text that a script writes: who changes a page runs it.

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
      let text = Self.shipped(try String(contentsOf: web.appending(path: page), encoding: .utf8))
      #expect(
        embedded.contains("    \"\(page)\": ##\"\"\"\n\(text)\n\"\"\"##,\n"),
        "\(page) has changed: run Scripts/console-assets")
    }
  }

  /// A page without indentation, empty lines and comments on lines of their own.
  private static func shipped(_ text: String) -> String {
    var shipped = ""
    var isComment = false
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      let bare = line.trimmingCharacters(in: .whitespaces)
      isComment = isComment || bare.hasPrefix("/*")
      if !bare.isEmpty, !isComment, !bare.hasPrefix("//") { shipped += bare + "\n" }
      isComment = isComment && !bare.contains("*/")
    }
    return shipped
  }
}
