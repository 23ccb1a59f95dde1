// Reads a `firestore.indexes.json`, and creates its indexes.

import Foundation
import OndolJSON
import OndolTestKit
import Testing

@testable import Ondol

@Suite("firestore.indexes.json")
struct FirestoreIndexTests {
  private static let file = """
    {"indexes": [
      {"collectionGroup": "items", "queryScope": "COLLECTION", "fields": [
        {"fieldPath": "tags", "arrayConfig": "CONTAINS"},
        {"fieldPath": "createdAt", "order": "DESCENDING"},
        {"fieldPath": "__name__", "order": "ASCENDING"}], "density": "SPARSE_ALL"},
      {"collectionGroup": "posts", "queryScope": "COLLECTION_GROUP", "fields": [
        {"fieldPath": "author.name", "order": "ASCENDING"},
        {"fieldPath": "likes", "order": "DESCENDING"}]},
      {"collectionGroup": "items", "fields": [
        {"fieldPath": "color", "order": "ASCENDING"},
        {"fieldPath": "embedding", "vectorConfig": {"dimension": 256, "flat": {}}}]}],
     "fieldOverrides": [
      {"collectionGroup": "items", "fieldPath": "sizes", "indexes": [
        {"order": "ASCENDING", "queryScope": "COLLECTION"},
        {"arrayConfig": "CONTAINS", "queryScope": "COLLECTION"}]},
      {"collectionGroup": "sessions", "fieldPath": "endsAt", "ttl": true, "indexes": []},
      {"collectionGroup": "items", "fieldPath": "*", "indexes": [{"order": "ASCENDING"}]}]}
    """

  @Test func `Every declaration is read, and those without an equivalent are reported`() throws {
    let declared = try FirestoreIndexes(Array(Self.file.utf8))
    #expect(
      declared.indexes == [
        .init(
          collectionID: "items", isOfGroup: false, fields: ["tags[]", "-createdAt", "__name__"]),
        .init(collectionID: "posts", isOfGroup: true, fields: ["author.name", "-likes"]),
        .init(collectionID: "items", isOfGroup: false, fields: ["sizes"]),
        .init(collectionID: "items", isOfGroup: false, fields: ["sizes[]"]),
      ])
    #expect(declared.timeToLive.map(\.field) == ["endsAt"])
    #expect(declared.others == ["index 3, of items: there is no index of vectors"])
  }

  @Test func `The tool creates them for existing collections, and otherwise at the top`()
    async throws
  {
    let scratch = try ScratchDirectory()
    let shop = scratch.path("shop.ondol")
    let file = scratch.path("firestore.indexes.json")
    try Self.file.write(toFile: file, atomically: false, encoding: .utf8)
    for path in ["users/a/items/x", "shops/b/items/y"] {
      let fields = #"{"tags":["t"],"createdAt":1,"sizes":[1]}"#
      #expect(try await scratch.ondol("put", shop, path, fields).status == 0)
    }
    let made = try await scratch.ondol("mkindexes", shop, file, "--format", "jsonl")
    #expect(made.status == 1)
    #expect(made.messages.contains("there is no index of vectors"), "\(made.messages)")
    let expected =
      ["users/any/items", "shops/any/items"].flatMap { collection in
        ["tags[],-createdAt,__name__", "sizes", "sizes[]"].map { (collection, $0) }
      } + [("posts", "author.name,-likes group"), ("sessions", "ttl endsAt")]
    let lines = expected.map { collection, index in
      #"{"schema":"mkindexes/1","collection":"\#(collection)","index":"\#(index)"}"#
    }
    #expect(Set(made.lines) == Set(lines))
    let query = try await scratch.ondol(
      "query", shop, "users/a/items", "tags array-contains 't'",
      "--order", "createdAt desc", "--explain")
    #expect(query.output.contains("index 'tags[],-createdAt,__name__'"), "\(query.output)")
    let broken = try await scratch.ondol("mkindexes", shop, shop)
    #expect(broken.status == 3)
  }

  @Test(arguments: [
    "", "[]", "{", #"{"indexes": 1}"#, #"{"indexes": [1]}"#,
    #"{"indexes": [{"collectionGroup": "a", "fields": []}]}"#,
    #"{"indexes": [{"collectionGroup": "a", "fields": [{"fieldPath": "b"}]}]}"#,
    #"{"indexes": [{"collectionGroup": "a", "fields": [{"fieldPath": "b", "order": "UP"}]}]}"#,
    #"{"indexes": [{"fields": [{"fieldPath": "b", "order": "ASCENDING"}]}]}"#,
    #"{"fieldOverrides": [{"collectionGroup": "a", "fieldPath": "b", "ttl": 1}]}"#,
  ])
  func `Any other file is refused`(text: String) {
    #expect(throws: FirestoreIndexes.Problem.self) { try FirestoreIndexes(Array(text.utf8)) }
  }
}
