// Typed pipelines: properties find their columns, conditions mean what they mean in typed queries,
// and rows decode into the types that stages name.

import OndolTestKit
import Testing

@testable import Ondol

private struct Book: Codable, Sendable, Equatable, Identifiable {
  struct Author: Codable, Sendable, Equatable {
    var name: String
    var born: Int?
  }
  enum CodingKeys: String, CodingKey {
    case id, title, genre, price, count, tags, author
    case rating = "stars"
  }
  var id: String
  var title: String
  var genre: String?
  var rating: Double
  var price: Int
  var count: Int
  var tags: [String]
  var author: Author
}

private struct Genre: Codable, Sendable, Equatable {
  enum CodingKeys: String, CodingKey {
    case genre, books, mean, value
    case first = "least title"
  }
  var genre: String?
  var books: Int
  var mean: Double?
  var value: Int
  var first: String?
}

private struct Title: Codable, Sendable, Equatable {
  var title: String
  var length: Int
}

@Suite struct `Typed pipelines` {
  private func books() async throws -> TypedCollection<Book> {
    let database = try await Database.inMemory()
    let books = try database.collection("books", of: Book.self)
    var random = SeededRandom(seed: 3)
    for number in 0..<60 {
      try await books.setData(
        Book(
          id: "b\(number)", title: random.pick(["Sea", "Fog", "Lamp", "Hill"]),
          genre: random.chance(1, in: 5) ? nil : random.pick(["novel", "craft"]),
          rating: Double(random.below(9)) / 2, price: random.below(30), count: random.below(4),
          tags: random.chance(1, in: 2) ? ["oak"] : [],
          author: .init(
            name: random.pick(["Ada", "Bo"]), born: random.chance(1, in: 3) ? nil : 1_950)))
    }
    return books
  }

  @Test func `Groups are values of a type, sorted by its properties`() async throws {
    let books = try await books()
    let pipeline = books.pipeline()
      .where(\.rating > 1)
      .aggregate(
        as: Genre.self, .count(as: \.books), .average(\.rating, as: \.mean),
        .computed({ $0.price.multiply($0.count).sum() }, as: \.value),
        .minimum(\.title, as: \.first), groups: .property(\.genre, as: \.genre)
      )
      .where(\.books > 1)
      .sort(.descending(\.mean), .ascending(\.genre))
    let found = try await pipeline.execute()
    let all = try await books.getDocuments().filter { $0.rating > 1 }
    var expected: [Genre] = []
    for (genre, books) in Dictionary(grouping: all, by: \.genre) where books.count > 1 {
      var (sum, value) = (0.0, 0)
      for book in books {
        sum += book.rating
        value += book.price * book.count
      }
      expected.append(
        Genre(
          genre: genre, books: books.count, mean: sum / Double(books.count), value: value,
          first: books.map(\.title).min()))
    }
    expected.sort { $0.mean ?? 0 > $1.mean ?? 0 }
    #expect(found == expected && found.count == 3)
    let database = books.collection.database
    #expect(try database.snapshot().execute(pipeline) == expected)
    #expect(try await database.runTransaction { try $0.execute(pipeline) } == expected)
    var live = pipeline.snapshots.makeAsyncIterator()
    #expect(try await live.next()?.map { try $0.get() } == expected)
  }

  /// Conditions in both forms; NaN and null are in neither data.
  @Test func `A condition keeps the rows that a typed query finds`() async throws {
    let books = try await books()
    let conditions: [TypedFilter<Book>] = [
      \.price == 3, \.price != 3, \.price < 10, \.price <= 10, \.rating > 2.5, \.rating >= 2.5,
    ]
    for condition in conditions {
      let found = try await books.pipeline().where(condition).execute().map(\.id)
      let expected = try await books.where(condition).getDocuments().map(\.id)
      #expect(found == expected && !found.isEmpty)
    }
    func check(_ filter: (ModelProperties<Book>) -> TypedFilter<Book>) async throws {
      let found = try await books.pipeline().where(filter).execute().map(\.id).sorted()
      let expected = try await books.where(filter).getDocuments().map(\.id).sorted()
      #expect(found == expected && !found.isEmpty)
    }
    try await check { $0.price < 10 && $0.tags.contains("oak") || $0.count == 0 }
    try await check { $0.title.isIn(["Sea", "Fog"]) }
    try await check { $0.genre == "novel" }
    try await check { $0.genre != "novel" }
    try await check { $0.genre > "craft" }
    try await check { $0.genre.isNotIn(["craft"]) }
    try await check { $0.title.hasPrefix("L") }
    try await check { $0.author.born == 1_950 && $0.author.name == "Ada" }
    try await check { $0.id == "b7" }
  }

  @Test func `Columns are computed, and a document's id is its text`() async throws {
    let books = try await books()
    let titles = try await books.pipeline()
      .where { $0.title.charLength().greaterThan(3) }
      .distinct(
        as: Title.self, .property(\.title, as: \.title),
        .computed({ $0.title.charLength() }, as: \.length)
      ).sort(.ascending(\.title)).execute()
    #expect(titles == [Title(title: "Hill", length: 4), Title(title: "Lamp", length: 4)])
    let named = try await books.pipeline()
      .select(
        as: Title.self, .property(\.author.name, as: \.title),
        .computed({ $0.price.add($0.author.born.ifAbsent(0)) }, as: \.length)
      ).sort(.computed { $0.length.descending() }).limit(1).execute()
    let most = try await books.getDocuments().map { $0.price + ($0.author.born ?? 0) }.max()
    #expect(named.first?.length == most)
    let again = try await books.pipeline().offset(1).limit(3).union(books.pipeline().limit(2))
      .execute()
    #expect(again.count == 5)
    let untyped = books.pipeline().pipeline.unnest(Field("tags").as("title"))
      .addFields(PipelineExpression(1).as("length")).of(Title.self)
    #expect(try await untyped.execute().allSatisfy { $0.title == "oak" })
  }

  @Test func `What a type does not have is an error of the execution`() async throws {
    struct Wrong: Codable, Sendable { var title: Int }
    struct Nested: Codable, Sendable {
      struct Inner: Codable, Sendable { var title: String }
      var inner: Inner
    }
    let books = try await books()
    let wrong = books.pipeline().pipeline.select(Field("title")).of(Wrong.self)
    let misfit = await #expect(throws: DatabaseError.self) { try await wrong.execute() }
    #expect(misfit?.code == .failedPrecondition)
    var live = wrong.snapshots.makeAsyncIterator()
    #expect(try await live.next()?.allSatisfy { (try? $0.get()) == nil } == true)
    let nested = books.pipeline().select(
      as: Nested.self, .property(\.title, as: \.inner.title))
    let refused = await #expect(throws: DatabaseError.self) { try await nested.execute() }
    #expect(refused?.code == .invalidArgument)
    let compared = books.pipeline().where { $0.title.comparing(.caseInsensitive) == "sea" }
    let texts = await #expect(throws: DatabaseError.self) { try await compared.execute() }
    #expect(texts?.code == .invalidArgument)
  }
}
