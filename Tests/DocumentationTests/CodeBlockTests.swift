// Every block of Swift code in the README and in the pages of the documentation compiles: in Swift
// 6 mode, without warnings, against the current modules. A page that shows a removed call, or one
// without a necessary `try`, fails here with its line.

import Foundation
import Testing

@Suite struct `Code in the documentation` {
  @Test func `Every block compiles, in its place in the page`() async throws {
    let one = ProcessInfo.processInfo.environment["ONDOL_PAGE"]
    let all = try Documents.scripts()
    #expect(all.contains { $0.page == "README.md" })
    let scripts = one.map { page in all.filter { $0.page.contains(page) } } ?? all
    try #require(!scripts.isEmpty, "pages were not found, or have no code")
    for message in try await messages(about: scripts) {
      let place = SourceLocation(
        fileID: "ondol/\(message.file)", filePath: message.file, line: message.line, column: 1)
      Issue.record("\(message)", sourceLocation: place)
    }
  }

  @Test func `A block that does not compile is found, with its line and the compiler's words`()
    async throws
  {
    let page = """
      # A page

      ```swift
      import Ondol

      let database = try await Database.inMemory()
      ```

      Prose, and what is not Swift:

      ```
      let database = 1
      ```

      1. An item

         ```swift
         let items = database.collection("items")
         items.document("lamp").explode()
         ```

      <!-- a new script -->
      ```swift
      import Ondol

      let database = try await Database.inMemory()
      var unused: Int { let one = 1; return 2 }
      ```

      <!-- a manifest -->

      ```swift
      // swift-tools-version: 6.3
      import PackageDescription

      let package = Package(name: "shop", wares: [])
      ```
      """
    let scripts = PageScript.scripts(ofPage: "Docs/Page.md", text: page)
    #expect(scripts.map(\.line) == [3, 23, 32])
    let messages = try await messages(about: scripts)
    #expect(messages.map(\.line) == [19, 27, 36], "\(messages)")
    #expect(messages.allSatisfy { $0.file == "Docs/Page.md" })
    #expect(messages.first?.text.contains("has no member 'explode'") == true)
    #expect(messages.last?.text.contains("wares") == true)
  }

  /// The compiler gives the errors that the guide for Firestore users describes.
  @Test func `A cast that was left over is warned of, and a map of anything refused`() async throws
  {
    let page = """
      ```swift
      import Ondol

      let database = try await Database.inMemory()
      let snapshot = try await database.document("items/lamp").getDocument()
      print(snapshot["name"] as? String ?? "")
      ```

      <!-- a new script -->
      ```swift
      import Ondol

      let database = try await Database.inMemory()
      let fields: [String: Any] = ["name": "Chair"]
      try await database.document("items/chair").setData(fields)
      ```
      """
    let messages = try await messages(about: PageScript.scripts(ofPage: "A.md", text: page))
    #expect(messages.map(\.line) == [6, 15], "\(messages)")
    let warning = "cast from 'Value?' to unrelated type 'String' always fails"
    #expect(messages.first?.text.contains(warning) == true)
  }

  /// The promises of the guide to typed models: each of these is a mistake that a text would hide.
  @Test func `Misspelt properties and values of other types do not compile`() async throws {
    let mistakes = [
      "_ = items.where(\\.prise < 50)",
      "_ = items.where(\\.price < \"50\")",
      "_ = items.where { $0.tags.contains(5) }",
      "_ = items.where { $0.price.hasPrefix(\"5\") }",
      "_ = items.where(\\.isNew < true)",
      "_ = items.order(by: \\.nothing)",
      "_ = items.where(\\.price < 50 && \\Other.name == \"x\")",
      "try await items.document(\"a\").update(.set(\\.price, to: \"much\"))",
      "try await items.document(\"a\").update(.increment(\\.name, by: 1))",
      "try await items.document(\"a\").setData(Other(name: \"x\"))",
      "_ = try await items.sum(\\.name) as String",
      "let item: Other? = try await items.document(\"a\").getDocument()",
    ]
    let head = """
      import Ondol

      struct Item: Codable, Sendable {
        var name: String
        var price: Int
        var isNew: Bool
        var tags: [String]
      }
      struct Other: Codable, Sendable { var name: String }
      let database = try await Database.inMemory()
      let items = try database.collection("items", of: Item.self)
      """
    func page(_ lines: [String]) -> String {
      "```swift\n\(head)\n\(lines.joined(separator: "\n"))\n```\n"
    }
    let right = page([
      "_ = items.where(\\.price < 50)", "_ = items.where { $0.tags.contains(\"x\") }",
    ])
    #expect(try await messages(about: PageScript.scripts(ofPage: "A.md", text: right)).isEmpty)
    let pages = mistakes.enumerated().flatMap { number, mistake in
      PageScript.scripts(ofPage: "\(number)", text: page([mistake]))
    }
    let refused = Set(try await messages(about: pages).map(\.file))
    let compiled = mistakes.indices.filter { !refused.contains("\($0)") }.map { mistakes[$0] }
    #expect(compiled == [])
  }

  @Test func `A page without code has no script, and an open fence ends with the page`() {
    #expect(
      PageScript.scripts(ofPage: "A.md", text: "# A\n\n`let a = 1`\n\n    let b = 2\n").isEmpty)
    let open = PageScript.scripts(ofPage: "A.md", text: "```swift\nlet a = 1\n")
    #expect(open.first?.source.contains("let a = 1") == true)
  }

  /// The compiler's messages for the scripts, in order. Two run at a time, each in a process of its
  /// own.
  private func messages(about scripts: [PageScript]) async throws -> [CompilerMessage] {
    let scratch = FileManager.default.temporaryDirectory
      .appending(path: "ondol-pages-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: scratch) }
    let check = TypeCheck(try BuildFolder(), scratch: scratch)
    let groupOf = (Int, [CompilerMessage]).self
    return try await withThrowingTaskGroup(of: groupOf) { group -> [CompilerMessage] in
      var found: [Int: [CompilerMessage]] = [:]
      for (number, script) in scripts.enumerated() {
        if number >= 2, let (done, messages) = try await group.next() { found[done] = messages }
        group.addTask { (number, try await check.messages(about: script, number: number)) }
      }
      for try await (done, messages) in group { found[done] = messages }
      return scripts.indices.flatMap { found[$0] ?? [] }
    }
  }
}
