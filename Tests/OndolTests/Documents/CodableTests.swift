// Codable types to documents and back, and the messages when they do not fit.

import Foundation
import Testing

@testable import Ondol

private struct Everything: Codable, Equatable {
  enum Status: String, Codable { case open, closed }
  struct Nested: Codable, Equatable {
    var values: [Int?]
    var byName: [String: [Double]]
  }

  var text = "ü"
  var flag = true
  var small: Int8 = -8
  var large: UInt64 = .init(Int64.max)
  var float: Float = 1.5
  var double = 0.1
  var date = Date(timeIntervalSince1970: 1_700_000_000.25)
  var data = Data([0, 1, 255])
  var octets: [UInt8] = [3, 2, 1]
  var url = URL(string: "https://example.org/a?b=c")
  var id = UUID()
  var status = Status.closed
  var nested = Nested(values: [1, nil, 3], byName: ["a": [1, 2.5], "e": []])
  var nothing: Int?
  var byNumber: [Int: String] = [1: "one"]
  var point: GeoPoint
  var vector = VectorValue([1, 2, 3])
  var time: Timestamp
  var path: DocumentPath?
}

private struct Number<Kind: Codable & Equatable>: Codable {
  var n: Kind
}

private class Base: Codable {
  var name = ""

  init(name: String) { self.name = name }
}

/// Encodes its superclass through `superEncoder()`, and a part through nested containers.
private final class Derived: Base {
  enum CodingKeys: String, CodingKey { case extra, list, map }
  enum MapKeys: String, CodingKey { case a }

  var extra = 0
  var list: [Int] = []
  var a = ""

  init(name: String, extra: Int, list: [Int], a: String) {
    self.extra = extra
    self.list = list
    self.a = a
    super.init(name: name)
  }

  required init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    extra = try container.decode(Int.self, forKey: .extra)
    var list = try container.nestedUnkeyedContainer(forKey: .list)
    while !list.isAtEnd { self.list.append(try list.decode(Int.self)) }
    a = try container.nestedContainer(keyedBy: MapKeys.self, forKey: .map)
      .decode(String.self, forKey: .a)
    try super.init(from: container.superDecoder())
  }

  override func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    var list = container.nestedUnkeyedContainer(forKey: .list)
    var map = container.nestedContainer(keyedBy: MapKeys.self, forKey: .map)
    try container.encode(extra, forKey: .extra)
    for number in self.list { try list.encode(number) }
    try map.encode(a, forKey: .a)
    try super.encode(to: container.superEncoder())
  }
}

@Suite struct CodableTests {
  @Test func `Every kind of field survives the way through a document`() async throws {
    let database = try await Database.underTest()
    let document = database.document("c/d")
    let value = Everything(
      point: try GeoPoint(latitude: 37.5, longitude: 127),
      time: try Timestamp(seconds: 5, nanoseconds: 0),
      path: try DocumentPath("a/b"))
    try await document.setData(from: value)
    let read = try await document.getDocument()
    #expect(try read.data(as: Everything.self) == value)
    #expect(read.data()["nothing"] == nil, "nil is left out")
    #expect(read["nested.values"] == [1, nil, 3])
    #expect(read["date"] == .timestamp(try Timestamp(date: value.date)))
    #expect(read["octets"] == .bytes([3, 2, 1]))
    #expect(read["path"] == .reference(try DocumentPath("a/b")))
    #expect(read["url"] as String? == "https://example.org/a?b=c")

    #expect(read.get(FieldPath(["byNumber", "1"])) == "one")
  }

  @Test func `Superclasses and nested containers are kept`() throws {
    let value = Derived(name: "base", extra: 7, list: [1, 2], a: "x")
    let fields = try DocumentEncoder().encode(value)
    #expect(fields == ["extra": 7, "list": [1, 2], "map": ["a": "x"], "super": ["name": "base"]])
    let read = try DocumentDecoder().decode(Derived.self, from: fields)
    #expect(read.name == "base")
    #expect(read.extra == 7)
    #expect(read.list == [1, 2])
    #expect(read.a == "x")
  }

  @Test func `References are decoded with their database`() async throws {
    struct Post: Codable, Equatable {
      var author: DocumentReference
      var others: [DocumentReference]
    }
    let database = try await Database.underTest()
    let author = database.document("users/u")
    let post = Post(author: author, others: [database.document("users/v")])
    let document = try await database.collection("posts").addDocument(from: post)
    let read = try await document.getDocument()
    #expect(try read.data(as: Post.self) == post)
    #expect(read["author"] == .reference(try DocumentPath("users/u")))
  }

  @Test func `An error in one document names its field, and leaves the others readable`()
    async throws
  {
    struct Shelf: Codable {
      struct Item: Codable { var price: Int }
      var items: [Item]
    }
    let database = try await Database.underTest()
    let shelves = database.collection("shelves")
    try await shelves.document("a").setData(["items": [["price": 1], ["price": 2]]])
    try await shelves.document("b").setData(["items": [["price": 1], ["price": "two"]]])
    try await shelves.document("c").setData(["items": [["price": 1], [String: Int]()]])
    try await shelves.document("d").setData(["items": [["price": nil]]])
    try await shelves.document("e").setData(["items": [["price": 1.5]]])
    let found = try await shelves.getDocuments().documents
    #expect(try found[0].data(as: Shelf.self).items.map(\.price) == [1, 2])
    let texts = found.map { document in
      Result { try document.data(as: Shelf.self) }.failureText
    }
    #expect(texts[0] == nil)
    #expect(texts[1] == "Field 'items[1].price' holds the string \"two\", which is not Int")
    #expect(texts[2] == "Field 'items[1].price' is missing")
    #expect(texts[3] == "Field 'items[0].price' is null, not Int")
    #expect(texts[4] == "Field 'items[0].price' holds the number 1.5, which is not Int")
  }

  @Test func `A document that is not there decodes as nil, or throws`() async throws {
    let database = try await Database.underTest()
    let missing = try await database.document("c/d").getDocument()
    #expect(try missing.data(as: [String: Int]?.self) == nil)
    let error = #expect(throws: DatabaseError.self) { try missing.data(as: [String: Int].self) }
    #expect(error?.code == .notFound)
    #expect(error?.path == "c/d")
  }

  @Test func `Numbers are converted if nothing is lost`() throws {
    func read<Kind: Codable & Equatable>(_ value: Value, as: Kind.Type) -> Kind? {
      try? DocumentDecoder().decode(Number<Kind>.self, from: ["n": value]).n
    }
    #expect(read(3.0, as: Int.self) == 3)
    #expect(read(3, as: Double.self) == 3)
    #expect(read(3.5, as: Int.self) == nil)
    #expect(read(300, as: UInt8.self) == nil)
    #expect(read(-1, as: UInt.self) == nil)
    #expect(read(true, as: Int.self) == nil)
    #expect(read(1, as: Bool.self) == nil)
    #expect(read(nil, as: Int?.self) == .some(nil))
    #expect(read("x", as: Int?.self) == nil)
  }

  @Test func `A value that cannot be a document is refused with its place`() async throws {
    struct Wrong: Codable { var list: [Decimal] }
    struct Throwing: Encodable {
      func encode(to encoder: any Encoder) throws { throw CocoaError(.coderInvalidValue) }
    }
    let document = try await Database.underTest().document("c/d")
    let tooLarge = await #expect(throws: DatabaseError.self) {
      try await document.setData(from: Wrong(list: [1, .nan]))
    }
    #expect(tooLarge?.code == .invalidArgument)
    #expect(tooLarge?.field == "list[1]")
    for write: @Sendable () async throws -> Void in [
      { try await document.setData(from: [1, 2]) }, { try await document.setData(from: "text") },
      { try await document.setData(from: Throwing()) },
    ] {
      let error = await #expect(throws: DatabaseError.self) { try await write() }
      #expect(error?.code == .invalidArgument)
    }
    #expect(try await document.getDocument().exists == false)
  }

  /// `snake_case` was once written, and could not be converted back to the case's name.
  @Test(arguments: [KeyStrategy.unchanged, .snakeCase])
  func `Every shape of enum comes back`(strategy: KeyStrategy) async throws {
    enum Shape: Codable, Hashable, CaseIterable {
      case bigCircle(innerRadius: Int), point, pair(Int, String?), imageURL(String), a2B(x: Int)
      case xY(String)
      static let allCases: [Shape] = [
        .bigCircle(innerRadius: 3), .point, .pair(1, nil), .pair(1, "x"), .imageURL("u"),
        .a2B(x: 1), .xY("p"),
      ]
    }
    struct Held: Codable, Equatable { var theShape: Shape; var allShapes: [Shape] }
    let document = try await Database.underTest().document("c/d")
    for shape in Shape.allCases {
      let held = Held(theShape: shape, allShapes: Shape.allCases)
      try await document.setData(from: held, encoder: DocumentEncoder(keyStrategy: strategy))
      let read = try await document.getDocument(
        as: Held.self, decoder: DocumentDecoder(keyStrategy: strategy))
      #expect(read == held)
    }
  }

  @Test func `Dictionaries are maps when their keys are texts or whole numbers`() async throws {
    enum Kind: String, Codable { case big, small }
    struct Place: Codable, Hashable { var x: Int }
    struct Item: Codable, Equatable {
      var byUUID: [UUID: [Int]]
      var byKind: [Kind: Int]
      var byInt: [Int: String]
      var byByte: [UInt8: Int]
      var byPlace: [Place: Int]
      var byText: [String: Kind]
    }
    let id = UUID()
    let item = Item(
      byUUID: [id: [1, 2]], byKind: [.big: 1, .small: 2], byInt: [7: "a"], byByte: [255: 1],
      byPlace: [Place(x: 1): 2], byText: ["oneName": .big])
    let document = try await Database.underTest().document("c/d")
    for strategy in [KeyStrategy.unchanged, .snakeCase] {
      try await document.setData(from: item, encoder: DocumentEncoder(keyStrategy: strategy))
      let read = try await document.getDocument(
        as: Item.self, decoder: DocumentDecoder(keyStrategy: strategy))
      #expect(read == item)
    }
    try await document.setData(from: item)
    let stored = try await document.getDocument()
    #expect(stored["byUUID"] as Value? == .map([id.uuidString: [1, 2]]))
    #expect(stored["byKind"] as Value? == ["big": 1, "small": 2])
    #expect(stored["byByte"] as Value? == ["255": 1])
    #expect(stored["byPlace"] as Value? == [["x": 1], 2])
    // In the form of Swift's own coding.
    let old = try DocumentDecoder().decode(
      [String: [Kind: Int]].self, from: ["k": ["big", 1, "small", 2]])
    #expect(old == ["k": [.big: 1, .small: 2]])
  }

  @Test func `A value that would not come back unchanged is refused with a sentence`() async throws
  {
    struct Half: Codable { var f: Float }
    struct Day: Codable, Equatable { var date: Date }
    let document = try await Database.underTest().document("c/d")
    try await document.setData(["f": 1e300])
    let large = await #expect(throws: DatabaseError.self) {
      try await document.getDocument(as: Half.self)
    }
    #expect(large?.path == "c/d" && large?.field == "f")
    for number in [0.1, .infinity, -3.4e38] {
      try await document.setData(["f": number])
      #expect(try await document.getDocument(as: Half.self).f == Float(number))
    }

    // A date becomes the nearest microsecond, and is exact from then on.
    let fine = Date(timeIntervalSinceReferenceDate: 700_000_000.123_456_7)
    try await document.setData(from: Day(date: fine))
    let once = try await document.getDocument(as: Day.self)
    #expect(once.date == (try Timestamp(date: fine).dateValue()))
    try await document.setData(from: once)
    #expect(try await document.getDocument(as: Day.self) == once)
    try await document.setData(from: Day(date: .distantFuture))
    #expect(try await document.getDocument(as: Day.self).date == .distantFuture)
    let past = await #expect(throws: DatabaseError.self) {
      try await document.setData(from: Day(date: .distantPast))
    }
    #expect(past?.message.contains("store nil") == true && past?.field == "date")
  }

  @Test func `A document that does not fit its type is named, and the reason is inside`()
    async throws
  {
    struct Item: Codable { var price: Int }
    struct Own: Decodable {
      init(from decoder: any Decoder) throws { throw CocoaError(.coderInvalidValue) }
    }
    let document = try await Database.underTest().document("c/d")
    try await document.setData(["price": "x"])
    do throws(DatabaseError) {
      _ = try await document.getDocument(as: Item.self)
      Issue.record("a text is no Int")
    } catch {
      #expect(error.code == .failedPrecondition)
      #expect(error.path == "c/d" && error.field == "price")
      #expect(error.underlyingError is DecodingError)
      #expect("\(error)".contains("c/d") && "\(error)".contains("price"))
    }
    let own = await #expect(throws: DatabaseError.self) {
      try await document.getDocument(as: Own.self)
    }
    #expect(own?.path == "c/d" && own?.underlyingError is CocoaError)
  }
}

extension Result {
  fileprivate var failureText: String? {
    guard case .failure(let error) = self, let error = error as? DatabaseError,
      error.underlyingError is DecodingError
    else { return nil }
    return error.message
  }
}
