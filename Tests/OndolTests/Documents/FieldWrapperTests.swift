// Property wrappers and strategies: what a Codable type says about its document in addition to its
// fields.

import Foundation
import Testing

@testable import Ondol

private struct User: Codable, Equatable {
  @DocumentID var id: String?
  var name: String
  @ServerTimestamp var seen: Date?
  @ExplicitNull var city: String?
  var street: String?
}

private struct Link: Codable {
  @DocumentID var place: DocumentReference?
  @ServerTimestamp var at: Timestamp?
}

@Suite struct FieldWrapperTests {
  @Test func `An id comes from the document and is not stored`() async throws {
    let database = try await Database.underTest()
    let users = database.collection("users")
    try await users.document("u1").setData(from: User(id: "other", name: "Kim"))
    let snapshot = try await users.document("u1").getDocument()
    #expect(snapshot.data().keys.sorted() == ["city", "name", "seen"])
    #expect(try snapshot.data(as: User.self).id == "u1")
    try await users.document("u2").setData(from: Link())
    let link = try await users.document("u2").getDocument(as: Link.self)
    #expect(link.place == users.document("u2"))
    #expect(link.at == (try await users.document("u2").getDocument().updateTime))
  }

  @Test func `A field with the name of the id is refused`() async throws {
    let database = try await Database.underTest()
    let document = database.document("users/u1")
    try await document.setData(["id": "x", "name": "Kim"])
    let error = await #expect(throws: DatabaseError.self) {
      try await document.getDocument(as: User.self)
    }
    #expect("\(try #require(error))".contains("id"))
  }

  @Test func `A missing moment becomes the commit's, a given one stays`() async throws {
    let database = try await Database.underTest()
    let document = database.document("users/u1")
    let result = try await document.setData(from: User(name: "Kim"), returning: .after)
    #expect(try result.after?.data(as: User.self).seen == result.commitTime.dateValue())
    let given = Date(timeIntervalSince1970: 1_000)
    try await document.setData(from: User(name: "Kim", seen: given))
    #expect(try await document.getDocument(as: User.self).seen == given)
  }

  @Test func `An explicit null is stored, a nil is left out, and both read as nil`() async throws {
    let database = try await Database.underTest()
    let document = database.document("users/u1")
    try await document.setData(from: User(name: "Kim"))
    let data = try await document.getDocument().data()
    #expect(data["city"]?.isNull == true)
    #expect(data["street"] == nil)
    try await document.setData(["name": "Lee"])
    let user = try await document.getDocument(as: User.self)
    #expect(user.city == nil && user.street == nil && user.seen == nil)
  }

  @Test func `The wrappers go through JSON and back`() throws {
    let user = User(
      id: "u1", name: "Kim", seen: Date(timeIntervalSince1970: 5), city: nil, street: "Main")
    let json = try JSONEncoder().encode(user)
    #expect(try JSONDecoder().decode(User.self, from: json) == user)
    #expect(String(decoding: json, as: UTF8.self).contains("\"city\":null"))
    let bare = try JSONDecoder().decode(User.self, from: Data(#"{"name":"Kim"}"#.utf8))
    #expect(bare == User(name: "Kim"))
  }

  private struct Photo: Codable, Equatable {
    var imageURL = "a"
    var userIDList = ["x"]
    var takenAt = Date(timeIntervalSince1970: 1_700_000_000)
    var innerPart = Inner()
    var byName = ["someKey": Inner()]

    struct Inner: Codable, Equatable { var firstName = "k" }
  }

  @Test(arguments: [
    DateStrategy.timestamp, .secondsSince1970, .millisecondsSince1970, .iso8601,
  ])
  func `Strategies undo each other`(dates: DateStrategy) async throws {
    let encoder = DocumentEncoder(keyStrategy: .snakeCase, dateStrategy: dates)
    let decoder = DocumentDecoder(keyStrategy: .snakeCase, dateStrategy: dates)
    let document = try await Database.underTest().document("c/d")
    try await document.setData(from: Photo(), encoder: encoder)
    let snapshot = try await document.getDocument()
    #expect(
      snapshot.data().keys.sorted()
        == ["by_name", "image_url", "inner_part", "taken_at", "user_id_list"])
    #expect(snapshot["inner_part.first_name"] as String? == "k")
    #expect(snapshot["by_name.someKey"] as Value? != nil)
    #expect(try snapshot.data(as: Photo.self, decoder: decoder) == Photo())
  }

  @Test func `Fields added later have defaults`() throws {
    struct Settings: Codable, Equatable {
      var theme: String
      var size: Int
    }
    let decoder = DocumentDecoder(
      defaults: try DocumentEncoder().encode(Settings(theme: "light", size: 12)))
    #expect(
      try decoder.decode(Settings.self, from: ["theme": "dark"])
        == Settings(theme: "dark", size: 12))
  }

  @Test func `One document that does not fit hides no other`() async throws {
    struct Item: Codable {
      struct Size: Codable { var width: Int }
      var name: String
      var size: Size?
    }
    let items = try await Database.underTest().collection("items")
    try await items.document("a").setData(["name": "Lamp"])
    try await items.document("b").setData(["name": 7])
    try await items.document("c").setData(["name": "Desk", "size": ["width": "wide"]])
    try await items.document("d").setData(["title": "Chair"])
    try await items.document("e").setData(["name": "Bed", "size": ["width": 200]])
    let decoded = try await items.getDocuments().decode(as: Item.self)
    #expect(decoded.values.map(\.name) == ["Lamp", "Bed"])
    #expect(decoded.results.count == 5)
    #expect(decoded.failures.map(\.path) == ["items/b", "items/c", "items/d"])
    #expect(decoded.failures.map(\.field) == ["name", "size.width", "name"])
    #expect(decoded.failures[1].message.contains("wide"))
    await #expect(throws: DatabaseError.self) {
      try await items.getDocuments().data(as: Item.self)
    }
  }
}
