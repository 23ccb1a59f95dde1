// Codable values that are encoded straight to rows, compared with the fields from the document
// encoder: over random values that use Codable in every way, a row has the bytes of its fields, and
// values that are refused as fields become no row.

import Foundation
import OndolTestKit
import Testing

@testable import Ondol

private struct AnyKey: CodingKey {
  let stringValue: String
  var intValue: Int? { nil }
  init(_ name: String) { stringValue = name }
  init?(stringValue: String) { self.init(stringValue) }
  init?(intValue: Int) { nil }
}

private enum Colour: String, Codable, CaseIterable { case red, blue }

/// A value that encodes itself in one of the possible ways.
private indirect enum Part: Encodable {
  case whole(Int), fraction(Double), text(String), flag(Bool), none
  case date(Date), data(Data), id(UUID), link(URL), small(Int8), colour(Colour)
  case value(Value), texts([String]), moment(ServerTimestamp<Date>), decimal(Decimal)
  case optional(Int?), dictionary([String: Part]), numbered([Int: String]), keyed([UUID: Int])
  case map([(name: String, part: Part, way: Int)], way: Int)
  case list([(part: Part, way: Int)])
  /// Writes nothing at all.
  case nothing
  /// Writes its coding path.
  case place

  func encode(to encoder: any Encoder) throws {
    switch self {
    case .map(let members, let way):
      var container = encoder.container(keyedBy: AnyKey.self)
      var later: [() throws -> Void] = []
      for (index, (name, part, partWay)) in members.enumerated() {
        // As a class and its superclass do, which encode themselves one after another.
        if way == 1, index == 1 { container = encoder.container(keyedBy: AnyKey.self) }
        try part.encode(into: &container, AnyKey(name), partWay, &later)
      }
      for step in later.reversed() { try step() }
    case .list(let elements):
      var container = encoder.unkeyedContainer()
      for (part, way) in elements {
        switch (part, way) {
        case (.list, 0): try part.encode(to: container.superEncoder())
        case (.none, _): try container.encodeNil()
        case (.text(let text), 0): try container.encode(text)
        default: try container.encode(part)
        }
      }
    case .nothing: break
    default:
      var container = encoder.singleValueContainer()
      switch self {
      case .whole(let value): try container.encode(value)
      case .fraction(let value): try container.encode(value)
      case .text(let value): try container.encode(value)
      case .flag(let value): try container.encode(value)
      case .date(let value): try container.encode(value)
      case .data(let value): try container.encode(value)
      case .id(let value): try container.encode(value)
      case .link(let value): try container.encode(value)
      case .small(let value): try container.encode(value)
      case .colour(let value): try container.encode(value)
      case .value(let value): try container.encode(value)
      case .texts(let value): try container.encode(value)
      case .moment(let value): try container.encode(value)
      case .decimal(let value): try container.encode(value)
      case .optional(let value): try container.encode(value)
      case .dictionary(let value): try container.encode(value)
      case .numbered(let value): try container.encode(value)
      case .keyed(let value): try container.encode(value)
      case .place: try container.encode(dotted(encoder.codingPath))
      case .none, .nothing, .map, .list: try container.encodeNil()
      }
    }
  }

  private func encode(
    into container: inout KeyedEncodingContainer<AnyKey>, _ key: AnyKey, _ way: Int,
    _ later: inout [() throws -> Void]
  ) throws {
    switch (self, way) {
    case (.none, _): try container.encodeNil(forKey: key)
    case (.whole(let value), 0): try container.encode(value, forKey: key)
    case (.fraction(let value), 0): try container.encode(value, forKey: key)
    case (.text(let value), 0): try container.encode(value, forKey: key)
    case (.flag(let value), 0): try container.encode(value, forKey: key)
    case (.date(let value), 0): try container.encode(value, forKey: key)
    case (.optional(let value), 0): try container.encodeIfPresent(value, forKey: key)
    case (.map(let members, _), 0):
      var nested = container.nestedContainer(keyedBy: AnyKey.self, forKey: key)
      later.append {
        var further: [() throws -> Void] = []
        for (name, part, way) in members {
          try part.encode(into: &nested, AnyKey(name), way, &further)
        }
        for step in further { try step() }
      }
    case (.list, 0):
      let nested = container.superEncoder(forKey: key)
      later.append { [self] in try encode(to: nested) }
    default: try container.encode(self, forKey: key)
    }
  }
}

private struct Parts {
  var samples: ValueSamples

  init(seed: UInt64) { samples = ValueSamples(seed: seed) }

  static let names = ["a", "b", "c", "firstName", "first_name", "한", "e\u{301}", "\u{e9}", "z9"]

  mutating func name() -> String {
    if samples.random.oneIn(60) { return samples.text() }
    // The two spellings of one name are rare, because each pair refuses the document.
    return Self.names[samples.random.below(samples.random.oneIn(30) ? 9 : 6)]
  }

  mutating func document() -> Part { map(depth: 3) }

  private mutating func map(depth: Int) -> Part {
    let count = samples.random.oneIn(12) ? 40 : samples.random.below(6)
    var members: [(name: String, part: Part, way: Int)] = []
    for index in 0..<count {
      let name = count == 40 ? "n\(index)" : name()
      // A repeated name is rare as well.
      if members.contains(where: { $0.name == name }), !samples.random.oneIn(20) { continue }
      members.append((name, part(depth: depth - 1), samples.random.below(2)))
    }
    return .map(members, way: samples.random.below(2))
  }

  private mutating func part(depth: Int) -> Part {
    let isRare = samples.random.oneIn(120)
    switch samples.random.below(depth > 0 ? 21 : 14) {
    case 0: return .whole(Int.random(in: -3_000...3_000, using: &samples.random))
    case 1: return .fraction(samples.number().double ?? 0.1)
    case 2: return .text(samples.text())
    case 3: return .flag(samples.random.oneIn(2))
    case 4: return isRare ? .nothing : .none
    case 5:
      let seconds = Double(samples.random.below(1 << 30)) + 0.25
      return .date(isRare ? .distantPast : Date(timeIntervalSince1970: seconds))
    case 6: return .data(Data(samples.bytes()))
    case 7: return .id(UUID())
    case 8: return isRare ? .decimal(1) : .small(Int8(samples.random.below(100)))
    case 9: return isRare ? .place : .colour(samples.random.oneIn(2) ? .red : .blue)
    case 10: return .value(isRare ? samples.value(depth: 2) : samples.number())
    case 11: return .texts((0..<samples.random.below(4)).map { _ in samples.text() })
    case 12: return isRare ? .moment(ServerTimestamp(wrappedValue: nil)) : .optional(nil)
    case 13: return .moment(ServerTimestamp(wrappedValue: Date(timeIntervalSince1970: 5)))
    case 14: return .dictionary(["a": part(depth: depth - 1), "b": .whole(1)])
    case 15: return isRare ? .keyed([UUID(): 1]) : .numbered([:])
    case 16, 17:
      return .list(
        (0..<samples.random.below(5)).map { _ in
          (part(depth: depth - 1), samples.random.below(2))
        })
    default: return map(depth: depth)
    }
  }
}

private struct Person: Codable, Sendable, Equatable {
  struct Home: Codable, Sendable, Equatable {
    var city: String
    var floor: Int?
  }

  var name: String
  var age: Int
  var weight: Double
  var born: Date
  var tags: [String]
  var home: Home
  var note: String?
  @ExplicitNull var left: Date?
}

@Suite struct `Codable values straight to rows` {
  private static func table(_ samples: inout ValueSamples) throws -> SymbolTable {
    var names = ["c", "b", "x", "a", "한", "firstName", "first_name"] + (0..<40).map { "n\($0)" }
    if samples.random.oneIn(8) { names.append("e\u{301}") }
    if samples.random.oneIn(8) { names.append("\u{e9}") }
    if samples.random.oneIn(8) { names.insert(contentsOf: (0..<300).map { "y\($0)" }, at: 2) }
    return try SymbolTable(names: names)
  }

  @Test(arguments: Seeds.first(4))
  func `A row has the bytes of the fields, and values that fields refuse become no row`(
    seed: UInt64
  ) throws {
    var parts = Parts(seed: seed)
    var (straight, refused) = (0, 0)
    for number in 0..<4_000 {
      var symbols = try Self.table(&parts.samples)
      symbols.forms = parts.samples.random.oneIn(3) ? [] : .all
      let document = parts.document()
      let strategies = DocumentEncoder(
        keyStrategy: parts.samples.random.oneIn(3) ? .snakeCase : .unchanged,
        dateStrategy: [.timestamp, .secondsSince1970, .iso8601][parts.samples.random.below(3)])
      let row = RowEncoder(symbols, RefusedTypes()).row(of: document, strategies)
      guard let row else {
        refused += 1
        continue
      }
      straight += 1
      let place = "seed \(seed), \(number): \(document)"
      let intent = try WriteCompiler.set(strategies.input(of: document))
      guard case .replace(let fields) = intent.change, intent.transforms.isEmpty else {
        Issue.record("\(place) is more than fields")
        continue
      }
      var encoder = ValueEncoder(symbols)
      try encoder.encode(fields, createTime: nil)
      #expect(row.row.bytes == encoder.bytes, "\(place)")
      #expect(encoder.symbols.names.count == symbols.names.count, "\(place)")
      #expect(encoder.symbols.forms == symbols.forms, "\(place)")
      #expect(encoder.contents.isEmpty && encoder.stamps.count == 3, "\(place)")
      #expect(row.row.fields.isIdentical(to: fields), "\(place)")
      #expect(row.row.isIdentical(to: fields), "\(place)")
    }
    #expect(straight > 1_000 && refused > 200, "seed \(seed): \(straight), \(refused)")
  }

  @Test(arguments: Seeds.first(3))
  func `Fields that come as they are have the same rows`(seed: UInt64) throws {
    var parts = Parts(seed: seed)
    let symbols = try Self.table(&parts.samples)
    var straight = 0
    for _ in 0..<500 {
      guard let fields = try? DocumentEncoder().encode(parts.document()),
        let row = RowEncoder(symbols, RefusedTypes()).row(of: fields)
      else { continue }
      straight += 1
      guard case .replace = try WriteCompiler.set(FieldInput(.map(fields))).change else { continue }
      var encoder = ValueEncoder(symbols)
      try encoder.encode(fields, createTime: nil)
      #expect(row.row.bytes == encoder.bytes, "seed \(seed): \(fields)")
    }
    #expect(straight > 100, "seed \(seed): \(straight)")
  }

  @Test func `A hundred maps in each other are a row, and more are refused with a reason`() throws {
    var symbols = try SymbolTable(names: ["a"])
    for depth in 1...104 {
      var part = Part.whole(1)
      for _ in 0..<depth { part = .map([("a", part, 1)], way: 0) }
      let document = part
      symbols.forms = []
      let early = RowEncoder(symbols, RefusedTypes()).row(of: document, DocumentEncoder())
      #expect((early == nil) == (depth > 21), "\(depth)")
      symbols.forms = .all
      let row = RowEncoder(symbols, RefusedTypes()).row(of: document, DocumentEncoder())
      let intent = try? WriteCompiler.set(DocumentEncoder().input(of: document))
      #expect((row == nil) == (intent == nil), "\(depth)")
      #expect((row == nil) == (depth > 101), "\(depth)")
    }
  }

  @Test func `An encoder kept beyond its document writes into no other`() throws {
    final class Kept { var encoder: (any Encoder)? }
    struct Keeping: Encodable {
      let kept: Kept
      func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: AnyKey.self)
        if let other = kept.encoder {
          var others = other.container(keyedBy: AnyKey.self)
          try others.encode(2, forKey: AnyKey("b"))
        }
        try container.encode(1, forKey: AnyKey("a"))
        kept.encoder = encoder
      }
    }
    let rows = RowEncoder(try SymbolTable(names: ["a", "b"]), RefusedTypes())
    let kept = Kept()
    for _ in 0..<2 {
      #expect(rows.row(of: Keeping(kept: kept), DocumentEncoder())?.row.fields == ["a": 1])
    }
  }

  @Test(arguments: Seeds.first(3))
  func `Batches of them keep indexes, versions and existing fields`(seed: UInt64) async throws {
    var random = SeededNumbers(seed: seed)
    let database = try await Database.underTest()
    let people = database.collection("families/x/people")
    for fields in [["name"], ["-age", "name"], ["home.city", "-born"], ["tags[]"], ["left"]] {
      try await people.createIndex(on: fields)
    }
    try await people.createIndex(on: ["note"], unique: true)
    try await people.createIndex(on: ["age"], where: .whereField("age", isGreaterThan: 50))
    var model: [String: Person] = [:]
    for round in 0..<12 {
      let batch = database.batch()
      for _ in 0..<(1 + random.below(60)) {
        let id = "p\(random.below(80))"
        switch random.below(12) {
        case 0:
          batch.deleteDocument(people.document(id))
          model[id] = nil
          continue
        case 1 where model[id] != nil:
          try batch.updateData(["age": 7], forDocument: people.document(id))
          model[id]?.age = 7
          continue
        default: break
        }
        let text = String(repeating: "온", count: random.oneIn(30) ? 500 : random.below(20))
        let person = Person(
          name: "name \(random.below(9))\(text)", age: random.below(2_000) - 100,
          weight: Double(random.below(100)) / 4,
          born: Date(timeIntervalSince1970: Double(random.below(1 << 30))),
          tags: (0..<random.below(4)).map { "t\($0 % 2)" },
          home: .init(city: "c\(random.below(5))", floor: random.oneIn(2) ? nil : 3),
          note: random.oneIn(3) ? "note of \(id)" : nil,
          left: random.oneIn(2) ? nil : Date(timeIntervalSince1970: 9))
        if model[id] == nil, random.oneIn(2) {
          try batch.create(from: person, forDocument: people.document(id))
        } else {
          try batch.setData(from: person, forDocument: people.document(id))
        }
        model[id] = person
      }
      try await batch.commit()
      var stored: [String: Person] = [:]
      for document in try await people.getDocuments().documents {
        stored[document.documentID] = try document.data(as: Person.self)
      }
      #expect(stored == model, "seed \(seed), round \(round)")
      try await auditIndexes(of: people, seed: seed)
      // An identical write makes no version.
      let again = database.batch()
      for (id, person) in model {
        try again.setData(from: person, forDocument: people.document(id))
      }
      let before = try await people.getDocuments().documents.map(\.version)
      try await again.commit()
      #expect(try await people.getDocuments().documents.map(\.version) == before)
    }
    #expect(try await database.verify().isEmpty, "seed \(seed)")
    try await database.close()
  }

  @Test func `A recreated collection has other numbers for its names`() async throws {
    struct One: Codable { var a: Int; var b: String }
    struct Other: Codable { var b: String; var z: Int; var a: Int }
    let database = try await Database.underTest()
    let things = database.collection("things")
    try await things.document("0").setData(from: One(a: 1, b: "b"))
    let batch = database.batch()
    try batch.setData(from: One(a: 2, b: "c"), forDocument: things.document("1"))
    try await things.drop()
    try await things.document("0").setData(["z": 1])
    try await things.document("0").setData(from: Other(b: "d", z: 3, a: 4))
    try await batch.commit()
    #expect(try await things.document("1").getDocument().data() == ["a": 2, "b": "c"])
    #expect(try await things.document("0").getDocument().data() == ["a": 4, "b": "d", "z": 3])
    try await database.close()
  }
}
