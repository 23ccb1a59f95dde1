// Texts that are equal to Unicode but different in bytes. macOS decomposes Hangul in the names of
// files, so apps meet both spellings of a name sooner or later. Swift's own `==`, dictionaries and
// sets treat them as one. Here bytes count, everywhere and in the same way.

import Foundation
import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

/// 가, as people type it and as macOS spells it in a file's name.
private let (typed, taken) = ("\u{ac00}", "\u{1100}\u{1161}")
private let name = "사진 각도.jpg"
private let fileName =
  "\u{1109}\u{1161}\u{110c}\u{1175}\u{11ab} \u{1100}\u{1161}\u{11a8}"
  + "\u{1103}\u{1169}.jpg"

private func count(_ query: some QuerySource) async throws -> Int {
  try await query.query.count.getAggregation().count
}

@Suite struct SpellingTests {
  /// A scan once found nothing, an index one document, and a listener one after a while.
  @Test(arguments: [false, true])
  func `A name in a condition means exactly its bytes`(isIndexed: Bool) async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    try await items.document("1").setData([typed: 1])
    try await items.document("2").setData([taken: 1])
    if isIndexed {
      try await items.createIndex(on: ["`\(typed)`"])
      try await items.createIndex(on: ["`\(taken)`"])
      #expect(try await items.listIndexes().count == 2)
    }
    for (spelling, id) in [(typed, "1"), (taken, "2")] {
      let field = FieldPath([spelling])
      let query = items.whereField(field, isEqualTo: 1)
      var listener = query.snapshots.makeAsyncIterator()
      #expect(try await listener.next()?.documents.map(\.documentID) == [id])
      try await items.document("1").updateData(["other": id])
      try await items.document("2").updateData(["other": id])
      #expect(try await listener.next()?.documents.map(\.documentID) == [id])
      #expect(try await query.getDocuments().documents.map(\.documentID) == [id])
      #expect(try await count(query) == 1)
      #expect(try await items.order(by: field).getDocuments().count == 1)
      let sum = try await items.aggregate([.sum(field)]).getAggregation()[.sum(field)] as Int?
      #expect(sum == 1)
      let groups = try await items.query.count.group(by: field).getAggregation()
      #expect(groups.count == 1)
      let one = try await items.document(id).getDocument()
      #expect(one[field] as Int? == 1)
      let other = try await items.document(id == "1" ? "2" : "1").getDocument()
      #expect(other[field] as Int? == nil)
      let selected = try await items.select(field).getDocuments().documents
      #expect(selected.filter { !$0.data().isEmpty }.map(\.documentID) == [id])
    }
    try await database.close()
  }

  /// `updateData` once wrote into the field of the other name.
  @Test func `An update of a name's other spelling is refused, and the one can become the other`()
    async throws
  {
    let document = try await Database.underTest().document("items/1")
    try await document.setData([typed: 1, "m": [taken: 1]])
    let (one, other) = (FieldPath([typed]), FieldPath([taken]))
    for update: [FieldPath: (any FieldContent)?] in [
      [other: 2], [other: FieldValue.increment(1)], [FieldPath(["m", typed]): 2],
      [FieldPath(["x", typed]): 1, FieldPath(["x", taken]): 2],
    ] {
      let error = await #expect(throws: DatabaseError.self) {
        try await document.updateData(update)
      }
      #expect(error?.code == .invalidArgument)
      #expect(error?.message.contains("spellings") == true)
    }
    await #expect(throws: DatabaseError.self) {
      try await document.setData([taken: 2], merge: true)
    }
    try await document.updateData([other: FieldValue.delete()])
    #expect(try await document.getDocument()[one] as Int? == 1)
    let renamed = try await document.updateData(
      [one: FieldValue.delete(), other: 3] as [FieldPath: (any FieldContent)?])
    #expect(Set(renamed.changedFields) == [one, other])
    let names = try await document.getDocument().data().keys.map { Array($0.utf8) }
    #expect(names.contains(Array(taken.utf8)) && !names.contains(Array(typed.utf8)))
  }

  @Test func `Two keys of a type that are spellings of one name are refused`() async throws {
    struct Both: Encodable {
      enum Key: String, CodingKey {
        case typed, taken
        var stringValue: String { self == .typed ? "\u{ac00}" : "\u{1100}\u{1161}" }
      }
      func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(1, forKey: .typed)
        try container.encode(2, forKey: .taken)
      }
    }
    let error = #expect(throws: DatabaseError.self) { try DocumentEncoder().encode(Both()) }
    #expect(error?.message.contains("spellings") == true)
  }

  /// The two names are two symbols, so bytes may have both; a dictionary would lose one of them.
  @Test(arguments: [0, SymbolTable.maximumCount])
  func `A document on disk with both spellings is refused as damaged`(limit: Int) throws {
    let names = ["x", typed, taken]
    var symbols = SymbolTable(limit: limit)
    let encoded = try ValueEncoder.document(
      ["x": 1, typed: 2, "가나": 3], createTime: nil, symbols: &symbols)
    var bytes = encoded.bytes
    if limit == 0 {
      // 가나 has the same length as the decomposed 가.
      let place = try #require(bytes.indices.first { bytes[$0...].starts(with: "가나".utf8) })
      bytes.replaceSubrange(place..<(place + 6), with: Array(taken.utf8))
    } else {
      symbols = try SymbolTable(names: symbols.names.map { $0 == "가나" ? taken : $0 })
      #expect(symbols.names.count == names.count && symbols.hasTwoSpellings)
    }
    let view = bytes
    #expect(throws: (any Error).self) { try DocumentView(view.bytes).check(symbols) }
    #expect(throws: (any Error).self) { try DocumentView(view.bytes).fields(symbols) }
  }

  @Test(arguments: [false, true])
  func `Values are compared by their bytes, however they are asked for`(
    isIndexed: Bool
  ) async throws {
    let database = try await Database.underTest()
    let files = database.collection("files")
    #expect(name == fileName && name.utf8.count != fileName.utf8.count)
    if isIndexed {
      try await files.createIndex(on: ["name"])
      try await files.createIndex(onArray: "tags")
    }
    for (id, text) in [(typed, name), (taken, fileName)] {
      try await files.document(id).setData(["name": text, "tags": [text], "n": 1])
    }
    #expect(try await count(files) == 2)
    for (id, text, other) in [(typed, name, fileName), (taken, fileName, name)] {
      let wanted = [Array(id.utf8)]
      for query in [
        files.whereField("name", isEqualTo: text), files.whereField("name", in: [text, "x"]),
        files.whereField("tags", arrayContains: text),
        files.whereField("tags", arrayContainsAny: [text]),
        files.whereField("name", hasPrefix: String(text.unicodeScalars.prefix(1))),
        files.whereField("name", notIn: [other] as [(any FieldContent)?]),
        files.whereField(FieldPath.documentID(), isEqualTo: id),
      ] {
        let found = try await query.getDocuments().documents.map { Array($0.documentID.utf8) }
        #expect(found == wanted, "\(query)")
        var listener = query.snapshots.makeAsyncIterator()
        let heard = try await listener.next()?.documents.map { Array($0.documentID.utf8) }
        #expect(heard == wanted, "\(query)")
      }
    }
    let groups = try await files.query.count.group(by: "name").getAggregation()
    #expect(groups.map(\.aggregation.count) == [1, 1])
    let least = try await files.aggregate([.minimum("name")]).getAggregation()
    #expect(least[.minimum("name")] as Value? == .string(fileName))
    try await files.document(typed).updateData(["tags": FieldValue.arrayUnion([fileName])])
    #expect(try await files.document(typed).getDocument()["tags"]?.array?.count == 2)
    try await database.document("refs/r").setData(["file": typed, "other": taken])
    let joined = try await database.collection("refs").lookup("file", in: "files", as: "f")
      .lookup("other", in: "files", as: "o").getDocuments().documents
    #expect(joined[0]["f.name"] as Value? == .string(name))
    #expect(joined[0]["o.name"] as Value? == .string(fileName))
    try await database.close()
  }

  /// Equal queries share a live result, and these were once equal to Swift.
  @Test func `Queries that differ in a spelling are two`() async throws {
    let items = try await Database.underTest().collection("items")
    #expect(items.select(FieldPath([typed])) != items.select(FieldPath([taken])))
    #expect(items.whereField("a", hasPrefix: typed) != items.whereField("a", hasPrefix: taken))
    #expect(
      LookupStep(field: ["a"], collection: try CollectionPath("c"), name: typed)
        != LookupStep(field: ["a"], collection: try CollectionPath("c"), name: taken))
    try await items.document("1").setData([typed: 1])
    let cursor = try #require(try await items.order(by: FieldPath([typed])).getDocuments().cursor)
    await #expect(throws: DatabaseError.self) {
      try await items.order(by: FieldPath([taken])).start(after: cursor).getDocuments()
    }
  }

  @Test func `Ids, collections, storage paths and keys of the tree differ by bytes`()
    async throws
  {
    let database = try await Database.underTest()
    for (number, text) in [name, fileName].enumerated() {
      try await database.collection(text).document(text).setData(["n": number])
      let stored = database.storage.reference(withPath: "files/\(text)")
      _ = try await stored.putData(Data([UInt8(number)]))
    }
    for (number, text) in [typed, taken].enumerated() {
      try await database.tree.child("names").child(text).setValue(number)
    }
    for (number, text) in [name, fileName].enumerated() {
      #expect(try await database.collection(text).getDocuments().count == 1)
      let read = try await database.collection(text).document(text).getDocument()
      #expect(read["n"] as Int? == number)
      let stored = database.storage.reference(withPath: "files/\(text)")
      #expect(try await stored.data(maxSize: 9) == Data([UInt8(number)]))
    }
    for (number, text) in [typed, taken].enumerated() {
      let node = try await database.tree.child("names").child(text).getData()
      #expect(node.value == .integer(Int64(number)))
    }
    #expect(try await database.tree.child("names").getData().children.count == 2)
    try await database.close()
  }

  @Test func `Texts are composed on input if they must agree`() async throws {
    #expect(Array(fileName.composed().utf8) == Array(name.utf8))
    #expect(Array("e\u{301}\u{212b}".composed().utf8) == Array("\u{e9}\u{c5}".utf8))
    #expect(Array("plain".composed().utf8) == Array("plain".utf8))
    let files = try await Database.underTest().collection("files")
    try await files.document(fileName.composed()).setData(["name": fileName.composed()])
    #expect(try await files.document(name).getDocument().exists)
    #expect(try await files.whereField("name", isEqualTo: name).getDocuments().count == 1)
  }
}
