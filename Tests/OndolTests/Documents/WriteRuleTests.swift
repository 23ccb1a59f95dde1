// Refused calls, and that they leave no trace.

import Foundation
import OndolEngine
import Testing

@testable import Ondol

/// A write that must be refused, and what the error must name.
private struct Refusal: CustomTestStringConvertible, Sendable {
  let name: String
  var code = DatabaseError.Code.invalidArgument
  var field: String?
  let write: @Sendable (CollectionReference) async throws -> Void

  var testDescription: String { name }
}

private let long = String(repeating: "n", count: 1_501)

/// Maps around a value, `depth` of them.
private func nested(_ depth: Int) -> Value {
  (0..<depth).reduce(Value.integer(1)) { inner, _ in .map(["m": inner]) }
}

private let refusals: [Refusal] = [
  Refusal(name: "an empty segment") { try await $0.database.document("c//d").setData(["a": 1]) },
  Refusal(name: "an empty path") {
    try await $0.database.collection("").addDocument(data: ["a": 1])
  },
  Refusal(name: "a document's path of three segments") {
    try await $0.database.document("a/b/c").setData(["a": 1])
  },
  Refusal(name: "a collection's path of two segments") {
    _ = try await $0.database.collection("a/b").getDocuments()
  },
  Refusal(name: "an id with a slash") { try await $0.document("a/b").setData(["a": 1]) },
  Refusal(name: "an id of one dot") { try await $0.document(".").setData(["a": 1]) },
  Refusal(name: "an id of two dots") { try await $0.document("..").setData(["a": 1]) },
  Refusal(name: "a reserved id") { try await $0.document("__a__").setData(["a": 1]) },
  Refusal(name: "an id of 1,501 bytes") { try await $0.document(long).setData(["a": 1]) },
  Refusal(name: "a reserved field", field: "__f__") {
    try await $0.document("x").setData(["__f__": 1])
  },
  Refusal(name: "a reserved field in a map", field: "a.__f__") {
    try await $0.document("x").setData(["a": ["__f__": 1]])
  },
  Refusal(name: "a reserved field in a map in an array", field: "a.__f__") {
    try await $0.document("x").setData(["a": [["__f__": 1]]])
  },
  Refusal(name: "an empty field name") { try await $0.document("x").setData(["": 1]) },
  Refusal(name: "a field name of 1,501 bytes") { try await $0.document("x").setData([long: 1]) },
  Refusal(name: "101 maps in each other") {
    try await $0.document("x").setData(["m": nested(101)])
  },
  Refusal(name: "101 arrays in each other of a union", field: "a") {
    let deep = (0..<100).reduce(Value.null) { inner, _ in .array([inner]) }
    try await $0.document("x").setData(["a": FieldValue.arrayUnion([deep])])
  },
  Refusal(name: "a decimal of 39 digits", field: "a") {
    try await $0.document("x").setData(["a": Decimal.greatestFiniteMagnitude])
  },
  Refusal(name: "an increment by what is no number", field: "a") {
    try await $0.document("x").setData(["a": FieldValue.increment(Decimal.nan)])
  },
  Refusal(name: "a sum of too many digits", code: .outOfRange, field: "a") {
    try await $0.document("there").updateData(["a": FieldValue.increment(Decimal(1) / 3)])
  },
  Refusal(name: "a delete in a plain set", field: "a") {
    try await $0.document("x").setData(["a": FieldValue.delete()])
  },
  Refusal(name: "a delete in a create", field: "a") {
    try await $0.document("x").create(["a": FieldValue.delete()])
  },
  Refusal(name: "a delete below a listed field", field: "a.b") {
    try await $0.document("x").setData(["a": ["b": FieldValue.delete()]], mergeFields: ["a"])
  },
  Refusal(name: "a delete beside the listed fields", field: "b") {
    try await $0.document("x").setData(
      ["a": 1, "b": FieldValue.delete()], mergeFields: ["a"])
  },
  Refusal(name: "a listed field that is missing", field: "b") {
    try await $0.document("x").setData(["a": 1], mergeFields: ["a", "b"])
  },
  Refusal(name: "a listed field inside another", field: "a.b") {
    try await $0.document("x").setData(["a": ["b": 1]], mergeFields: ["a", "a.b"])
  },
  Refusal(name: "an instruction in an array", field: "a[0]") {
    try await $0.document("x").setData(["a": [FieldValue.serverTimestamp()]])
  },
  Refusal(name: "an instruction in a union") {
    try await $0.document("x").setData(["a": FieldValue.arrayUnion([FieldValue.increment(1)])])
  },
  Refusal(name: "an update without fields") {
    try await $0.document("there").updateData([String: (any FieldContent)?]())
  },
  Refusal(name: "an update with a nested delete", field: "a.b") {
    try await $0.document("there").updateData(["a": ["b": FieldValue.delete()]])
  },
  Refusal(name: "an update of a field and one inside it", field: "a.b") {
    try await $0.document("there").updateData(["a": 1, "a.b": 2])
  },
  Refusal(name: "an update of one field in two spellings", field: "a") {
    try await $0.document("there").updateData(["a": 1, "`a`": 2])
  },
  Refusal(name: "an update of a.~", field: "a.~") {
    try await $0.document("there").updateData(["a.~": 1])
  },
  Refusal(name: "an update of a..b", field: "a..b") {
    try await $0.document("there").updateData(["a..b": 1])
  },
  Refusal(name: "an update of the id") {
    try await $0.document("there").updateData(["__name__": 1])
  },
  Refusal(name: "an update of what is not there", code: .notFound) {
    try await $0.document("x").updateData(["a": 1])
  },
  Refusal(name: "creating what is there", code: .alreadyExists) {
    try await $0.document("there").create(["a": 1])
  },
  Refusal(name: "an update of a document that must be missing") {
    try await $0.document("x").updateData(["a": 1], ifVersion: .missing)
  },
  Refusal(name: "another version", code: .aborted) {
    try await $0.document("there").setData(["a": 1], ifVersion: .missing)
  },
  Refusal(name: "a version of what is not there", code: .aborted) {
    try await $0.document("x").setData(["a": 1], ifVersion: Version(rawValue: 1))
  },
  Refusal(name: "deleting another version", code: .aborted) {
    try await $0.document("there").delete(ifVersion: Version(rawValue: 9_999))
  },
  Refusal(name: "a document over 16 MiB", code: .resourceExhausted) {
    try await $0.document("x").setData(["a": [UInt8](repeating: 1, count: 16 << 20)])
  },
  Refusal(name: "a range on null") {
    _ = try await $0.whereField("a", isLessThan: nil).getDocuments()
  },
  Refusal(name: "a range on NaN") {
    _ = try await $0.whereField("a", isGreaterThan: Double.nan).getDocuments()
  },
  Refusal(name: "an instruction in a condition") {
    _ = try await $0.whereField("a", isEqualTo: FieldValue.increment(1)).getDocuments()
  },
  Refusal(name: "an id compared with a number") {
    _ = try await $0.whereField(FieldPath.documentID(), isEqualTo: 1).getDocuments()
  },
  Refusal(name: "an id compared with a document elsewhere") {
    let other = $0.database.document("other/d")
    _ = try await $0.whereField(FieldPath.documentID(), isEqualTo: other).getDocuments()
  },
  Refusal(name: "an id as an array") {
    _ = try await $0.whereField(FieldPath.documentID(), arrayContains: "a").getDocuments()
  },
  Refusal(name: "a wrong field path in an order") {
    _ = try await $0.order(by: "a..b").getDocuments()
  },
  Refusal(name: "a negative limit") { _ = try await $0.limit(to: -1).getDocuments() },
  Refusal(name: "an index without fields") { try await $0.createIndex(on: [String]()) },
  Refusal(name: "an index with a field twice") { try await $0.createIndex(on: ["a", "-a"]) },
]

@Suite struct WriteRuleTests {
  @Test(arguments: refusals)
  fileprivate func `A broken rule throws with its code and place, and changes nothing`(
    refusal: Refusal
  ) async throws {
    let database = try await Database.underTest()
    let collection = database.collection("c")
    try await collection.document("there").setData(["a": 1, "kept": true])
    let before = database.snapshot().version
    do {
      try await refusal.write(collection)
      Issue.record("nothing was thrown")
    } catch let error as DatabaseError {
      #expect(error.code == refusal.code, "\(error)")
      if let field = refusal.field { #expect(error.field == field, "\(error)") }
      #expect(error.path != nil || error.field != nil, "\(error)")
    }
    let after = database.snapshot().version
    #expect(after == before)
    let there = try await collection.document("there").getDocument()
    #expect(there.data() == ["a": 1, "kept": true])
    try await database.close()
  }

  @Test func `Names and depths at the limits are kept exactly`() async throws {
    let database = try await Database.underTest()
    let names = [
      "a.b@c.kr", "a-b@c.kr", " ", "\0", "e\u{301}", "日記", "😀", "~*[]`\\", "__a", "...",
      String(repeating: "x", count: 1_500), "\u{ffff}",
    ]
    for name in names {
      let document = database.collection(name).document(name)
      let data: [String: Value] = [name: ["deep": nested(99)], "plain": .string(name)]
      try await document.setData(data)
      let read = try await document.getDocument()
      #expect(read.data().isIdentical(to: data))
      #expect(ExactText(read.documentID) == ExactText(name))
      let found = try await database.collection(name)
        .whereField(FieldPath([name]), isEqualTo: Value.map(["deep": nested(99)])).getDocuments()
      #expect(found.count == 1)
    }
    try await database.close()
  }

  @Test func `A conflict carries the stored and the attempted document`() async throws {
    let database = try await Database.underTest()
    let document = database.document("c/d")
    let first = try await document.setData(["a": 1])
    try await document.setData(["a": 2])
    let error = await #expect(throws: DatabaseError.self) {
      try await document.updateData(["b": 3], ifVersion: first.version)
    }
    #expect(error?.conflict?.stored == ["a": 2])
    #expect(error?.conflict?.attempted == ["a": 2, "b": 3])
    #expect(error?.path == "c/d")
  }

  @Test func `Later calls on a closed database throw`() async throws {
    let database = try await Database.underTest()
    let document = database.document("c/d")
    try await document.setData(["a": 1])
    try await database.close()
    try await database.close()
    let calls: [@Sendable () async throws -> Void] = [
      { try await document.setData(["a": 2]) }, { _ = try await document.getDocument() },
      { _ = try await document.parent.getDocuments() }, { try await document.delete() },
      { try await document.parent.createIndex(on: ["a"]) },
      { _ = try await document.parent.listIndexes() },
    ]
    for call in calls {
      let error = await #expect(throws: DatabaseError.self) { try await call() }
      #expect(error?.code == .failedPrecondition)
    }
  }

  @Test func `A write of a cancelled task throws and has not happened`() async throws {
    let database = try await Database.underTest()
    let document = database.document("c/d")
    let task = Task {
      while !Task.isCancelled { await Task.yield() }
      try await document.setData(["a": 1])
    }
    task.cancel()
    let error = await #expect(throws: DatabaseError.self) { try await task.value }
    #expect(error?.code == .cancelled)
    #expect(try await document.getDocument().exists == false)
  }
}
