// Documents as Firestore exports them: entities of Datastore, which Firestore is built on. The
// numbers of the fields are those of App Engine's `entity_bytes.proto`, and the meanings are those
// that exports of Firestore's emulator have:
//
//   EntityProto    13 key   14 property (indexed)   15 raw_property (not indexed)   16 entity_group
//   Reference      13 app   14 path   20 name_space   23 database_id
//   Path           1 element, a group of 2 type, 3 id, 4 name
//   Property       1 meaning   3 name   4 multiple   5 value
//   PropertyValue  1 int64   2 boolean   3 string   4 double   5 point, a group of 6 x and 7 y
//                  12 reference, a group of 13 app, 14 path element, 20 name_space, 23 database_id
//
// An element of an array is a property of its own, with `multiple`. A map is an entity without a
// key, in a string. A null has no value at all.

#if Server
  import Foundation
  import Ondol
  import OndolMapping
  import OndolWire
  import SwiftProtobuf

  /// What tells the kinds of values apart that Datastore stores alike.
  enum EntityMeaning {
    static let none: Int64 = 0
    static let time: Int64 = 7
    static let place: Int64 = 9
    static let blob: Int64 = 14
    static let text: Int64 = 15
    static let byteString: Int64 = 16
    static let entity: Int64 = 19
    static let emptyList: Int64 = 24
    /// The name of the only field of a map that stands for a vector.
    static let vector = "__vector__"
  }

  /// The names of a document or a reference.
  struct EntityKey {
    /// Such as `dev~demo`.
    var app = ""
    var namespace = ""
    var database = ""
    var segments: [String] = []

    /// The project's id.
    var project: String {
      app.firstIndex(of: "~").map { String(app[app.index(after: $0)...]) } ?? app
    }

    /// The database's name in the protocol.
    func databaseName(_ offset: Int) throws(ProtocolFault) -> DatabaseName {
      guard namespace.isEmpty else {
        throw ProtocolFault(offset: offset, reason: "the entity has a namespace of Datastore's")
      }
      guard !project.isEmpty, !project.utf8.contains(UInt8(ascii: "/")) else {
        throw ProtocolFault(offset: offset, reason: "the entity has no project")
      }
      return DatabaseName(project: project, id: database.isEmpty ? DatabaseName.usual : database)
    }
  }

  /// A document of an export.
  struct ExportedDocument {
    let database: DatabaseName
    /// Collections and ids.
    let segments: [String]
    let fields: [WireEntry]
    /// The bytes of its record.
    let length: Int
  }

  /// Reads entities.
  enum EntityReader {
    /// The deepest nesting of maps, as for messages of clients.
    private static let mostNesting = 200

    /// The document in a record.
    static func document(_ record: [UInt8]) throws(ProtocolFault) -> ExportedDocument {
      let (key, fields) = try entity(record[...], depth: 0)
      guard let key, !key.segments.isEmpty else {
        throw ProtocolFault(offset: 0, reason: "the entity has no name")
      }
      return ExportedDocument(
        database: try key.databaseName(0), segments: key.segments, fields: fields,
        length: record.count)
    }

    private static func entity(
      _ bytes: ArraySlice<UInt8>, depth: Int
    ) throws(ProtocolFault) -> (EntityKey?, [WireEntry]) {
      var reader = ProtocolFields(bytes)
      guard depth <= mostNesting else { throw reader.fault("maps are nested too deep") }
      var key: EntityKey?
      var properties: [Property] = []
      var raw: [Property] = []
      while let (number, field) = try reader.next() {
        switch (number, field) {
        case (13, .bytes(let bytes)): key = try Self.key(bytes)
        case (14, .bytes(let bytes)): properties.append(try property(bytes, depth: depth))
        case (15, .bytes(let bytes)): raw.append(try property(bytes, depth: depth))
        // The group of the entity, its owner and its kind say nothing more.
        case (16, .bytes), (17, .bytes), (4, .number), (5, .bytes): break
        default: throw reader.fault("an entity has the unknown field \(number)")
        }
      }
      return (key, try entries(properties + raw))
    }

    // MARK: - Names

    private static func key(_ bytes: ArraySlice<UInt8>) throws(ProtocolFault) -> EntityKey {
      var key = EntityKey()
      var reader = ProtocolFields(bytes)
      while let (number, field) = try reader.next() {
        guard try !readName(number, field, &key, reader) else { continue }
        guard case (14, .bytes(let bytes)) = (number, field) else {
          throw reader.fault("a key has the unknown field \(number)")
        }
        var path = ProtocolFields(bytes)
        while let (number, field) = try path.next() {
          guard case (1, .group(let element)) = (number, field) else {
            throw path.fault("a path has the unknown field \(number)")
          }
          key.segments += try self.element(element, first: 2)
        }
      }
      return key
    }

    /// Reads a field that keys and references have alike. Returns whether it is one.
    private static func readName(
      _ number: Int, _ field: ProtocolField, _ key: inout EntityKey, _ reader: ProtocolFields
    ) throws(ProtocolFault) -> Bool {
      guard case .bytes(let bytes) = field else { return false }
      switch number {
      case 13: key.app = try text(bytes)
      case 20: key.namespace = try text(bytes)
      case 23: key.database = try text(bytes)
      default: return false
      }
      return true
    }

    /// A collection and an id.
    ///
    /// - Parameter first: the number of the collection's field. The id follows, as a number or,
    ///   after that, as a name.
    private static func element(
      _ bytes: ArraySlice<UInt8>, first: Int
    ) throws(ProtocolFault) -> [String] {
      var reader = ProtocolFields(bytes)
      var (collection, id): (String?, String?)
      while let (number, field) = try reader.next() {
        switch (number - first, field) {
        case (0, .bytes(let bytes)): collection = try text(bytes)
        // Firestore writes the numbers of Datastore in this way.
        case (1, .number(let number)): id = "__id\(Int64(bitPattern: number))__"
        case (2, .bytes(let bytes)): id = try text(bytes)
        default: throw reader.fault("an element of a path has the unknown field \(number)")
        }
      }
      guard let collection, let id else { throw reader.fault("an element of a path lacks a name") }
      return [collection, id]
    }

    private static func text(_ bytes: ArraySlice<UInt8>) throws(ProtocolFault) -> String {
      guard let text = String(validating: bytes, as: UTF8.self) else {
        throw ProtocolFault(offset: bytes.startIndex, reason: "a text is not UTF-8")
      }
      return text
    }

    // MARK: - Properties

    private struct Property {
      let name: ArraySlice<UInt8>
      let isElement: Bool
      let value: WireValue
    }

    private static func property(
      _ bytes: ArraySlice<UInt8>, depth: Int
    ) throws(ProtocolFault) -> Property {
      var reader = ProtocolFields(bytes)
      var (name, content): (ArraySlice<UInt8>?, ArraySlice<UInt8>?)
      var (meaning, isElement) = (EntityMeaning.none, false)
      while let (number, field) = try reader.next() {
        switch (number, field) {
        case (1, .number(let number)): meaning = Int64(bitPattern: number)
        case (3, .bytes(let bytes)): name = bytes
        case (4, .number(let number)): isElement = number != 0
        case (5, .bytes(let bytes)): content = bytes
        default: throw reader.fault("a property has the unknown field \(number)")
        }
      }
      guard let name, let content else {
        throw ProtocolFault(offset: bytes.startIndex, reason: "a property lacks a name or a value")
      }
      if meaning == EntityMeaning.emptyList {
        guard content.isEmpty, !isElement else {
          throw ProtocolFault(offset: content.startIndex, reason: "an empty array has a value")
        }
        return Property(
          name: name, isElement: false, value: .with { $0.arrayValue = WireArrayValue() })
      }
      return Property(
        name: name, isElement: isElement, value: try value(content, meaning, depth: depth))
    }

    /// Makes one field of all properties with the same name.
    ///
    /// - Complexity: O(properties).
    private static func entries(_ properties: [Property]) throws(ProtocolFault) -> [WireEntry] {
      var places: [ArraySlice<UInt8>: Int] = [:]
      var fields: [(first: Property, elements: [WireValue])] = []
      for property in properties {
        guard let place = places[property.name] else {
          places[property.name] = fields.count
          fields.append((property, [property.value]))
          continue
        }
        guard property.isElement, fields[place].first.isElement else {
          throw ProtocolFault(
            offset: property.name.startIndex, reason: "a property is there twice")
        }
        fields[place].elements.append(property.value)
      }
      var entries: [WireEntry] = []
      entries.reserveCapacity(fields.count)
      for field in fields {
        var entry = WireEntry()
        entry.key = try text(field.first.name)
        if field.first.isElement {
          entry.value.arrayValue = .with { $0.values = field.elements }
        } else {
          entry.value = field.first.value
        }
        entries.append(entry)
      }
      return entries
    }

    // MARK: - Values

    private static func value(
      _ bytes: ArraySlice<UInt8>, _ meaning: Int64, depth: Int
    ) throws(ProtocolFault) -> WireValue {
      var reader = ProtocolFields(bytes)
      var wire = WireValue()
      guard let (number, field) = try reader.next() else {
        guard meaning == EntityMeaning.none else {
          throw reader.fault("a null has the unknown meaning \(meaning)")
        }
        wire.nullValue = .nullValue
        return wire
      }
      switch (number, field, meaning) {
      case (1, .number(let number), EntityMeaning.none):
        wire.integerValue = Int64(bitPattern: number)
      case (1, .number(let number), EntityMeaning.time):
        let (seconds, microseconds) = Int64(bitPattern: number).dividedDown(by: 1_000_000)
        wire.timestampValue.seconds = seconds
        wire.timestampValue.nanos = Int32(microseconds) * 1_000
      case (2, .number(let number), EntityMeaning.none): wire.booleanValue = number != 0
      case (3, .bytes(let bytes), EntityMeaning.none), (3, .bytes(let bytes), EntityMeaning.text):
        wire.stringValue = try text(bytes)
      case (3, .bytes(let bytes), EntityMeaning.blob),
        (3, .bytes(let bytes), EntityMeaning.byteString):
        wire.bytesValue = Data(bytes)
      case (3, .bytes(let bytes), EntityMeaning.entity): wire = try map(bytes, depth: depth)
      case (4, .eight(let bits), EntityMeaning.none): wire.doubleValue = Double(bitPattern: bits)
      case (5, .group(let bytes), EntityMeaning.place), (5, .group(let bytes), EntityMeaning.none):
        try readPlace(bytes, &wire)
      case (12, .group(let bytes), EntityMeaning.none):
        wire.referenceValue = try reference(bytes)
      default:
        throw reader.fault("a value has the unknown field \(number) with the meaning \(meaning)")
      }
      guard try reader.next() == nil else { throw reader.fault("a value has more than one field") }
      return wire
    }

    private static func map(
      _ bytes: ArraySlice<UInt8>, depth: Int
    ) throws(ProtocolFault) -> WireValue {
      let (key, fields) = try entity(bytes, depth: depth + 1)
      guard key?.segments.isEmpty ?? true else {
        throw ProtocolFault(offset: bytes.startIndex, reason: "a map has a name")
      }
      var wire = WireValue()
      if fields.count == 1, fields[0].key == EntityMeaning.vector,
        case .arrayValue? = fields[0].value.valueType
      {
        wire.mapValue = ValueMapping.vector(fields[0].value)
      } else {
        wire.mapValue.fields = fields
      }
      return wire
    }

    private static func readPlace(
      _ bytes: ArraySlice<UInt8>, _ wire: inout WireValue
    ) throws(ProtocolFault) {
      var reader = ProtocolFields(bytes)
      while let (number, field) = try reader.next() {
        switch (number, field) {
        case (6, .eight(let bits)):
          wire.geoPointValue.latitude = Double(bitPattern: bits)
        case (7, .eight(let bits)):
          wire.geoPointValue.longitude = Double(bitPattern: bits)
        default: throw reader.fault("a point has the unknown field \(number)")
        }
      }
    }

    /// The name of the document that a reference names.
    private static func reference(_ bytes: ArraySlice<UInt8>) throws(ProtocolFault) -> String {
      var key = EntityKey()
      var reader = ProtocolFields(bytes)
      while let (number, field) = try reader.next() {
        guard try !readName(number, field, &key, reader) else { continue }
        guard case (14, .group(let element)) = (number, field) else {
          throw reader.fault("a reference has the unknown field \(number)")
        }
        key.segments += try self.element(element, first: 15)
      }
      let name = try key.databaseName(bytes.startIndex)
      return "\(name.documents)/\(key.segments.joined(separator: "/"))"
    }
  }
#endif
