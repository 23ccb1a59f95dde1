// The field in which a property is stored: found from the type itself, whatever its coding.

import Foundation
import OndolTestKit
import Testing

@testable import Ondol

/// A type with everything that makes fields hard to find.
private struct Ware: Codable, Sendable, Equatable {
  enum Kind: String, Codable, CaseIterable { case lamp, chair, desk }
  enum Size: Int, Codable, CaseIterable { case small = 3, large = 9 }
  struct Maker: Codable, Equatable {
    struct Place: Codable, Equatable {
      var city: String
      var distance: Double?
    }
    var name: String
    var place: Place?
  }
  enum CodingKeys: String, CodingKey {
    case id, kind, size, price, name, tags, maker, added, isNew, picture, counts, note, code
    case title = "the title", changed, count, deleted
  }

  @DocumentID var id: String?
  var kind: Kind
  var size: Size?
  var price: Int
  var count: UInt8?
  var name: String
  var title: String
  var tags: [String]
  var maker: Maker
  var added: Date
  var isNew: Bool
  var picture: URL?
  var counts: [String: Int]
  var note: String?
  var code: UUID
  @ServerTimestamp var changed: Date?
  @ExplicitNull var deleted: Date?

  var loudName: String { name.uppercased() }
  var alias: String { name }
}

/// Encodes by hand, into another shape than its own.
private struct Turned: Codable, Sendable {
  var first: Int
  var second: Int

  enum Keys: String, CodingKey { case pair, other }
  enum Pair: String, CodingKey { case b }

  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: Keys.self)
    let pair = try container.nestedContainer(keyedBy: Pair.self, forKey: .pair)
    first = try pair.decode(Int.self, forKey: .b)
    second = try container.decode(Int.self, forKey: .other)
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Keys.self)
    var pair = container.nestedContainer(keyedBy: Pair.self, forKey: .pair)
    try pair.encode(first, forKey: .b)
    try container.encode(second, forKey: .other)
  }
}

private struct Unlisted: Codable, Sendable {
  enum State: String, Codable { case open, closed }
  struct Order: Codable { var state: State }
  var name: String
  var order: Order
}

/// Contains itself.
private struct Branch: Codable, Sendable {
  var name: String
  var branches: [Branch]
  var next: [String: Branch]?
}

/// Accepts only some values.
private struct Even: Codable, Sendable, Equatable, FieldExamples {
  var number: Int
  static var fieldExamples: [Even] { [Even(number: 2), Even(number: 4)] }

  init(number: Int) { self.number = number }

  init(from decoder: any Decoder) throws {
    number = try decoder.singleValueContainer().decode(Int.self)
    guard number % 2 == 0 else { throw DatabaseError(.invalidArgument, "\(number) is odd") }
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(number)
  }
}

private struct Numbered: Codable, Sendable {
  var even: Even
  var odd: Int
}

/// With each kind of value that only a database has.
private struct Pictured: Codable, Sendable {
  var photo: BlobReference
  var small: BlobReference?
  var digest: BlobDigest
  var owner: DocumentReference
  var place: GeoPoint
  var sense: VectorValue
  var taken: Timestamp
  var other: Value
}

@Suite struct `Fields of typed models` {
  private func fields<Model: Codable & Sendable>(
    of type: Model.Type, _ encoder: DocumentEncoder = DocumentEncoder()
  ) async throws -> ModelFields<Model> {
    let database = try await Database.underTest()
    return try database.collection("items", of: type, encoder: encoder).fields
  }

  private func name<Model, Content: Encodable>(
    _ property: any KeyPath<Model, Content> & Sendable, _ fields: ModelFields<Model>
  ) throws -> String {
    "\(try fields.path(of: ModelProperty(property)))"
  }

  @Test func `Every property leads to its field`() async throws {
    let fields = try await fields(of: Ware.self)
    #expect(try name(\.kind, fields) == "kind")
    #expect(try name(\.size, fields) == "size")
    #expect(try name(\.price, fields) == "price")
    #expect(try name(\.count, fields) == "count")
    #expect(try name(\.name, fields) == "name")
    #expect(try fields.path(of: ModelProperty(\.title)).names() == ["the title"])
    #expect(try name(\.tags, fields) == "tags")
    #expect(try name(\.maker, fields) == "maker")
    #expect(try name(\.maker.name, fields) == "maker.name")
    #expect(try name(\.maker.place, fields) == "maker.place")
    #expect(try name(\.maker.place?.city, fields) == "maker.place.city")
    #expect(try name(\.maker.place?.distance, fields) == "maker.place.distance")
    #expect(try name(\.added, fields) == "added")
    #expect(try name(\.isNew, fields) == "isNew")
    #expect(try name(\.picture, fields) == "picture")
    #expect(try name(\.counts, fields) == "counts")
    #expect(try name(\.note, fields) == "note")
    #expect(try name(\.code, fields) == "code")
    #expect(try name(\.changed, fields) == "changed")
    #expect(try name(\.deleted, fields) == "deleted")
    #expect(try fields.path(of: ModelProperty(\.id)).isDocumentID)
    // Always equal to the field's value, so it may represent it.
    #expect(try name(\.alias, fields) == "name")
    // Through properties, as in the closure of where(_:).
    let properties = ModelProperties<Ware>()
    #expect("\(try fields.path(of: properties.maker.place.city))" == "maker.place.city")
  }

  @Test func `Strategies and types that encode by hand are followed`() async throws {
    let snake = try await fields(
      of: Ware.self, DocumentEncoder(keyStrategy: .snakeCase, dateStrategy: .iso8601))
    #expect(try name(\.isNew, snake) == "is_new")
    #expect(try name(\.added, snake) == "added")
    let turned = try await fields(of: Turned.self)
    #expect(try name(\.first, turned) == "pair.b")
    #expect(try name(\.second, turned) == "other")
    let branch = try await fields(of: Branch.self)
    #expect(try name(\.name, branch) == "name")
    #expect(try name(\.branches, branch) == "branches")
    let numbered = try await fields(of: Numbered.self)
    #expect(try name(\.even, numbered) == "even")
    #expect(try name(\.odd, numbered) == "odd")
  }

  @Test func `The database's own kinds of value have their fields`() async throws {
    let fields = try await fields(of: Pictured.self)
    #expect(try name(\.photo, fields) == "photo")
    #expect(try name(\.small, fields) == "small")
    #expect(try name(\.digest, fields) == "digest")
    #expect(try name(\.owner, fields) == "owner")
    #expect(try name(\.place, fields) == "place")
    #expect(try name(\.sense, fields) == "sense")
    #expect(try name(\.taken, fields) == "taken")
    #expect(try name(\.other, fields) == "other")
  }

  @Test func `A query on a property without a field is refused`() async throws {
    let database = try await Database.underTest()
    let wares = try database.collection("wares", of: Ware.self)
    let error = await #expect(throws: DatabaseError.self) {
      try await wares.where { $0.loudName == "LAMP" }.getDocuments()
    }
    #expect(error?.code == .invalidArgument)
    #expect(error?.message.contains("is not stored in a field") == true, "\(error as Any)")
    try await database.close()
  }

  @Test func `A type of unknown values is refused when it is asked about them`() async throws {
    let database = try await Database.underTest()
    let items = try database.collection("items", of: Unlisted.self)
    try await items.document("a").setData(Unlisted(name: "A", order: .init(state: .open)))
    #expect(try await items.where(\.name == "A").getDocuments().map(\.order.state) == [.open])
    let error = await #expect(throws: DatabaseError.self) {
      try await items.where { $0.order.state == .open }.getDocuments()
    }
    #expect(error?.code == .failedPrecondition)
    #expect(error?.field == "order.state")
    #expect(error?.message.contains("CaseIterable") == true, "\(error?.message ?? "")")
    #expect(error?.message.contains("whereField(\"order.state\"") == true)
    try await database.close()
  }
}
