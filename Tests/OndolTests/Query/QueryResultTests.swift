// The calls that shape a result: places, parts, projections, groups, aggregates and streams, in
// small readable examples. The random tests cover their combinations.

import Foundation
import Testing

@testable import Ondol

@Suite struct QueryResultTests {
  private func makeItems() async throws -> CollectionReference {
    let items = try await Database.underTest().collection("items")
    for (id, price) in [("a", 10), ("b", 20), ("c", 20), ("d", 30)] {
      try await items.document(id).setData(["price": price, "size": ["h": price * 2, "w": 1]])
    }
    try await items.document("e").setData(["name": "no price"])
    return items
  }

  private func ids(_ query: some QuerySource) async throws -> String {
    try await query.getDocuments().documents.map(\.documentID).joined()
  }

  @Test func `A result begins and ends at its cursors`() async throws {
    let items = try await makeItems()
    let sorted = items.order(by: "price")
    #expect(try await ids(sorted) == "abcd")
    #expect(try await ids(sorted.start(at: [20])) == "bcd")
    #expect(try await ids(sorted.start(after: [20])) == "d")
    #expect(try await ids(sorted.end(at: [20])) == "abc")
    #expect(try await ids(sorted.end(before: [20])) == "a")
    #expect(try await ids(sorted.start(at: [20.0]).end(before: [30])) == "bc")
    let down = items.order(by: "price", descending: true)
    #expect(try await ids(down) == "dcba")
    #expect(try await ids(down.start(after: [20])) == "a")
    let b = try await items.document("b").getDocument()
    #expect(try await ids(sorted.start(atDocument: b)) == "bcd")
    #expect(try await ids(sorted.start(afterDocument: b)) == "cd")
    #expect(try await ids(sorted.end(atDocument: b)) == "ab")
    #expect(try await ids(sorted.end(beforeDocument: b)) == "a")
    #expect(try await ids(down.start(afterDocument: b)) == "a")
    #expect(try await ids(items.query.start(afterDocument: b)) == "cde")
    let byID = items.order(by: FieldPath.documentID())
    #expect(try await ids(byID.start(after: ["b"]).end(before: ["e"])) == "cd")
  }

  @Test func `A document says its place also when it is gone by then`() async throws {
    let items = try await makeItems()
    let sorted = items.order(by: "price")
    let b = try await items.document("b").getDocument()
    try await items.document("b").delete()
    #expect(try await ids(sorted.start(atDocument: b)) == "cd")
    #expect(try await ids(sorted.start(afterDocument: b)) == "cd")
    #expect(try await ids(sorted.end(atDocument: b)) == "a")
    #expect(try await ids(sorted.end(beforeDocument: b)) == "a")
  }

  @Test func `A place survives its document and being written down`() async throws {
    let items = try await makeItems()
    try await items.createIndex(on: ["price"])
    let page = try await items.order(by: "price").limit(to: 2).getDocuments()
    let kept = try JSONEncoder().encode(try #require(page.cursor))
    try await items.document("b").delete()
    let cursor = try JSONDecoder().decode(QueryCursor.self, from: kept)
    #expect(cursor == page.cursor)
    #expect(try await ids(items.order(by: "price").start(after: cursor)) == "cd")
    #expect(try await ids(items.order(by: "price").end(at: cursor)) == "a")
    let other = await #expect(throws: DatabaseError.self) {
      try await items.order(by: "name").start(after: cursor).getDocuments()
    }
    #expect(other?.code == .invalidArgument)
    for text in [
      "\"\"", "\"zz\"", "\"0\"", "\"e0e0\"", "\"\(String(repeating: "e8", count: 99))\"",
    ] {
      #expect(throws: (any Error).self) {
        try JSONDecoder().decode(QueryCursor.self, from: Data(text.utf8))
      }
    }
  }

  /// A cursor's names were once numbers of a table that was not written with them: a map came back
  /// with other keys, and the next page began in a wrong place.
  @Test func `A place in an order of maps survives being written down`() async throws {
    let database = try await Database.underTest()
    let boxes = database.collection("boxes")
    try await boxes.document("a").setData(["box": ["x": [1], "orders": ["y": 2]]])
    try await boxes.document("b").setData(["box": ["x": [2], "0": 5]])
    try await boxes.document("c").setData(["box": ["x": [3]]])
    let order = boxes.order(by: "box").limit(to: 1)
    var cursor: QueryCursor?
    var found: [String] = []
    while found.count < 4 {
      let query = cursor.map { order.start(after: $0) } ?? order
      let page = try await query.getDocuments()
      guard let document = page.documents.first, let place = page.cursor else { break }
      found.append(document.documentID)
      let text = try JSONEncoder().encode(place)
      let kept = try JSONDecoder().decode(QueryCursor.self, from: text)
      #expect(kept == place)
      cursor = kept
    }
    let sorted = try await boxes.order(by: "box").getDocuments().documents.map(\.documentID)
    #expect(found == sorted && found.count == 3)
    try await database.close()
  }

  @Test func `Parts of a result`() async throws {
    let items = try await makeItems()
    let sorted = items.order(by: "price")
    #expect(try await ids(sorted.limit(to: 2)) == "ab")
    #expect(try await ids(sorted.limit(toLast: 2)) == "cd")
    #expect(try await ids(sorted.limit(toLast: 3).end(before: [30])) == "abc")
    #expect(try await ids(sorted.offset(1).limit(to: 2)) == "bc")
    #expect(try await ids(items.query.limit(toLast: 2)) == "de")
    #expect(try await ids(items.order(by: "price", missing: .last)) == "abcde")
    #expect(try await ids(items.order(by: "price", missing: .first)) == "eabcd")
    #expect(try await ids(items.order(by: "price", descending: true, missing: .last)) == "dcbae")
  }

  @Test func `Only the fields asked for come back`() async throws {
    let items = try await makeItems()
    let first = items.order(by: "price").limit(to: 1)
    let some = try #require(
      try await first.select(["size.h", "none"]).getDocuments().documents.first)
    #expect(some.data() == ["size": ["h": 20]])
    #expect(some.version > .missing)
    let none = try #require(try await first.select([]).getDocuments().documents.first)
    #expect(none.exists)
    #expect(none.documentID == "a")
    #expect(none.data().isEmpty)
    #expect(none.version == .missing)
    #expect(none.updateTime == nil)
  }

  @Test func `A group is all collections of one id`() async throws {
    let database = try await Database.underTest()
    for path in ["posts/p", "users/a/posts/q", "users/a/drafts/x", "teams/t/users/b/posts/r"] {
      try await database.document(path).setData(["n": 1])
    }
    let group = database.collectionGroup("posts")
    #expect(
      try await group.getDocuments().documents.map(\.reference.path)
        == ["posts/p", "teams/t/users/b/posts/r", "users/a/posts/q"])
    let id = FieldPath.documentID()
    let one = group.whereField(id, isEqualTo: "users/a/posts/q")
    #expect(try await ids(one) == "q")
    let reference = Value.reference(try DocumentPath("posts/p"))
    #expect(try await ids(group.whereField(id, isGreaterThan: reference)) == "rq")
    #expect(try await group.count.getAggregation().count == 3)
    for query in [
      group.whereField(id, isEqualTo: "q"), group.whereField(id, hasPrefix: "users"),
      database.collectionGroup("a/b").query, database.collectionGroup("").query,
    ] {
      await #expect(throws: DatabaseError.self) { try await query.getDocuments() }
    }
  }

  @Test func `Aggregates keep to their rules`() async throws {
    let items = try await Database.underTest().collection("items")
    let values: [(String, Value)] = [
      ("a", 1), ("b", 2.5), ("c", "text"), ("d", nil), ("e", 4), ("f", true),
    ]
    for (id, value) in values {
      try await items.document(id).setData(["v": value, "k": .string(id < "d" ? "x" : "y")])
    }
    try await items.document("g").setData(["k": "y"])
    let all = try await items.aggregate([
      .count(), .sum("v"), .average("v"), .minimum("v"), .maximum("v"), .average("none"),
    ]).getAggregation()
    #expect(all.count == 7)
    #expect(all[.sum("v")] == 7.5)
    #expect(all[.average("v")] as Double? == 2.5)
    #expect(all[.minimum("v")] == true)
    #expect(all[.maximum("v")] == "text")
    #expect(all.get(.average("none")) == nil)
    #expect(all.get(.sum("none")) == nil, "it was not asked for")
    let two = items.order(by: "v", descending: true).limit(to: 2)
    #expect(try await two.aggregate([.sum("v")]).getAggregation()[.sum("v")] as Int? == 4)
    #expect(try await two.count.getAggregation().count == 2)
    let groups = try await items.aggregate([.count(), .sum("v")]).group(by: "k").getAggregation()
    #expect(groups.map { $0["k"] as String? } == ["x", "y"])
    #expect(groups.map(\.aggregation.count) == [3, 4])
    #expect(groups.map { $0.aggregation[.sum("v")] } == [3.5, 4])
    let max = items.document("max")
    try await max.setData(["i": Value.integer(.max), "j": 1])
    try await items.document("more").setData(["i": 1])
    let sum = items.aggregate([.sum("i")])
    #expect(try await sum.getAggregation()[.sum("i")] == .double(0x1p63))
    try await items.document("less").setData(["i": -1])
    #expect(try await sum.getAggregation()[.sum("i")] == .integer(.max))
    try await items.document("nan").setData(["i": Value.double(.nan)])
    #expect(try await sum.getAggregation()[.sum("i")] == .double(.nan))
  }

  @Test func `A least and a greatest value are read from an index's ends`() async throws {
    let items = try await Database.underTest().collection("items")
    for number in 0..<20 {
      try await items.document("\(number)").setData(["v": number, "k": number % 2])
    }
    try await items.document("none").setData(["k": 0])
    try await items.document("null").setData(["v": nil, "k": 0])
    try await items.createIndex(on: ["v"])
    try await items.createIndex(on: ["k", "-v"])
    func check(
      _ query: Query, _ least: Int?, _ greatest: Int?, _ access: QueryExplanation.Access
    ) async throws {
      let aggregate = query.aggregate([.minimum("v"), .maximum("v")])
      let found = try await aggregate.getAggregation()
      #expect(found[.minimum("v")] as Int? == least, "\(query)")
      #expect(found[.maximum("v")] as Int? == greatest, "\(query)")
      #expect(try await aggregate.explain().access == access, "\(query)")
    }
    func ends(_ name: String) -> QueryExplanation.Access {
      let end = QueryExplanation.Access.end(of: .index(name: name, ranges: 1))
      return .union([end, end])
    }
    try await check(items.query, 0, 19, ends("v"))
    try await check(items.whereField("k", isEqualTo: 1), 1, 19, ends("k,-v"))
    try await check(items.whereField("k", isEqualTo: 7), nil, nil, ends("k,-v"))
    try await check(items.whereField("v", isGreaterThan: 3), 4, 19, ends("v"))
    try await check(
      items.whereField("v", isGreaterThan: 3).whereField("none", isEqualTo: 1), nil, nil,
      .index(name: "v", ranges: 1))
    try await check(items.order(by: "v").limit(to: 3), 0, 1, .index(name: "v", ranges: 1))
    #expect(try await items.aggregate([.minimum("v")]).explain().description.contains("one end"))
  }

  @Test func `A stream returns what a query returns, from one moment`() async throws {
    let items = try await Database.underTest().collection("items")
    for number in 0..<700 {
      try await items.document("d\(number)").setData(["n": number % 7, "m": number])
    }
    for query in [
      items.query, items.order(by: "n"), items.order(by: "m", descending: true).limit(to: 600),
      items.order(by: "n").offset(3).limit(toLast: 400), items.whereField("n", in: [1, 3]),
    ] {
      var streamed: [String] = []
      for try await document in query.documents {
        streamed.append(document.documentID)
        if streamed.count == 300 { try await items.document("new").setData(["n": 1, "m": 1]) }
      }
      try await items.document("new").delete()
      #expect(try await query.getDocuments().documents.map(\.documentID) == streamed)
    }
  }

  @Test func `An invalid query is refused when it runs`() async throws {
    let items = try await makeItems()
    let missing = try await items.document("none").getDocument()
    let foreign = try await items.database.document("other/x").getDocument()
    let e = try await items.document("e").getDocument()
    let queries: [Query] = [
      items.whereField("a", isLessThan: nil), items.whereField("a", isGreaterThan: Double.nan),
      items.whereField("a..b", isEqualTo: 1), items.whereField("a", isEqualTo: FieldValue.delete()),
      items.whereField("a", in: [1, FieldValue.increment(1)]),
      items.whereField(FieldPath.documentID(), isEqualTo: 1),
      items.whereField(FieldPath.documentID(), isEqualTo: "a/b"),
      items.whereField(FieldPath.documentID(), arrayContains: "a"),
      items.whereFilter(
        .orFilter([.whereField("a", isEqualTo: 1), .whereField("", isEqualTo: 1)])),
      items.order(by: "*"), items.select(["a", "b..c"]), items.limit(to: -1), items.offset(-1),
      items.limit(toLast: -1), items.query.start(at: [1]), items.order(by: "a").start(at: []),
      items.order(by: "a").end(before: [1, 2]), items.query.start(atDocument: missing),
      items.query.end(atDocument: foreign), items.order(by: "price").start(atDocument: e),
      items.order(by: "a").start(at: [FieldValue.serverTimestamp()]),
      items.order(by: FieldPath.documentID()).start(at: ["a/b"]),
      items.database.collection("a/b").query,
    ]
    for query in queries {
      let error = await #expect(throws: DatabaseError.self, "\(query)") {
        try await query.getDocuments()
      }
      #expect(error?.code == .invalidArgument)
      await #expect(throws: DatabaseError.self) { try await query.count.getAggregation() }
      await #expect(throws: DatabaseError.self) { for try await _ in query.documents {} }
    }
    #expect(try await items.whereFilter(.orFilter([])).getDocuments().isEmpty)
    #expect(try await items.whereFilter(.andFilter([])).getDocuments().count == 5)
  }

  /// The cursor of a page was once nil if `select` excluded the field of the pages' order, and a
  /// loop over pages ended with the first.
  @Test(arguments: [false, true])
  func `Pages go on whatever fields are asked for, and the last says so`(
    isIndexed: Bool
  ) async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    for number in 0..<30 {
      try await items.document("\(number)").setData(["price": number % 7, "name": "n\(number)"])
    }
    if isIndexed { try await items.createIndex(on: ["price"]) }
    let order = items.order(by: "price", descending: true)
    let all = try await order.getDocuments()
    #expect(all.isLastPage)
    for (fields, size) in [(["name"], 10), ([], 10), ([], 7), (["price"], 30), (["name"], 31)] {
      let query = order.select(fields.map { FieldPath($0) })
      var (found, pages): ([String], Int) = ([], 0)
      var cursor: QueryCursor?
      while true {
        let page = try await query.start(after: cursor).limit(to: size).getDocuments()
        pages += 1
        found += page.documents.map(\.documentID)
        #expect(page.cursor != nil)
        var listener = query.start(after: cursor).limit(to: size).snapshots.makeAsyncIterator()
        let heard = try await listener.next()
        #expect(heard?.cursor == page.cursor && heard?.isLastPage == page.isLastPage)
        if page.isLastPage { break }
        cursor = page.cursor
      }
      #expect(found == all.documents.map(\.documentID))
      #expect(pages == (30 + size - 1) / size)
    }
    let last = try await order.limit(toLast: 4).getDocuments()
    #expect(!last.isLastPage)
    #expect(try await order.limit(toLast: 4).end(at: [6]).getDocuments().isLastPage == true)
    let joined = try await order.limit(to: 3).lookup("name", in: "items", as: "price")
      .getDocuments()
    #expect(joined.cursor == (try await order.limit(to: 3).getDocuments().cursor))
    let some = try #require(try await order.select("name").getDocuments().documents.first)
    let error = #expect(throws: DatabaseError.self) { try order.cursor(at: some) }
    #expect(error?.field == "price")
    try await database.close()
  }

  @Test func `A place is a short text that is safe in a URL, or none`() async throws {
    let items = try await makeItems()
    let query = items.order(by: "price", missing: .first).order(by: "name", descending: true)
    let safe = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    for document in try await query.getDocuments().documents {
      let cursor = try query.cursor(at: document)
      let text = cursor.description
      #expect(text.count < 80 && text.allSatisfy(safe.contains), "\(text)")
      #expect(QueryCursor(text) == cursor)
      // No other text is the same place, and no truncated one is a place.
      for place in text.indices {
        var other = text
        other.replaceSubrange(place...place, with: text[place] == "A" ? "B" : "A")
        #expect(QueryCursor(other) != cursor)
        #expect(QueryCursor(String(text[..<place])) == nil)
      }
    }
    for text in ["", "A", "AA", "AQ==", "é", "a b", String(repeating: "A", count: 99)] {
      #expect(QueryCursor(text) == nil)
    }
  }
}
