// Documents so large that they stay encoded when a few of their fields are written. After any write
// they must equal the result of decoding, writing and encoding everything, to the byte. Their
// indexes, links and listeners must not distinguish the two ways.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

private typealias SeededRandom = OndolTestKit.SeededRandom

/// Draws documents, and writes of a few of their fields.
private struct LargeDraw {
  var random: SeededRandom

  static let names = ["a", "b", "c", "deep", "é", "한글", "list", "m", "zz"]

  mutating func scalar() -> Value {
    switch random.below(12) {
    case 9: random.decimal()
    case 10: random.grid()
    case 0: .null
    case 1: .boolean(random.chance(1, in: 2))
    case 2: .integer(Int64(random.below(3_000)) - 1_500)
    case 3: .double(Double(random.below(100)) / 3)
    case 4: .bytes(random.bytes(random.below(20)))
    case 5: .timestamp(Timestamp(unchecked: Int64(random.below(1_000))))
    case 6: .array([.integer(1), .string("x")])
    case 7: .string(String(repeating: "long ", count: random.below(3_000)))
    default: .string("text \(random.below(10))")
    }
  }

  mutating func map(depth: Int) -> [String: Value] {
    var fields: [String: Value] = [:]
    for _ in 0..<random.below(7) {
      let name = random.pick(Self.names)
      fields[name] =
        depth > 0 && random.chance(1, in: 2) ? .map(map(depth: depth - 1)) : scalar()
    }
    return fields
  }

  /// A document that is large because of one long text, many fields, or a large map.
  mutating func document() -> [String: Value] {
    var fields = map(depth: 2)
    switch random.below(3) {
    case 0: fields["text"] = .string(String(repeating: "0123456789", count: 7_000))
    case 1:
      for number in 0..<4_000 { fields["n\(number)"] = .string("value \(number)") }
    default:
      let many = (0..<(3_000 + random.below(9_000))).map { ("k\($0)", Value.string("v\($0)")) }
      fields["many"] = .map(Dictionary(uniqueKeysWithValues: many))
    }
    return fields
  }

  private mutating func place() -> FieldNames {
    let depth = 1 + random.below(3)
    return (0..<depth).map { step in
      switch random.below(step == 0 ? 8 : 4) {
      case 0: "k\(random.below(13_000))"
      case 1: "n\(random.below(4_100))"
      case 6, 7: "many"
      default: random.pick(Self.names)
      }
    }
  }

  /// A write of a few fields, none of which is inside another.
  mutating func intent() -> WriteIntent {
    var places: [FieldNames] = []
    for _ in 0..<(1 + random.below(4)) {
      let place = place()
      let isApart = !places.contains { $0.starts(with: place) || place.starts(with: $0) }
      if isApart { places.append(place) }
    }
    var patch: [String: Value] = [:]
    var transforms: [FieldTransform] = []
    var mask: [FieldNames] = []
    for place in places {
      switch random.below(4) {
      case 0: mask.append(place)
      case 1:
        let operation: FieldValue.Operation =
          switch random.below(5) {
          case 0: .increment(.integer(1))
          case 1: .arrayUnion([.integer(7)])
          case 3: .increment(random.decimal())
          case 4: .arrayUnion([random.grid()])
          default: .serverTimestamp
          }
        transforms.append(FieldTransform(path: place, operation: operation))
      default:
        mask.append(place)
        let value = random.chance(1, in: 4) ? .map(map(depth: 1)) : scalar()
        try? assign(value, at: place[...], in: &patch)
        guard random.chance(1, in: 5) else { continue }
        let operation = FieldValue.Operation.increment(.integer(2))
        transforms.append(FieldTransform(path: place + ["x"], operation: operation))
      }
    }
    return WriteIntent(change: .patch(fields: patch, mask: mask), transforms: transforms)
  }
}

@Suite struct LargeDocumentTests {
  /// The last encoded bytes, with the commit's time.
  private func filled(_ encoder: ValueEncoder) -> [UInt8] {
    var bytes = encoder.bytes
    for stamp in encoder.stamps { bytes.overwriteLittleEndian(Int64(77), at: stamp.offset) }
    return bytes
  }

  /// The row of the fields in its stored form.
  private func row(
    _ fields: [String: Value], _ encoder: inout ValueEncoder
  ) throws -> StoredRow {
    try encoder.encode(fields, createTime: Timestamp(unchecked: 5))
    return StoredRow(filled(encoder), encoder.symbols)
  }

  @Test(arguments: Seeds.first(12))
  func `Edited bytes equal those of all fields encoded again`(seed: UInt64) throws {
    var draw = LargeDraw(random: SeededRandom(seed: seed))
    // With little room for names, maps have their own.
    let table = SymbolTable(limit: [60_000, 60_000, 40, 0][Int(seed % 4)])
    var spliced = ValueEncoder(table)
    var whole = ValueEncoder(table)
    var fields = draw.document()
    var (count, edited) = (0, 0)
    for _ in 0..<12 {
      let stored = try row(fields, &spliced)
      _ = try row(fields, &whole)
      var written = WrittenFields.row(stored, FieldEdits())
      for _ in 0..<(1 + draw.random.below(3)) {
        let intent = draw.intent()
        let outcomes = (
          Result { try intent.apply(to: .some(written)) }, Result { try intent.apply(to: fields) }
        )
        guard case (.success(let new?), .success(let expected?)) = outcomes else {
          // Two spellings of a name: both refuse them.
          guard case (.failure, .failure) = outcomes else {
            Issue.record("SEED=\(seed): \(outcomes)")
            return
          }
          continue
        }
        (written, fields) = (new, expected)
      }
      #expect(written.all.isIdentical(to: fields), "SEED=\(seed)")
      let isChanged = !WrittenFields.row(stored, FieldEdits()).isIdentical(to: written)
      let before = try #require(FieldSource(documentIn: stored).value.map)
      #expect(isChanged == !before.isIdentical(to: fields), "SEED=\(seed)")
      if case .row = written { edited += 1 }
      let isSpliced = try spliced.encode(written, createTime: Timestamp(unchecked: 5))
      try whole.encode(fields, createTime: Timestamp(unchecked: 5))
      if isSpliced { count += 1 }
      if seed % 4 < 2 {
        #expect(spliced.bytes == whole.bytes && spliced.symbols.names == whole.symbols.names)
        #expect(spliced.stamps.map(\.offset) == whole.stamps.map(\.offset), "SEED=\(seed)")
      }
      // The stored document has the commit's time.
      fields = fields.mapValues { $0.resolvingPending(with: Timestamp(unchecked: 77)) }
      let bytes = filled(spliced)
      let view = try DocumentView(bytes.bytes)
      try view.check(spliced.symbols)
      let decoded = try view.fields(spliced.symbols)
      #expect(decoded.isIdentical(to: fields), "SEED=\(seed)")
      // Both continue with one table.
      whole = ValueEncoder(spliced.symbols)
    }
    #expect(edited > 0 && (count > 3 || seed % 4 > 1), "SEED=\(seed): \(edited), \(count)")
  }

  @Test(arguments: Seeds.first(6))
  func `Writes of few fields leave documents, indexes and listeners as they should be`(
    seed: UInt64
  ) async throws {
    var draw = LargeDraw(random: SeededRandom(seed: seed))
    let database = try await Database.underTest()
    let items = database.collection("items")
    let document = items.document("d")
    try await document.setData(["a": 1])
    try await items.createIndex(on: ["a"])
    try await items.createIndex(on: ["m", "b"])
    try await items.createIndex(on: ["c"], where: Filter.whereField("deep.a", isGreaterThan: 0))
    try await items.createIndex(onArray: "list")
    try await items.createIndex(on: ["zz"], unique: true)
    var model = draw.document()
    try await document.setData(model)
    var updates = document.snapshots.makeAsyncIterator()
    _ = try await updates.next()
    for _ in 0..<12 {
      let intents = (0..<(1 + draw.random.below(2))).map { _ in draw.intent() }
      var expected = model
      do {
        for intent in intents { expected = try #require(try intent.apply(to: expected)) }
      } catch {
        continue
      }
      let path = try document.place.get()
      let writes = intents.map { DocumentWrite(path: path, intent: $0) }
      // A server timestamp cannot be unique.
      guard let commit = try? await database.commit(writes, durability: .memory) else { continue }
      let result = commit.result(of: path, in: database, returning: [.before, .after])
      expected = expected.mapValues { $0.resolvingPending(with: result.commitTime) }
      let read = try await document.getDocument()
      #expect(read.data().isIdentical(to: expected), "SEED=\(seed)")
      #expect(result.after?.data().isIdentical(to: expected) == true)
      #expect(result.changedFields.isEmpty == model.isIdentical(to: expected), "SEED=\(seed)")
      try await auditIndexes(of: items, seed: seed)
      if !model.isIdentical(to: expected) {
        let next = try await updates.next()
        #expect(next?.data().isIdentical(to: expected) == true, "SEED=\(seed)")
      }
      model = expected
    }
    try await database.close()
  }

  @Test func `Contents and linked paths of a large document are held as those of a small one`()
    async throws
  {
    let database = try await Database.underTest()
    let items = database.collection("items")
    let document = items.document("d")
    try await document.setData(["text": String(repeating: "x", count: 100_000), "n": 1])
    try await items.linkBlobs(field: "photo", under: "photos")
    let photo = database.storage.reference(withPath: "photos/1")
    try await photo.putData([1, 2, 3])
    try await document.updateData(["photo": "photos/1"])
    try await document.updateData(["n": FieldValue.increment(1)])
    await #expect(throws: DatabaseError.self) { try await photo.delete() }
    try await document.updateData(["photo": "none", "n": FieldValue.increment(1)])
    await #expect(throws: DatabaseError.self) { _ = try await photo.getMetadata() }

    let blob = try await database.storage.put(Array("bytes".utf8))
    func holders() throws -> Int {
      let rows = Rows(try database.engineSnapshot(), database.catalog, mayBlock: true)
      return try rows.holderNames(of: blob.digest, atMost: 100).count
    }
    try await document.updateData(["m.blob": blob])
    try await document.updateData(["n": FieldValue.increment(1), "other": "text"])
    #expect(try holders() == 1)
    try await document.updateData(["m": 5])
    #expect(try holders() == 0)
    #expect(try await document.getDocument()["n"] == 4)
    try await database.close()
  }
}
