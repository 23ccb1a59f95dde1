// The effect of each write on the stored document: tables of before, write and after.

import OndolEngine
import Testing

@testable import Ondol

/// A document's contents, an operation, and the contents afterwards.
private struct Step: CustomTestStringConvertible, Sendable {
  let name: String
  let before: [String: Value]?
  let write: @Sendable (DocumentReference) async throws -> Void
  let after: [String: Value]?

  init(
    _ name: String, _ before: [String: Value]?, _ after: [String: Value]?,
    _ write: @escaping @Sendable (DocumentReference) async throws -> Void
  ) {
    self.name = name
    self.before = before
    self.after = after
    self.write = write
  }

  var testDescription: String { name }
}

private func update(
  _ name: String, _ before: Value?, _ instruction: FieldValue, _ after: Value?
) -> Step {
  Step(
    name, before.map { ["k": 0, "f": $0] } ?? ["k": 0], after.map { ["k": 0, "f": $0] } ?? ["k": 0]
  ) { try await $0.updateData(["f": instruction]) }
}

private let steps: [Step] = [
  Step("a set replaces", ["a": 1, "b": 2], ["c": 3]) { try await $0.setData(["c": 3]) },
  Step("a set takes dots in names literally", nil, ["a.b": 1]) { try await $0.setData(["a.b": 1]) },
  Step("a merge goes into maps", ["m": ["a": 1, "b": 2]], ["m": ["a": 1, "b": 3], "n": 4]) {
    try await $0.setData(["m": ["b": 3], "n": 4], merge: true)
  },
  Step("a merge replaces by an empty map", ["m": ["a": 1]], ["m": [:]]) {
    try await $0.setData(["m": [String: Int]()], merge: true)
  },
  Step("a merge replaces arrays", ["a": [1, 2]], ["a": [3]]) {
    try await $0.setData(["a": [3]], merge: true)
  },
  Step("a merge deletes at any depth", ["m": ["a": 1, "b": 2]], ["m": ["b": 2]]) {
    try await $0.setData(["m": ["a": FieldValue.delete()]], merge: true)
  },
  Step("a merge makes the document", nil, ["a": 1]) { try await $0.setData(["a": 1], merge: true) },
  Step("an empty merge makes the document", nil, [:]) {
    try await $0.setData([String: Int](), merge: true)
  },
  Step("a listed map is replaced", ["m": ["a": 1], "n": 1], ["m": ["b": 2], "n": 1]) {
    try await $0.setData(["m": ["b": 2], "n": 9], mergeFields: ["m"])
  },
  Step("a listed nested field leaves its siblings", ["m": ["a": 1]], ["m": ["a": 1, "b": 2]]) {
    try await $0.setData(["m": ["b": 2, "c": 3]], mergeFields: ["m.b"])
  },
  Step("an update replaces maps", ["m": ["a": 1]], ["m": ["b": 2]]) {
    try await $0.updateData(["m": ["b": 2]])
  },
  Step("an update of a nested field leaves its siblings", ["m": ["a": 1]], ["m": ["a": 1, "b": 2]])
  {
    try await $0.updateData(["m.b": 2])
  },
  Step("an update replaces what stands in its way", ["m": 5], ["m": ["b": ["c": 2]]]) {
    try await $0.updateData(["m.b.c": 2])
  },
  Step("a path of names does not split", ["a": 1], ["a": 1, "x.y": 2]) {
    try await $0.updateData([FieldPath(["x.y"]): 2])
  },
  Step("backticks keep dots together", ["a": 1], ["a": 1, "x": ["5.5": 2]]) {
    try await $0.updateData(["x.`5.5`": 2])
  },
  Step("a delete in an update", ["a": 1, "b": ["c": 2]], ["b": [:]]) {
    try await $0.updateData(["a": FieldValue.delete(), "b.c": FieldValue.delete()])
  },
  Step("a delete of what is not there", ["a": 1], ["a": 1]) {
    try await $0.updateData(["a.b.c": FieldValue.delete(), "z": FieldValue.delete()])
  },
  Step("a map that was only instructions", ["m": ["a": 1]], ["m": ["n": 3]]) {
    try await $0.updateData(["m": ["n": FieldValue.increment(3)]])
  },
  Step("a set with instructions starts from nothing", ["n": 5], ["n": 1]) {
    try await $0.setData(["n": FieldValue.increment(1)])
  },
  Step("a merge with instructions starts from what is stored", ["n": 5], ["n": 6]) {
    try await $0.setData(["n": FieldValue.increment(1)], merge: true)
  },
  Step("nil is null", nil, ["a": nil]) { try await $0.setData(["a": nil]) },
  Step("a delete", ["a": 1], nil) { try await $0.delete() },
  update("increment of nothing", nil, .increment(5), 5),
  update("increment of a text", "x", .increment(5), 5),
  update("increment of an integer", 4, .increment(5), 9),
  update("increment by a double", 4, .increment(0.5), 4.5),
  update("increment of a double", 0.5, .increment(1), 1.5),
  update("increment saturates above", .integer(.max - 1), .increment(5), .integer(.max)),
  update("increment saturates below", .integer(.min + 1), .increment(-5), .integer(.min)),
  update("minimum of nothing", nil, .minimum(5), 5),
  update("minimum keeps the smaller", 4, .minimum(5), 4),
  update("minimum takes the smaller", 6, .minimum(5), 5),
  update("minimum keeps what is equal", 5.0, .minimum(5), 5.0),
  update("minimum keeps minus zero", -0.0, .minimum(0), -0.0),
  update("minimum takes the operand's type", 4, .minimum(2.5), 2.5),
  update("maximum takes the larger", 4, .maximum(5), 5),
  update("maximum keeps NaN", .double(.nan), .maximum(5), .double(.nan)),
  update("maximum of a text", "x", .maximum(5), 5),
  update("union of nothing", nil, .arrayUnion([1, 1, 2]), [1, 2]),
  update("union of no array", "x", .arrayUnion([1]), [1]),
  update("union adds what is missing", [1, 1, 2], .arrayUnion([3, 2.0, 1, 3]), [1, 1, 2, 3]),
  update(
    "union with null and NaN", [nil], .arrayUnion([nil, Double.nan, Double.nan]),
    [nil, .double(.nan)]),
  update("removal takes all", [1, 2, 1.0, "1"], .arrayRemove([1]), [2, "1"]),
  update("removal from nothing", nil, .arrayRemove([1]), []),
  update("removal from no array", 5, .arrayRemove([1]), []),
]

@Suite struct WriteSemanticsTests {
  @Test(arguments: steps)
  fileprivate func `A write has the result of its rule`(step: Step) async throws {
    let database = try await Database.underTest()
    let document = database.document("c/d")
    if let before = step.before { try await document.setData(before) }
    try await step.write(document)
    let read = try await document.getDocument()
    #expect(read.exists == (step.after != nil))
    #expect(read.data().isIdentical(to: step.after ?? [:]), "\(read)")
    try await database.close()
  }

  @Test func `All server timestamps of a write are the commit's time`() async throws {
    let times = Guarded<Int64>(1_700_000_000_000_000)
    let clock: @Sendable () -> Int64 = { times.withLock { $0 } }
    let database = try await Database.underTest(options: .init(clock: clock))
    let document = database.document("c/d")
    try await document.parent.createIndex(on: ["t"])
    try await document.parent.createIndex(on: ["-m"])
    let result = try await document.setData(
      [
        "t": FieldValue.serverTimestamp(), "m": ["t": FieldValue.serverTimestamp(), "x": 1],
      ], returning: .after)
    let time = Value.timestamp(result.commitTime)
    #expect(result.after?.data() == ["t": time, "m": ["t": time, "x": 1]])
    let read = try await document.getDocument()
    #expect(read == result.after)
    #expect(read.createTime == result.commitTime)
    let byTime = try await document.parent.whereField("t", isEqualTo: time).getDocuments()
    #expect(byTime.documents == [read])
    let byMap = document.parent.whereField("m", isEqualTo: Value.map(["t": time, "x": 1]))
    #expect(try await byMap.explain().indexName == "-m")
    #expect(try await byMap.getDocuments().documents == [read])
    try await auditIndexes(of: document.parent)

    // The clock stands still, but the commits' times increase.
    let again = try await document.updateData(["t": FieldValue.serverTimestamp()])
    #expect(again.commitTime > result.commitTime)
    #expect(try await document.getDocument().createTime == result.commitTime)
    try await auditIndexes(of: document.parent)
  }

  @Test func `A write that changes nothing keeps version and time`() async throws {
    let database = try await Database.underTest()
    let document = database.document("c/d")
    let first = try await document.setData(["a": 1, "b": ["c": [1, 2]]])
    let sequence = database.snapshot().version
    for write: @Sendable () async throws -> WriteResult in [
      { try await document.setData(["b": ["c": [1, 2]], "a": 1]) },
      { try await document.updateData(["b.c": FieldValue.arrayUnion([2])]) },
      { try await document.updateData(["a": FieldValue.increment(0)]) },
      { try await document.setData(["a": 1], merge: true) },
      { try await document.updateData(["z": FieldValue.delete()]) },
    ] {
      let result = try await write()
      #expect(result.version == first.version)
      #expect(result.commitTime == first.commitTime)
    }
    let unchanged = database.snapshot().version
    #expect(unchanged == sequence)
    let changed = try await document.setData(["a": 1.0, "b": ["c": [1, 2]]])
    #expect(changed.version > first.version, "1 and 1.0 are equal, but not the same")
    #expect(try await database.document("c/none").delete().version == .missing)
  }

  @Test func `A write gives back the states it is asked for`() async throws {
    let database = try await Database.underTest()
    let document = database.document("c/d")
    let made = try await document.setData(["a": 1], returning: [.before, .after])
    #expect(made.before?.exists == false)
    #expect(made.after?.data() == ["a": 1])
    #expect(made.after?.version == made.version)
    let changed = try await document.updateData(["a": 2], returning: .before)
    #expect(changed.before?.data() == ["a": 1])
    #expect(changed.before?.version == made.version)
    #expect(changed.after == nil)
    let gone = try await document.delete(returning: [.before, .after])
    #expect(gone.before?.data() == ["a": 2])
    #expect(gone.after?.exists == false)
    #expect(gone.version > changed.version)
    let nothing = try await document.setData(["a": 1])
    #expect(nothing.before == nil)
    #expect(nothing.after == nil)
  }

  @Test func `Deleting a document keeps the collections below it`() async throws {
    let database = try await Database.underTest()
    let user = database.collection("users").document("u")
    try await user.collection("posts").document("p").setData(["a": 1])
    #expect(try await user.getDocument().exists == false)
    try await user.setData(["n": 1])
    try await user.delete()
    #expect(try await user.collection("posts").getDocuments().count == 1)
    #expect(try await database.collection("users").getDocuments().isEmpty)
    #expect(user.collection("posts").parent == user)
    #expect(user.collection("posts").path == "users/u/posts")
    #expect(user.collection("posts").collectionID == "posts")
    #expect(database.collection("users").parent == nil)
    #expect(database.document("users/u/posts/p").parent.parent == user)
  }
}
