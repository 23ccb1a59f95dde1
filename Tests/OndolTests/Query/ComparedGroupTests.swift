// Groups, and the least and the greatest, of texts that do not compare by their bytes: compared
// with a model that sorts all documents, with and without indexes, limits and parts of a scan, live
// and typed; and refused calls.

import OndolTestKit
import Testing

@testable import Ondol
@testable import OndolEngine

private struct Person: Codable, Sendable {
  var name: String
  var nick: String?
  var n: Int
}

@Suite struct `Groups of compared texts` {
  private static let texts = [
    "Élan", "elan", "ELAN", "e\u{301}lan", "Track 2", "track 10", "TRACK 02", "ｅｌａｎ", "", "straße",
    "STRASSE", "\u{ac00}", "\u{1100}\u{1161}",
  ]

  private static func value(_ random: inout SeededRandom) -> Value? {
    switch random.below(10) {
    case 0: nil
    case 1: .null
    case 2: random.number(below: 3)
    case 3: .double(Double(random.below(3)))
    case 4: .array([.string(random.pick(["a", "A"]))])
    default: .string(random.pick(texts))
    }
  }

  private static func fill(
    _ items: CollectionReference, _ random: inout SeededRandom
  ) async throws -> [[String: Value]] {
    var all: [[String: Value]] = []
    let batch = items.database.batch()
    for number in 0..<120 {
      var fields: [String: Value] = ["n": .integer(Int64(number))]
      fields["a"] = value(&random)
      fields["b"] = value(&random)
      try batch.setData(fields, forDocument: items.document("d\(1_000 + number)"))
      all.append(fields)
    }
    try await batch.commit()
    return all
  }

  /// Before it in the order of `order(by:comparing:)`.
  private static func precedes(_ left: Value, _ right: Value, _ texts: TextComparison) -> Bool {
    let order = ValueOrder.compare(texts.value(of: left), texts.value(of: right))
    return order == 0 ? ValueOrder.compare(left, right) < 0 : order < 0
  }

  /// Each group's texts, the number of its documents and its sum of `n`, in the groups' order.
  private static func expected(
    _ documents: [[String: Value]], _ fields: [String], _ texts: TextComparison
  ) -> [String] {
    let members = documents.filter { document in fields.allSatisfy { document[$0] != nil } }
    let groups = Dictionary(grouping: members) { document in
      fields.map { texts.value(of: document[$0] ?? .null) }
    }
    return groups.sorted { ValueOrder.compare(.array($0.key), .array($1.key)) < 0 }.map {
      let (_, members) = $0
      let key = fields.map { field in
        members.compactMap { $0[field] }.reduce(members[0][field] ?? .null) {
          ValueOrder.compare($1, $0) < 0 ? $1 : $0
        }
      }
      return line(key, members.count, members.compactMap { $0["n"]?.integer }.reduce(0, +))
    }
  }

  /// Either of two equal numbers may be a group's key, so all are shown as doubles.
  private static func line(_ key: [Value], _ count: Int, _ sum: Int64) -> String {
    let shown = key.map { value in
      switch value {
      case .integer(let number): "\(Double(number))"
      case .decimal(let number): "\(number.double)"
      default: "\(value)"
      }
    }
    return "\(shown) \(count) \(sum)"
  }

  @Test(arguments: Seeds.first(6))
  func `They equal a model's results for all documents`(seed: UInt64) async throws {
    var random = SeededRandom(seed: seed)
    let database = try await Database.underTest()
    let items = database.collection("items")
    let documents = try await Self.fill(items, &random)
    for indexed in [false, true] {
      if indexed {
        try await items.createIndex(on: ["a"])
        try await items.createIndex(on: ["a~folded"])
        try await items.createIndex(on: ["b~natural", "a~natural"])
      }
      for texts in TextComparison.allCases {
        for fields in [["a"], ["b"], ["a", "b"]] {
          for limit in [nil, 40] {
            let query = limit.map { items.order(by: .documentID()).limit(to: $0) } ?? items.query
            let groups = try await query.aggregate([.count(), .sum("n")])
              .group(by: fields.map { FieldPath($0) }, comparing: texts).getAggregation()
            let found = groups.map { group in
              Self.line(
                group.key, group.aggregation.count,
                group.aggregation.get(.sum("n"))?.integer ?? -1)
            }
            let members = Array(documents.prefix(limit ?? documents.count))
            #expect(
              found == Self.expected(members, fields, texts), "seed \(seed), \(texts) \(fields)")
          }
        }
        let ends: [AggregateField] = [
          .minimum("a", comparing: texts), .maximum("a", comparing: texts), .minimum("a"),
        ]
        let values = documents.compactMap { $0["a"] }.filter { !$0.isNull }
        let sorted = values.sorted { Self.precedes($0, $1, texts) }
        let numbers = try await items.aggregate(ends).getAggregation()
        #expect(numbers.get(ends[0]) == sorted.first, "seed \(seed), \(texts)")
        #expect(numbers.get(ends[1]) == sorted.last, "seed \(seed), \(texts)")
        let ordered = items.whereField("a", isNotEqualTo: nil).order(by: "a", comparing: texts)
        let first = try await ordered.limit(to: 1).getDocuments().documents.first
        #expect(numbers.get(ends[0]) == first?.data()["a"], "seed \(seed), \(texts)")
      }
    }
    try await database.close()
  }

  @Test func `Typed ones, and those that are followed`() async throws {
    let database = try await Database.underTest()
    let people = try database.collection("people", of: Person.self)
    for (number, name) in ["elan", "Élan", "Zoe", "ELAN"].enumerated() {
      try await people.document("\(number)").setData(
        Person(name: name, nick: number == 2 ? nil : name, n: number))
    }
    let counts = try await people.group(by: \.name, comparing: .folded).count()
    #expect(counts == ["ELAN": 3, "Zoe": 1])
    #expect(try await people.group(by: \.name).count().count == 4)
    #expect(try await people.group(by: \.nick, comparing: .folded).sum(\.n) == ["ELAN": 4])
    #expect(try await people.minimum(\.name, comparing: .folded) == "ELAN")
    #expect(try await people.maximum(\.name) == "Élan")
    #expect(try await people.maximum(\.name, comparing: .folded) == "Zoe")
    let query = database.collection("people").count
    var folded = query.group(by: "name", comparing: .folded).snapshots.makeAsyncIterator()
    var plain = query.group(by: "name").snapshots.makeAsyncIterator()
    #expect(try await folded.next()?.map(\.aggregation.count) == [3, 1])
    #expect(try await plain.next()?.count == 4)
    try await people.document("4").setData(Person(name: "zoë", n: 4))
    #expect(try await folded.next()?.map(\.key) == [[.string("ELAN")], [.string("Zoe")]])
    #expect(try await plain.next()?.count == 5)
    let least = database.collection("people").aggregate([.minimum("name", comparing: .folded)])
    var followed = least.snapshots.makeAsyncIterator()
    #expect(try await followed.next()?[least.fields[0]] == .string("ELAN"))
    try await people.document("3").delete()
    #expect(try await followed.next()?[least.fields[0]] == .string("elan"))
    try await database.close()
  }

  @Test func `Incomparable values are refused, with the field and what to do`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    try await items.document("a").setData(["name": "a"])
    func refusal(_ field: String, _ advice: String, _ body: () async throws -> Void) async {
      let error = await #expect(throws: DatabaseError.self) { try await body() }
      #expect(error?.code == .invalidArgument && error?.field == field, "\(field)")
      #expect(error?.message.contains(advice) == true, "\(String(describing: error))")
    }
    await refusal("__name__", "leave the comparison out") {
      _ = try await items.count.group(by: .documentID(), comparing: .folded).getAggregation()
    }
    await refusal("__name__", "leave the comparison out") {
      _ = try await items.aggregate([.maximum(.documentID(), comparing: .folded)]).getAggregation()
    }
    await refusal("name", "compare the beginning with .folded") {
      let query = items.whereField("name", hasPrefix: "1", comparing: .natural)
      _ = try await query.getDocuments()
    }
    await refusal("name~folded", "leave the comparison to the query") {
      try await items.createIndex(
        on: ["n"], where: .whereField("name", isEqualTo: "a", comparing: .folded))
    }
    await refusal("tags~folded[]", "leave the comparison out") {
      try await items.createIndex(on: ["tags~folded[]"])
    }
    try await database.close()
  }
}
