// Types with a property whose values cannot be made up: stored and read, and queried by everything
// else.

import OndolTestKit
import Testing

@testable import Ondol

private enum Shape: Codable, Sendable, Equatable {
  case circle(radius: Double)
  case square(side: Double)
}

/// Accepts only texts with an @.
private struct Address: Codable, Sendable, Equatable {
  var text: String

  init(text: String) { self.text = text }

  init(from decoder: any Decoder) throws {
    text = try decoder.singleValueContainer().decode(String.self)
    guard text.contains("@") else { throw DatabaseError(.invalidArgument, "\(text) has no @") }
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }
}

private struct Drawing: Codable, Sendable, Equatable {
  struct Size: Codable, Equatable {
    var width: Double
  }
  enum CodingKeys: String, CodingKey {
    case id, drawnName, size, shape, count, mail
    case price = "cost"
  }

  @DocumentID var id: String?
  var drawnName: String
  var size: Size
  var shape: Shape
  var count: Int
  var mail: Address?
  var price: Int

  var loudName: String { drawnName.uppercased() }
}

@Suite struct `Types of which no values are known` {
  private let drawings = [
    Drawing(
      id: "a", drawnName: "Sun", size: .init(width: 2), shape: .circle(radius: 1), count: 3,
      mail: nil, price: 5),
    Drawing(
      id: "b", drawnName: "Box", size: .init(width: 4), shape: .square(side: 2), count: 1,
      mail: Address(text: "a@b.kr"), price: 7),
  ]

  private func filled(
    _ encoder: DocumentEncoder = DocumentEncoder()
  ) async throws -> TypedCollection<Drawing> {
    let items = try await Database.underTest()
      .collection("drawings", of: Drawing.self, encoder: encoder)
    for drawing in drawings { try await items.document(drawing.id ?? "").setData(drawing) }
    return items
  }

  @Test(arguments: [KeyStrategy.unchanged, .snakeCase])
  func `They are stored, read and asked about by the names of other properties`(
    strategy: KeyStrategy
  ) async throws {
    let items = try await filled(DocumentEncoder(keyStrategy: strategy))
    #expect(try await items.getDocuments() == drawings)
    #expect(try await items.document("b").getDocument() == drawings[1])
    #expect(try await items.where(\.drawnName == "Sun").getDocuments() == [drawings[0]])
    #expect(
      try await items.where { $0.size.width > 2 && $0.count < 3 }.getDocuments() == [drawings[1]])
    #expect(try await items.order(by: \.count).getDocuments() == drawings.reversed())
    try await items.document("a").update(.set(\.count, to: 0))
    #expect(try await items.order(by: \.count).getDocuments().map(\.drawnName) == ["Sun", "Box"])
    let names = try items.fields.path(of: ModelProperty(\.drawnName)).names()
    #expect(names == [strategy == .unchanged ? "drawnName" : "drawn_name"])
    let name = try await items.createIndex(on: .ascending(\.drawnName, comparing: .folded))
    #expect(name == "\(names[0])~folded")
    let found = items.where { $0.drawnName.comparing(.folded) == "SUN" }
    #expect(try await found.getDocuments().map(\.id) == ["a"])
    #expect(try await found.explain().indexName == name)
    // A field that no property reveals needs its name.
    let squares = items.collection.whereField("shape.square.side", isEqualTo: 2)
    #expect(try await squares.getDocuments().documents.map(\.documentID) == ["b"])
    try await items.collection.database.close()
  }

  @Test func `Uncertain properties are refused, and the error says what to do`() async throws {
    let items = try await filled()
    let shaped = await #expect(throws: DatabaseError.self) {
      try await items.where(\.shape == .circle(radius: 1)).getDocuments()
    }
    #expect(shaped?.code == .failedPrecondition)
    #expect(shaped?.field == "shape")
    #expect(shaped?.message.contains("FieldExamples") == true)
    #expect(shaped?.message.contains("whereField(\"shape\"") == true)
    // Another name than the property's, a wrapper, a computed value, and something outside the
    // shape.
    for filter in [\Drawing.price == 5, \.id == "a", \.loudName == "SUN"] {
      let error = await #expect(throws: DatabaseError.self) {
        try await items.where(filter).getDocuments()
      }
      #expect(error?.code == .failedPrecondition)
      #expect(error?.message.contains("its name does not tell") == true)
    }
    try await items.collection.database.close()
  }
}
