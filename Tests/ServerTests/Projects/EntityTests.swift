// Documents as entities of Datastore: every value comes back, and no bytes make the reader do more
// than read them.

#if Server
  import Ondol
  import OndolMapping
  import OndolTestKit
  import OndolWire
  import Testing

  @testable import OndolServer

  @Suite struct EntityTests {
    private let values = ValueMapping(
      database: DatabaseName(project: "demo", id: DatabaseName.usual))
    private let writer = EntityWriter(project: "demo")

    /// A document that Firestore can have: without arrays in arrays.
    private func document(_ random: inout SeededRandom) throws -> [String: Value] {
      var fields: [String: Value] = [:]
      for _ in 0..<random.below(8) {
        let value = try Value.random(&random)
        if !hasNestedArray(value) { fields["f\(random.below(20))"] = value }
      }
      return fields
    }

    private func hasNestedArray(_ value: Value) -> Bool {
      switch value {
      case .array(let elements): elements.contains { $0.array != nil || hasNestedArray($0) }
      case .map(let fields): fields.values.contains(where: hasNestedArray)
      default: false
      }
    }

    @Test func `Documents come back as they were`() throws {
      for seed in Seeds.first(400) {
        var random = SeededRandom(seed: seed)
        let fields = try document(&random)
        let path = try DocumentPath("a/b/c/\(random.below(99))")
        let record = try writer.record(of: path, values.wire(fields))
        let back = try EntityReader.document(record)
        #expect(back.segments == path.segments && "\(back.database)" == "\(values.database)")
        let found = try values.fields(back.fields)
        #expect("\(Value.map(found))" == "\(Value.map(fields))", "SEED=\(seed)")
      }
    }

    @Test func `An array in an array is refused with its field`() throws {
      let fields: [String: Value] = ["a": ["b": [[1]]]]
      let problem = #expect(throws: EntityProblem.self) {
        try writer.record(of: try DocumentPath("a/b"), values.wire(fields))
      }
      #expect(problem?.field == "a.b")
    }

    /// An entity as the App Engine SDK writes it, with an integer and a name: laid out by hand from
    /// the numbers of its messages.
    @Test func `An entity has the bytes that Datastore defines`() throws {
      let record = try writer.record(of: try DocumentPath("c/d"), values.wire(["n": 5]))
      let app = Array("dev~demo".utf8)
      let element: [UInt8] = [0x0B, 0x12, 1, 0x63, 0x22, 1, 0x64, 0x0C]
      let key: [UInt8] = [0x6A, 8] + app + [0x72, 8] + element
      let value: [UInt8] = [0x08, 5]
      let property: [UInt8] = [0x1A, 1, 0x6E, 0x20, 0, 0x2A, 2] + value
      let expected: [UInt8] =
        [0x6A, UInt8(key.count)] + key + [0x7A, UInt8(property.count)] + property
        + [0x82, 0x01, 8] + element
      #expect(record == expected)
    }

    @Test func `A vector and an empty array have the forms of the emulator`() throws {
      var property = ProtocolWriter()
      property.write(1, EntityMeaning.emptyList)
      property.write(3, "e")
      property.write(4, Int64(0))
      property.write(5, [])
      let record = try writer.record(
        of: try DocumentPath("c/d"), values.wire(["e": [], "v": .vector(VectorValue([1, 2]))]))
      var list = ProtocolWriter()
      list.write(14, property.bytes)
      #expect(record.firstRange(of: list.bytes) != nil)
      #expect(record.firstRange(of: Array("__vector__".utf8)) != nil)
      #expect(record.firstRange(of: Array("__type__".utf8)) == nil)
    }

    @Test func `Damaged bytes are a document or a fault, and nothing else`() throws {
      var documents = 0
      for seed in Seeds.first(2_000) {
        var random = SeededRandom(seed: seed)
        var record = try writer.record(
          of: try DocumentPath("a/b"), values.wire(try document(&random)))
        for _ in 0...random.below(4) {
          switch random.below(3) {
          case 0: record[random.below(record.count)] = UInt8(random.below(256))
          case 1: record.remove(at: random.below(record.count))
          default: record.insert(UInt8(random.below(256)), at: random.below(record.count))
          }
        }
        do throws(ProtocolFault) {
          _ = try EntityReader.document(record)
          documents += 1
        } catch {
          #expect((0...record.count).contains(error.offset), "SEED=\(seed)")
        }
      }
      #expect(documents > 20)
    }

    @Test func `Maps that are nested without end are a fault`() {
      var inner: [UInt8] = []
      for _ in 0..<2_000 {
        var value = ProtocolWriter()
        value.write(3, inner)
        var property = ProtocolWriter()
        property.write(1, EntityMeaning.entity)
        property.write(3, "a")
        property.write(5, value.bytes)
        var entity = ProtocolWriter()
        entity.write(15, property.bytes)
        inner = entity.bytes
      }
      let fault = #expect(throws: ProtocolFault.self) { try EntityReader.document(inner) }
      #expect(fault?.reason == "maps are nested too deep")
    }

    @Test func `Groups that are nested without end are a fault`() {
      let bytes = [UInt8](repeating: 0x0B, count: 100_000)
      #expect(throws: ProtocolFault.self) { try EntityReader.document(bytes) }
    }
  }
#endif
