// The README's example, compiled and run. The test compares its own source with the README, so that
// neither can change alone.

import Foundation
import Ondol
import Testing

@Suite struct `The README` {
  let scratch = Result { try ScratchDirectory() }

  @Test func `Its example does what it says`() async throws {
    let scratch = try scratch.get()
    var printed: [String] = []
    func print(_ items: Any...) {
      printed.append(items.map { "\($0)" }.joined(separator: " "))
    }
    // Begin.
    struct Item: Codable {
      var name: String
      var price: Int
      var count: Int
      var imagePath: [String] = []
    }

    let database = try await Database.open(at: scratch.path("shop.ondol"))
    let items = database.collection("upload")

    try await items.document("lamp").setData(
      from: Item(name: "라탄 조명", price: 39_000, count: 2))
    try await items.document("chair").setData(["name": "원목 의자", "price": 82_000, "count": 5])

    let result = try await items.document("lamp").updateData(
      ["count": FieldValue.increment(-1), "imagePath": FieldValue.arrayUnion(["lamp.png"])],
      returning: .after)
    print(result.after?["count"] as Int? ?? 0)  // 1

    try await items.createIndex(on: ["price"])
    let found = try await items.whereField("price", in: [39_000, 82_000])
      .order(by: "price").getDocuments()
    for document in found.documents {
      print(document.documentID, document["name"] as String? ?? "")  // lamp, then chair
    }
    try await database.close()
    // End.
    #expect(printed == ["1", "lamp 라탄 조명", "chair 원목 의자"])
  }

  @Test func `Its example is the one that is tested`() throws {
    let file = URL(filePath: #filePath)
    var root = file
    for _ in 0..<4 { root.deleteLastPathComponent() }
    let readme = try String(contentsOf: root.appending(path: "README.md"), encoding: .utf8)
    let example = lines(of: readme, from: "```swift", to: "```").dropFirst(2)

    let source = try String(contentsOf: file, encoding: .utf8)
    let tested = lines(of: source, from: "    // Begin.", to: "    // End.").map { line in
      line.replacing("    ", with: "", maxReplacements: 1)
        .replacing("scratch.path(\"shop.ondol\")", with: "\"shop.ondol\"")
    }
    #expect(Array(example) == tested)
  }

  private func lines(of text: String, from first: String, to last: String) -> [String] {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    return Array(lines.drop { $0 != first }.dropFirst().prefix { $0 != last })
  }
}
