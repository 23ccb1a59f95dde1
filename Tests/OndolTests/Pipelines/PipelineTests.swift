// Pipelines as an app writes them: reports over a few books, in snapshots, in transactions and
// live, and what is refused.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct PipelineTests {
  private func library() async throws -> Database {
    let database = try await Database.inMemory()
    let books: [(String, [String: Value])] = [
      (
        "a",
        ["title": "Lamp", "genre": "craft", "rating": 4.5, "tags": ["oak", "light"], "by": "x"]
      ),
      ("b", ["title": "Chair", "genre": "craft", "rating": 3, "tags": ["oak"], "by": "y"]),
      ("c", ["title": "Sea", "genre": "novel", "rating": 5, "tags": [], "by": "x"]),
      ("d", ["title": "Hill", "genre": nil, "rating": 4, "tags": ["light"], "by": "z"]),
      ("e", ["title": "Fog", "rating": .double(.nan), "by": "y"]),
    ]
    for (id, fields) in books { try await database.document("books/\(id)").setData(fields) }
    for (id, name) in [("x", "Ada"), ("y", "Bo")] {
      try await database.document("authors/\(id)").setData(["id": id, "name": name])
    }
    return database
  }

  private func rows(_ pipeline: Pipeline) async throws -> [[String: Value]] {
    try await pipeline.execute().map { $0.data() }
  }

  @Test func `A report filters, groups, sorts and limits`() async throws {
    let database = try await library()
    let report = database.pipeline().collection("books")
      .where(Field("rating").greaterThan(2))
      .aggregate(
        .count().as("books"), Field("rating").average().as("mean"), groups: [Field("genre")]
      )
      .sort(Field("mean").descending())
      .limit(2)
    #expect(
      try await rows(report) == [
        ["genre": "novel", "books": 1, "mean": 5.0], ["genre": nil, "books": 1, "mean": 4.0],
      ])
    let expected = try await rows(report)
    #expect(try database.snapshot().execute(report).map { $0.data() } == expected)
  }

  @Test func `A field that a document lacks groups with null and sorts first`() async throws {
    let database = try await library()
    let groups = database.pipeline().collection("books")
      .aggregate(.count().as("n"), groups: [Field("genre")]).sort(Field("genre").ascending())
    #expect(
      try await rows(groups) == [
        ["genre": nil, "n": 2], ["genre": "craft", "n": 2], ["genre": "novel", "n": 1],
      ])
    let sorted = database.pipeline().collection("books").sort(Field("genre").ascending()).limit(1)
    #expect(try await sorted.execute().first?.reference?.path == "books/e")
  }

  @Test func `NaN is neither less nor greater, whatever the query's order says`() async throws {
    let database = try await library()
    let least = database.pipeline().collection("books").where(Field("rating").lessThan(3.5))
      .select(Field("title"))
    #expect(try await rows(least) == [["title": "Chair"]])
    let none = database.pipeline().collection("books")
      .where(Field("rating").equal(Value.double(.nan))).select(Field("title"))
    #expect(try await rows(none) == [["title": "Fog"]])
  }

  @Test func `Elements, unions, joins and windows make rows of rows`() async throws {
    let database = try await library()
    let tags = database.pipeline().collection("books")
      .where(Field("tags").arrayLength().greaterThan(0))
      .unnest(Field("tags").as("tag"), indexField: "place")
      .aggregate(.count().as("n"), Field("place").maximum().as("last"), groups: [Field("tag")])
      .sort(Field("tag").ascending())
    #expect(
      try await rows(tags) == [
        ["tag": "light", "n": 2, "last": 1], ["tag": "oak", "n": 2, "last": 0],
      ])
    let names = database.pipeline().collection("books")
      .lookup(in: "authors", where: "id", equals: Field("by"), as: "authors")
      .select(
        Field("title"), Field("authors").arrayGet(0).mapGet("name").as("author")
      )
      .sort(Field("title").ascending()).limit(2)
    #expect(
      try await rows(names) == [
        ["title": "Chair", "author": "Bo"], ["title": "Fog", "author": "Bo"],
      ])
    let ranks = database.pipeline().collection("books").where(Field("genre").exists())
      .window(
        .rank().as("place"), .total(Field("rating")).as("all"),
        .lag(Field("title")).as("before"), groups: [Field("genre")],
        orders: [Field("rating").descending()]
      ).select(Field("title"), Field("place"), Field("all"), Field("before"))
    #expect(
      try await rows(ranks) == [
        ["title": "Hill", "place": 1, "all": 4],
        ["title": "Lamp", "place": 1, "all": 7.5],
        ["title": "Chair", "place": 2, "all": 7.5, "before": "Lamp"],
        ["title": "Sea", "place": 1, "all": 5],
      ])
    let twice = database.pipeline().collection("books").union(
      database.pipeline().collection("books").where(Field("by").equal("x")))
    #expect(try await rows(twice).count == 7)
  }

  @Test func `A reference is followed to its document, and a missing one to null`() async throws {
    let database = try await library()
    try await database.document("loans/1").setData(["of": database.document("books/a")])
    try await database.document("loans/2").setData(["of": database.document("books/none")])
    let loans = database.pipeline().collection("loans").lookup(Field("of"), as: "book")
      .select(Field("book.title").as("title"), Field("book").as("book"))
      .sort(Field("title").descending())
    let found = try await rows(loans)
    #expect(found.count == 2 && found[0]["title"] == "Lamp" && found[1] == ["book": nil])
  }

  @Test func `Sources are groups, documents, literals and everything`() async throws {
    let database = try await library()
    try await database.document("shops/1/books/z").setData(["title": "Far"])
    #expect(try await database.pipeline().collectionGroup("books").execute().count == 6)
    #expect(try await database.pipeline().allDocuments().execute().count == 8)
    let chosen = database.pipeline().documents([
      database.document("books/c"), database.document("books/none"),
    ])
    #expect(try await chosen.execute().map(\.reference?.path) == ["books/c"])
    let literal = database.pipeline().literals([
      [PipelineExpression(2).as("n")], [PipelineExpression(3).as("n")],
    ]).aggregate(Field("n").sum().as("sum"))
    #expect(try await rows(literal) == [["sum": 5]])
  }

  @Test func `The nearest vectors come first, and others than vectors not at all`() async throws {
    let database = try await library()
    for (id, vector) in [("1", [1.0, 0]), ("2", [3.0, 4]), ("3", [0.0, 1, 2])] {
      try await database.document("v/\(id)").setData(["e": VectorValue(vector)])
    }
    let nearest = database.pipeline().collection("v").findNearest(
      Field("e"), to: [0, 0], measure: .euclidean, limit: 5, distanceField: "d"
    ).select(Field("d"))
    #expect(try await rows(nearest) == [["d": 1.0], ["d": 5.0]])
  }

  @Test func `A search for words is a source of rows`() async throws {
    let database = try await library()
    try await database.collection("books").createSearchIndex(on: ["title"])
    let found = database.pipeline().collection("books").search("lamp sea")
      .aggregate(.count().as("n"))
    #expect(try await rows(found) == [["n": 2]])
  }

  @Test func `A sample has as many rows as it is asked for, and no row twice`() async throws {
    let database = try await library()
    let paths = try await database.pipeline().collection("books").sample(3).execute()
      .compactMap(\.reference?.path)
    #expect(paths.count == 3 && Set(paths).count == 3)
    #expect(try await database.pipeline().collection("books").sample(share: 0).execute().isEmpty)
  }

  // MARK: - Plans

  @Test func `Conditions, an order and a limit are one query, with its index`() async throws {
    let database = try await library()
    try await database.collection("books").createIndex(on: ["rating"])
    let pipeline = database.pipeline().collection("books")
      .where(Field("rating").greaterThan(2) && Field("title").charLength().greaterThan(3))
      .select(Field("title"))
    let explanation = try await pipeline.explain(analyze: true)
    #expect(explanation.served == ["collection", "where"])
    #expect(explanation.query?.indexName == "rating")
    #expect(explanation.stages.map(\.name) == ["where", "select"])
    #expect(explanation.stages.map(\.rows) == [3, 3] && explanation.sourceRows == 4)
    let sorted = database.pipeline().collection("books").where(Field("rating").greaterThan(2))
      .sort(Field("rating").descending()).offset(1).limit(2)
    #expect(try await sorted.explain().stages.isEmpty)
    #expect(try await rows(sorted).map { $0["title"] } == ["Lamp", "Hill"])
  }

  // MARK: - Transactions and listeners

  @Test func `A transaction's pipeline sees its writes, and other writes repeat it`() async throws {
    let database = try await library()
    let count = database.pipeline().collection("books").aggregate(.count().as("n"))
    let attempts = Attempts()
    let total = try await database.runTransaction { transaction in
      try transaction.setData(["title": "New"], forDocument: database.document("books/n"))
      let attempt = attempts.next()
      let found = try transaction.execute(count).first?.get("n") as Int?
      if attempt == 1 {
        // Another task's write, which the body itself could not make.
        try await Task.detached {
          _ = try await database.document("books/m").setData(["title": "Other"])
        }.value
      }
      return found
    }
    #expect(total == 7)
    #expect(attempts.count == 2)
  }

  @Test func `A listener gets the new answer after a commit that concerns it`() async throws {
    let database = try await library()
    let pipeline = database.pipeline().collection("books").where(Field("by").equal("x"))
      .aggregate(.count().as("n"))
    var updates = pipeline.snapshots.makeAsyncIterator()
    #expect(try await updates.next()?.results.map { $0.data() } == [["n": 2]])
    try await database.document("books/b").updateData(["by": "x"])
    #expect(try await updates.next()?.results.map { $0.data() } == [["n": 3]])
    try await database.document("authors/x").updateData(["name": "Eve"])
    #expect(try await updates.poll() == nil)
  }

  // MARK: - Refusals

  private func refusal(_ pipeline: Pipeline) async -> DatabaseError.Code? {
    do throws(DatabaseError) {
      _ = try await pipeline.execute()
      return nil
    } catch {
      return error.code
    }
  }

  @Test func `Wrong stages and functions are refused when they are executed`() async throws {
    let database = try await library()
    let books = database.pipeline().collection("books")
    let wrong: [Pipeline] = [
      books.where(PipelineExpression.function("no_such_function", Field("a"))),
      books.where(PipelineExpression.function("add", Field("rating"))),
      books.where(PipelineExpression.variable("x")),
      books.where(Field("a..b").equal(1)),
      books.limit(-1), books.offset(-1), books.sample(-1), books.sample(share: 2),
      books.aggregate(groups: [Field("genre")]), books.distinct(), books.sort(),
      books.aggregate(PipelineAggregate.function("no_such", Field("a")).as("n")),
      books.aggregate(PipelineAggregate.function("sum").as("n")),
      books.select(Field("title"), Field("by").as("title")),
      books.select(Field("rating").add("x").as("n")),
      books.replace(with: Field("title")),
      books.limit(3).search("lamp"),
      database.pipeline().collection("books/a"), database.pipeline().collectionGroup("a/b"),
      Pipeline(database: database, stages: []),
      Pipeline(database: database, stages: [.limit(1)]),
      Pipeline(database: database, stages: [.collectionGroup("a"), .collectionGroup("b")]),
    ]
    for pipeline in wrong {
      #expect(await refusal(pipeline) == .invalidArgument, "\(pipeline.stages)")
    }
  }

  @Test func `An error names the stage and its place`() async throws {
    let database = try await library()
    let books = database.pipeline().collection("books")
    let many = books.where(Field("rating").greaterThan(0)).where(Field("title").exists())
    let wrong: [(Pipeline, String)] = [
      (
        many.where(PipelineExpression.function("nothing", Field("a"))),
        "stage 4, where: there is no function \"nothing\""
      ),
      (
        many.select(Field("title")).addFields(PipelineExpression.function("add", 1).as("n")),
        "stage 5, add_fields: add takes 2 arguments, and has 1"
      ),
      (many.sort(Field("rating").ascending()).limit(-1), "stage 5, limit must not be negative: -1"),
      (many.limit(2).select(Field("title").add(1).as("n")), "stage 5, select: "),
      (
        many.select(Field("title")).aggregate(
          PipelineAggregate.function("median", Field("x")).as("m")),
        "stage 5, aggregate: there is no aggregate \"median\""
      ),
      (many.replace(with: Field("title")), "stage 4, replace_with: a row's value is no map"),
      (many.sort(Field("title").mod(2).ascending()), "stage 4, sort: "),
      (
        books.union(many.where(PipelineExpression.variable("x"))),
        "stage 2, union: stage 4, where: there is no variable \"x\" here"
      ),
      (
        books.union(many.select(Field("title").add(1).as("n"))),
        "stage 2, union: the stage select: "
      ),
      (
        Pipeline(database: database, stages: [.collectionGroup("a"), .limit(1), .database]),
        "stage 3, database: it can only be a pipeline's first stage"
      ),
    ]
    for (pipeline, message) in wrong {
      let error = await #expect(throws: DatabaseError.self) { try await pipeline.execute() }
      #expect(error?.code == .invalidArgument)
      #expect(error?.message.hasPrefix(message) == true, "\(String(describing: error))")
    }
  }

  /// Patterns whose number of ways to match a text grows with every character.
  @Test func `Regular expressions cost the same for each character`() async throws {
    let database = try await library()
    try await database.document("texts/a").setData([
      "text": String(repeating: "a", count: 5_000) + "b"
    ])
    let texts = database.pipeline().collection("texts")
    for pattern in ["(a*)*c", "(a|a)*c", "(a+)+$", "(.*)(.*)(.*)(.*)c", "a{200}{200}c"] {
      let found = try? await texts.where(Field("text").regexContains(pattern)).execute().count
      #expect(found == 0 || pattern == "(a+)+$", "\(pattern)")
    }
    let unbounded = texts.select(
      Field("text").regexContains(String(repeating: "(a{1000})", count: 100)).as("x"))
    let error = await #expect(throws: DatabaseError.self) { try await unbounded.execute() }
    #expect(error?.message.hasPrefix("stage 2, select: ") == true)
  }

  @Test func `Nesting without end is refused`() async throws {
    let database = try await library()
    var expression = Field("rating").pipelineExpression
    for _ in 0..<150 { expression = expression.add(1) }
    let books = database.pipeline().collection("books")
    #expect(await refusal(books.select(expression.as("n"))) == .invalidArgument)
    var nested = books
    for _ in 0..<20 { nested = books.union(nested) }
    #expect(await refusal(nested) == .invalidArgument)
    var long = books
    for _ in 0..<600 { long = long.limit(5) }
    #expect(await refusal(long) == .invalidArgument)
    // After 60 unions with itself nobody could count its stages.
    var doubled = books
    for _ in 0..<60 { doubled = doubled.union(doubled) }
    #expect(await refusal(doubled) == .invalidArgument)
  }

  @Test func `A stage that would keep more than the memory says so`() async throws {
    var options = Database.Options()
    options.pipelineMemory = 12_000
    let database = try await Database.inMemory(options: options)
    let batch = database.batch()
    for number in 0..<400 {
      try batch.setData(
        ["n": number, "text": "text \(number)"], forDocument: database.document("c/\(number)"))
    }
    try await batch.commit()
    let rows = database.pipeline().collection("c")
    for stage in [
      rows.sort(Field("text").ascending()),
      rows.aggregate(.count().as("count"), groups: [Field("n")]),
      rows.lookup(in: "c", where: "n", equals: Field("n"), as: "all"),
    ] {
      let error = await #expect(throws: DatabaseError.self) { try await stage.execute() }
      #expect(error?.code == .resourceExhausted)
    }
    let least = rows.sort(Field("text").descending()).limit(1)
    #expect(try await least.execute().first?.get("n") == 99)
    #expect(try await rows.aggregate(.count().as("n")).execute().first?.get("n") == 400)
  }

  @Test func `A cancelled task stops within a batch of rows`() async throws {
    let database = try await library()
    let pipeline = database.pipeline().collection("books")
    let rows = try database.engineSnapshot()
    let task = Task { () -> (Int, DatabaseError.Code) in
      unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
      let reading = Rows(rows, database.catalog, mayBlock: true, canBeCancelled: true)
      let context = PipelineContext(database, reading)
      var taken = 0
      do throws(DatabaseError) {
        while taken < 10_000 {
          try context.step()
          taken += 1
        }
      } catch {
        return (taken, error.code)
      }
      return (taken, DatabaseError.Code.ok)
    }
    let (taken, code) = await task.value
    #expect(taken < 256 && code == .cancelled)
    #expect(try await pipeline.execute().count == 5)
  }

  @Test func `Rows decode into types`() async throws {
    struct Genre: Decodable, Equatable {
      var genre: String?
      var books: Int
    }
    let database = try await library()
    let found = try await database.pipeline().collection("books").where(
      Field("genre").equal("craft")
    )
    .aggregate(.count().as("books"), groups: [Field("genre")]).execute()
    #expect(try found.first?.data(as: Genre.self) == Genre(genre: "craft", books: 2))
  }
}

/// Counts the attempts of a transaction.
private final class Attempts: Sendable {
  private let guarded = Guarded(0)

  var count: Int { guarded.withLock { $0 } }

  func next() -> Int {
    guarded.withLock {
      $0 += 1
      return $0
    }
  }
}
