// Documents as entities, as Firestore's emulator exports them: see EntityReader, which reads them.
// All properties are those that Datastore does not index, but for empty arrays.

#if Server
  import Ondol
  import OndolMapping
  import OndolWire
  import SwiftProtobuf

  /// A value that no entity can have.
  struct EntityProblem: Error {
    let field: String
    let reason: String
  }

  /// Writes entities of one project's database.
  struct EntityWriter {
    /// The project's id.
    let project: String

    private var app: String { "dev~\(project)" }

    /// The record of a document.
    ///
    /// - Throws: for an array in an array.
    func record(of path: DocumentPath, _ fields: [WireEntry]) throws(EntityProblem) -> [UInt8] {
      var writer = ProtocolWriter()
      writer.message(13) { key in
        key.write(13, app)
        key.message(14) { elements(of: path.segments[...], 1, first: 2, &$0) }
      }
      try write(fields, below: "", &writer)
      writer.message(16) { elements(of: path.segments.prefix(2), 1, first: 2, &$0) }
      return writer.bytes
    }

    /// Writes the collections and ids of a path.
    private func elements(
      of segments: ArraySlice<String>, _ number: Int, first: Int, _ writer: inout ProtocolWriter
    ) {
      for index in stride(from: segments.startIndex, to: segments.endIndex - 1, by: 2) {
        writer.group(number) { element in
          element.write(first, segments[index])
          element.write(first + 2, segments[index + 1])
        }
      }
    }

    private func write(
      _ fields: [WireEntry], below place: String, _ writer: inout ProtocolWriter
    ) throws(EntityProblem) {
      let ordered = fields.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
      for entry in ordered {
        guard case .arrayValue(let list)? = entry.value.valueType, list.values.isEmpty else {
          continue
        }
        writer.message(14) { property in
          property.write(1, EntityMeaning.emptyList)
          property.write(3, entry.key)
          property.write(4, Int64(0))
          property.write(5, [])
        }
      }
      for entry in ordered {
        let place = place.isEmpty ? entry.key : "\(place).\(entry.key)"
        guard case .arrayValue(let list)? = entry.value.valueType else {
          writer.write(15, try property(entry.key, entry.value, isElement: false, place))
          continue
        }
        for element in list.values {
          writer.write(15, try property(entry.key, element, isElement: true, place))
        }
      }
    }

    private func property(
      _ name: String, _ value: WireValue, isElement: Bool, _ place: String
    ) throws(EntityProblem) -> [UInt8] {
      let (meaning, content) = try self.value(value, place)
      var writer = ProtocolWriter()
      if meaning != EntityMeaning.none { writer.write(1, meaning) }
      writer.write(3, name)
      writer.write(4, Int64(isElement ? 1 : 0))
      writer.write(5, content)
      return writer.bytes
    }

    private func value(
      _ value: WireValue, _ place: String
    ) throws(EntityProblem) -> (meaning: Int64, bytes: [UInt8]) {
      var writer = ProtocolWriter()
      var meaning = EntityMeaning.none
      switch value.valueType {
      case .nullValue: break
      case .integerValue(let number): writer.write(1, number)
      case .booleanValue(let truth): writer.write(2, Int64(truth ? 1 : 0))
      case .doubleValue(let number): writer.write(4, number)
      case .stringValue(let text): writer.write(3, text)
      case .timestampValue(let time):
        meaning = EntityMeaning.time
        writer.write(1, time.seconds * 1_000_000 + Int64(time.nanos / 1_000))
      case .bytesValue(let bytes):
        meaning = EntityMeaning.blob
        writer.write(3, bytes)
      case .geoPointValue(let point):
        meaning = EntityMeaning.place
        writer.group(5) { group in
          group.write(6, point.latitude)
          group.write(7, point.longitude)
        }
      case .referenceValue(let name):
        guard let segments = try? DatabaseName.document(name).path.segments else {
          throw EntityProblem(field: place, reason: "a reference to \(name)")
        }
        writer.group(12) { group in
          group.write(13, app)
          elements(of: segments[...], 14, first: 15, &group)
        }
      case .mapValue(let map):
        meaning = EntityMeaning.entity
        writer.write(3, try self.map(map, place))
      case .arrayValue:
        throw EntityProblem(field: place, reason: "Firestore has no arrays in arrays")
      case .fieldReferenceValue, .variableReferenceValue, .functionValue, .pipelineValue, nil:
        throw EntityProblem(field: place, reason: "it is no value")
      }
      return (meaning, writer.bytes)
    }

    /// A map, as an entity with an empty key.
    private func map(_ map: WireMapValue, _ place: String) throws(EntityProblem) -> [UInt8] {
      var fields = map.fields
      if let list = ValueMapping.components(ofVector: map) {
        fields = [
          .with {
            $0.key = EntityMeaning.vector
            $0.value = list
          }
        ]
      }
      var writer = ProtocolWriter()
      writer.message(13) { key in
        key.write(13, "")
        key.write(14, [])
      }
      try write(fields, below: place, &writer)
      writer.write(16, [])
      return writer.bytes
    }
  }
#endif
