// The groups from an index equal those from a walk over the documents: with numbers that are equal
// and of two types, texts too long for an index, missing fields, and everything else that leaves an
// index without a row for each document of the result.

import OndolTestKit
import Testing

@testable import Ondol

@Suite struct `Groups counted by an index` {
  private static let long = String(repeating: "long", count: 400)

  private static func value(_ random: inout SeededRandom, mayBeLong: Bool) -> Value? {
    if random.chance(1, in: 8) { return random.chance(1, in: 2) ? random.decimal() : random.grid() }
    return switch random.below(mayBeLong ? 10 : 9) {
    case 0: nil
    case 1: .null
    case 2: .double(Double(random.below(3)))
    case 3, 4: .integer(Int64(random.below(3)))
    case 5: .array([.integer(1), .double(Double(random.below(2)))])
    case 9: .string(long + random.pick(["a", "b"]))
    // The last two are one Hangul syllable, composed and decomposed: two groups.
    default:
      .string(random.pick(["a", "b", "a\u{0}", "ab", "\u{AC01}", "\u{1100}\u{1161}\u{11A8}"]))
    }
  }

  private static func fill(
    _ collection: CollectionReference, _ random: inout SeededRandom, mayBeLong: Bool
  ) async throws {
    let batch = collection.database.batch()
    for number in 0..<200 {
      var fields: [String: Value] = ["n": .integer(Int64(number % 4))]
      fields["a"] = value(&random, mayBeLong: mayBeLong)
      fields["b"] = value(&random, mayBeLong: false)
      try batch.setData(fields, forDocument: collection.document("d\(number)"))
    }
    try await batch.commit()
  }

  /// The answers to each of several queries. 1 and 1.0 are one group, and either may be its key.
  private static func answers(
    _ collection: CollectionReference
  ) async throws -> [String: [[Value]: Int]] {
    let sources: [Query] = [
      collection.query, collection.whereField("n", isEqualTo: 2),
      collection.whereField("n", in: [1, 3]), collection.whereField("a", isGreaterThan: 1),
      collection.whereField("b", isEqualTo: "a"), collection.limit(to: 30),
      collection.order(by: "b"),
      collection.database.collectionGroup("items").query,
    ]
    var answers: [String: [[Value]: Int]] = [:]
    for source in sources {
      for fields in [["a"], ["b"], ["a", "b"], ["b", "a"], ["n", "a"], ["a", "a"]] {
        let groups = try await source.count.group(by: fields.map { FieldPath($0) })
          .getAggregation()
        answers["\(source) by \(fields)"] = Dictionary(
          uniqueKeysWithValues: groups.map { ($0.key, $0.aggregation.count) })
      }
    }
    return answers
  }

  @Test(arguments: 0..<6 as Range<UInt64>)
  private func `They are those of a walk`(seed: UInt64) async throws {
    var random = SeededRandom(seed: seed)
    let database = try await Database.underTest()
    let collection = database.collection(seed % 2 == 0 ? "items" : "shops/s/items")
    try await Self.fill(collection, &random, mayBeLong: seed % 3 == 0)
    try await Self.fill(database.collection("shops/t/items"), &random, mayBeLong: false)
    let walked = try await Self.answers(collection)
    for fields: [String] in [["a"], ["-b"], ["a", "b"], ["n", "a"], ["b", "-a"]] {
      try await collection.createIndex(on: fields)
      for (query, groups) in try await Self.answers(collection) {
        #expect(groups == walked[query], "SEED=\(seed) \(fields): \(query)")
      }
    }
    // An expired document is in no group, and only documents know when they expire.
    try await collection.setTimeToLive(field: "end")
    try await collection.document("d1").updateData([
      "end": try Timestamp(microsecondsSince1970: 0), "a": "a",
    ])
    let counts = try await collection.count.group(by: "n").getAggregation().map(\.aggregation.count)
    #expect(counts.reduce(0, +) == 199, "SEED=\(seed)")
  }

  @Test func `The query reads only the index`() async throws {
    let database = try await Database.underTest()
    let collection = database.collection("items")
    var random = SeededRandom(seed: 1)
    try await Self.fill(collection, &random, mayBeLong: false)
    let shape = try collection.count.query.shape.get()
    let grouped = collection.count.group(by: "n")
    let rows = { Rows(try database.engineSnapshot(), database.catalog, mayBlock: true) }
    #expect(try grouped.countsByIndex(Executor(shape, in: database, rows())) == nil)
    try await collection.createIndex(on: ["n"])
    let counts = try grouped.countsByIndex(Executor(shape, in: database, rows()))
    #expect(counts == [[0]: 50, [1]: 50, [2]: 50, [3]: 50])
  }
}
