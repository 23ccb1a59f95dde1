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
      var photo: BlobReference?
    }

    let database = try await Database.open(at: scratch.path("shop.ondol"))
    let items = database.collection("items")

    let photo = try await database.storage.put(Array("not quite a PNG".utf8))
    try await items.document("lamp").setData(from: Item(name: "라탄 조명", price: 39, photo: photo))
    try await items.document("chair").setData(["name": "원목 의자", "price": 82])

    let cheap = items.whereField("price", in: [29, 39, 49]).order(by: "price")
    for try await snapshot in cheap.snapshots {
      print(snapshot.documents.map(\.documentID))  // ["lamp"], then ["lamp", "chair"]
      if snapshot.documents.count == 2 { break }
      try await items.document("chair").updateData(["price": FieldValue.increment(-33)])
    }

    let lamp = try await items.document("lamp").getDocument().data(as: Item.self)
    if let photo = lamp.photo { print(try await database.storage.data(of: photo).count) }  // 15
    try await database.close()
    // End.
    #expect(printed == [#"["lamp"]"#, #"["lamp", "chair"]"#, "15"])
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
