// The coders' features for types that know more than their properties: all other fields, unchanged
// values, and the caller's information.

import Foundation
import Testing

@testable import Ondol

private struct Loose: Codable, Sendable, Equatable {
  var firstName: String
  var note: String?
  @OtherFields var others: [String: Value] = [:]
}

private struct Told: Codable, Sendable {
  static let key = CodingUserInfoKey(rawValue: "told")
  var text: String
  var inner: Inner

  struct Inner: Codable, Sendable {
    var text: String

    init(text: String) { self.text = text }

    init(from decoder: any Decoder) throws {
      let told = Told.key.flatMap { decoder.userInfo[$0] as? String } ?? "nothing"
      text = try decoder.singleValueContainer().decode(String.self) + ", read with " + told
    }

    func encode(to encoder: any Encoder) throws {
      let told = Told.key.flatMap { encoder.userInfo[$0] as? String } ?? "nothing"
      var container = encoder.singleValueContainer()
      try container.encode(text + ", written with " + told)
    }
  }
}

@Suite struct `Coders and what is beside properties` {
  @Test func `Fields without a property come back as they were`() async throws {
    let database = try await Database.underTest()
    let people = database.collection("people")
    let stored: [String: Value] = [
      "firstName": "Ada", "age": 36, "size": ["height": 1.7], "tags": ["a", nil],
    ]
    try await people.document("a").setData(stored)
    var person = try await people.document("a").getDocument().data(as: Loose.self)
    #expect(person.firstName == "Ada" && person.note == nil)
    #expect(person.others == ["age": 36, "size": ["height": 1.7], "tags": ["a", nil]])
    person.firstName = "Grace"
    person.others["age"] = nil
    // A property's field belongs to the property.
    person.others["firstName"] = "lost"
    try await people.document("a").setData(from: person)
    #expect(
      try await people.document("a").getDocument().data()
        == ["firstName": "Grace", "size": ["height": 1.7], "tags": ["a", nil]])
    let typed = try database.collection("people", of: Loose.self)
    #expect(try await typed.where(\.firstName == "Grace").getFirst()?.others.count == 2)
    try await people.document("b").setData(["firstName": "B", "others": 1])
    let error = await #expect(throws: DatabaseError.self) {
      try await people.document("b").getDocument().data(as: Loose.self)
    }
    #expect(error?.field == "others")
    try await database.close()
  }

  @Test func `Other names and other coders also keep them`() throws {
    let encoder = DocumentEncoder(keyStrategy: .snakeCase)
    let person = Loose(firstName: "Ada", note: "n", others: ["last_seen": 5, "x": true])
    let fields = try encoder.encode(person)
    #expect(fields == ["first_name": "Ada", "note": "n", "last_seen": 5, "x": true])
    #expect(try DocumentDecoder(keyStrategy: .snakeCase).decode(Loose.self, from: fields) == person)
    let json = try JSONEncoder().encode(person)
    #expect(try JSONDecoder().decode(Loose.self, from: json) == person)
    let without = Data(#"{"firstName":"Ada"}"#.utf8)
    #expect(try JSONDecoder().decode(Loose.self, from: without).others == [:])
  }

  @Test func `A value is written in the coder's form`() throws {
    struct Box: Codable { var value: Value }
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    let value: Value = [
      "none": nil, "yes": true, "whole": 7, "half": 0.5, "text": "온돌", "list": [1, "a", [:]],
      "bytes": .bytes([1, 2]), "place": .reference(try DocumentPath("a/b")),
    ]
    let json = String(decoding: try encoder.encode(Box(value: value)), as: UTF8.self)
    #expect(
      json == #"{"value":{"bytes":"AQI=","half":0.5,"list":[1,"a",{}],"none":null,"#
        + #""place":"a\/b","text":"온돌","whole":7,"yes":true}}"#)
    var expected = value
    if case .map(var fields) = expected {
      (fields["bytes"], fields["place"]) = ("AQI=", "a/b")
      expected = .map(fields)
    }
    #expect(try JSONDecoder().decode(Box.self, from: Data(json.utf8)).value == expected)
    let fields = try DocumentEncoder().encode(Box(value: value))
    #expect(fields == ["value": value])
    #expect(try DocumentDecoder().decode(Box.self, from: fields).value == value)
  }

  @Test func `Types receive the caller's information`() throws {
    let key = try #require(Told.key)
    var encoder = DocumentEncoder()
    encoder.userInfo[key] = "a pen"
    var decoder = DocumentDecoder()
    decoder.userInfo[key] = "glasses"
    let fields = try encoder.encode(Told(text: "t", inner: .init(text: "i")))
    #expect(fields["inner"] == "i, written with a pen")
    #expect(
      try decoder.decode(Told.self, from: fields).inner.text
        == "i, written with a pen, read with glasses")
    #expect(
      try DocumentDecoder().decode(Told.self, from: fields).inner.text.hasSuffix("with nothing"))
  }

  /// Findings about a type are kept for all; the coders of the first caller once were as well.
  @Test func `A typed collection uses its own coders, whichever came first`() async throws {
    let database = try await Database.underTest()
    let key = try #require(Told.key)
    _ = try database.collection("told", of: Told.self)
    var encoder = DocumentEncoder()
    encoder.userInfo[key] = "a pen"
    var decoder = DocumentDecoder()
    decoder.userInfo[key] = "glasses"
    let told = try database.collection("told", of: Told.self, encoder: encoder, decoder: decoder)
    try await told.document("a").setData(Told(text: "t", inner: .init(text: "i")))
    let text = try await told.document("a").getDocument()?.inner.text
    #expect(text == "i, written with a pen, read with glasses")
    try await database.close()
  }
}
