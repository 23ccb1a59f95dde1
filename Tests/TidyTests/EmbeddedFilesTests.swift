// The C compiler embeds the console's pages and the template of `ondol new` file by file. People
// maintain the lists of files, so this test finds missing and misspelt entries.

import Foundation
import Testing

@Suite struct `Embedded files` {
  private static let lists = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "Sources/COndolFiles")

  @Test(arguments: [
    ("console.c", "../OndolConsole/Web", 20), ("template.c", "../../Docs/Templates/service", 8),
  ])
  func `Each file of a folder is embedded once, under its name`(
    list: String, folder: String, least: Int
  ) throws {
    let text = try String(contentsOf: Self.lists.appending(path: list), encoding: .utf8)
    let form =
      #/\{"([^"]+)", \(const unsigned char\[\]\)\{\n#embed "([^"]+)" suffix\(, 0\) if_empty\(0\)\n/#
    let entries = text.matches(of: form).map { "\($0.output.1): \($0.output.2)" }
    let files = Self.files(in: Self.lists.appending(path: folder).standardizedFileURL)
    #expect(files.count > least)
    // The repository's own tools would obey the template's `.gitignore`.
    let expected = files.map { "\($0 == "gitignore" ? ".gitignore" : $0): \(folder)/\($0)" }
    #expect(entries.sorted() == expected.sorted())
    #expect(text.matches(of: /#embed/).count == entries.count, "an entry has another form")
  }

  /// The files below `folder`, except for those that a build of the template leaves there.
  private static func files(in folder: URL) -> [String] {
    let top = folder.path(percentEncoded: false)
    let names = FileManager.default.enumerator(atPath: top)?.allObjects as? [String] ?? []
    return names.filter { !$0.hasPrefix(".") && $0 != "Package.resolved" }
      .filter { (try? String(contentsOf: folder.appending(path: $0), encoding: .utf8)) != nil }
  }
}
