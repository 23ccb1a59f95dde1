// Converts between the protocol's values and the database's. The protocol has every kind of
// Firestore's. A decimal becomes the map that Firestore's newest clients use for it, and a
// reference to a stored content a map of its own. So a document that is read and written back stays
// the same.

#if Server || Sync
  import Foundation
  package import Ondol
  package import OndolWire
  package import SwiftProtobuf

  /// Maps values for one database.
  package struct ValueMapping: Sendable {
    package let database: DatabaseName

    package init(database: DatabaseName) {
      self.database = database
    }

    /// The `__type__` of a map that represents a vector, and the name of its components.
    private static let typeName = "__type__"
    private static let vectorType = "__vector__"
    private static let vectorName = "value"
    private static let decimalName = "__decimal128__"
    private static let blobName = "__blob__"
    /// The deepest nesting of maps and arrays in a message. The database has its own limit and
    /// names the field in its error. This limit protects the stack.
    private static let mostNesting = 200

    // MARK: - From the wire

    /// Returns the value in a message.
    ///
    /// Throws `.invalidArgument` when there is none, or when it is not one of Firestore's.
    package func value(_ wire: WireValue) throws(DatabaseError) -> Value {
      try value(wire, depth: 0)
    }

    /// Returns the fields in a message.
    package func fields(_ entries: [WireEntry]) throws(DatabaseError) -> [String: Value] {
      try fields(entries, depth: 0)
    }

    private func value(_ wire: WireValue, depth: Int) throws(DatabaseError) -> Value {
      guard depth <= Self.mostNesting else {
        throw DatabaseError(
          .invalidArgument, "maps and arrays are nested more than \(Self.mostNesting) deep")
      }
      switch wire.valueType {
      case .nullValue: return .null
      case .booleanValue(let value): return .boolean(value)
      case .integerValue(let value): return .integer(value)
      case .doubleValue(let value): return .double(value)
      case .timestampValue(let value): return .timestamp(try timestamp(value))
      case .stringValue(let value): return .string(value)
      case .bytesValue(let value): return .bytes([UInt8](value))
      case .referenceValue(let name): return .reference(try database.path(of: name))
      case .geoPointValue(let value):
        return .geoPoint(try GeoPoint(latitude: value.latitude, longitude: value.longitude))
      case .arrayValue(let list):
        var elements: [Value] = []
        elements.reserveCapacity(list.values.count)
        for element in list.values { elements.append(try value(element, depth: depth + 1)) }
        return .array(elements)
      case .mapValue(let map):
        if let special = try special(map) { return special }
        return .map(try fields(map.fields, depth: depth + 1))
      case .fieldReferenceValue, .variableReferenceValue, .functionValue, .pipelineValue:
        throw DatabaseError(.invalidArgument, "an expression of a pipeline is no value")
      case nil: throw DatabaseError(.invalidArgument, "a value is empty")
      }
    }

    private func fields(
      _ entries: [WireEntry], depth: Int
    ) throws(DatabaseError) -> [String: Value] {
      var fields: [String: Value] = [:]
      fields.reserveCapacity(entries.count)
      for entry in entries {
        let value = try value(entry.value, depth: depth)
        guard fields.updateValue(value, forKey: entry.key) == nil else {
          throw DatabaseError(
            .invalidArgument, "the field is there twice, or in two spellings", field: entry.key)
        }
      }
      return fields
    }

    /// The value that a special map represents; nil for an ordinary map.
    private func special(_ map: WireMapValue) throws(DatabaseError) -> Value? {
      let names = map.fields.map(\.key)
      switch map.fields.count {
      case 1 where names[0] == Self.decimalName:
        let text = map.fields[0].value.stringValue
        guard let decimal = DecimalValue(text) else {
          throw DatabaseError(.invalidArgument, "\"\(text)\" is no decimal of up to 38 digits")
        }
        return .decimal(decimal)
      case 1 where names[0] == Self.blobName:
        return .blob(try blob(map.fields[0].value.mapValue.fields))
      case 2:
        return try Self.components(ofVector: map).map { list throws(DatabaseError) in
          .vector(try vector(list))
        }
      default: return nil
      }
    }

    private func vector(_ wire: WireValue) throws(DatabaseError) -> VectorValue {
      guard case .arrayValue(let list) = wire.valueType else {
        throw DatabaseError(.invalidArgument, "a vector's \"value\" is an array of numbers")
      }
      var components: [Double] = []
      components.reserveCapacity(list.values.count)
      for element in list.values {
        switch element.valueType {
        case .doubleValue(let number): components.append(number)
        case .integerValue(let number): components.append(Double(number))
        default:
          throw DatabaseError(.invalidArgument, "a vector's \"value\" is an array of numbers")
        }
      }
      return VectorValue(components)
    }

    /// The map that stands for a vector.
    ///
    /// - Parameter list: its components.
    package static func vector(_ list: WireValue) -> WireMapValue {
      .with {
        $0.fields = [
          .with {
            $0.key = typeName
            $0.value.stringValue = vectorType
          },
          .with {
            $0.key = vectorName
            $0.value = list
          },
        ]
      }
    }

    /// The components of the vector that a map stands for; nil for another map.
    package static func components(ofVector map: WireMapValue) -> WireValue? {
      guard map.fields.count == 2,
        let type = map.fields.first(where: { $0.key == typeName }),
        type.value.stringValue == vectorType
      else { return nil }
      return map.fields.first { $0.key == vectorName }?.value
    }

    private func blob(_ entries: [WireEntry]) throws(DatabaseError) -> BlobReference {
      func text(_ name: String) -> String? {
        entries.first { $0.key == name }.flatMap { entry in
          if case .stringValue(let text) = entry.value.valueType { text } else { nil }
        }
      }
      guard let hex = text("sha256"), let digest = BlobDigest(hex: hex),
        case .integerValue(let length)? = entries.first(where: { $0.key == "length" })?.value
          .valueType
      else {
        throw DatabaseError(
          .invalidArgument, "a content is told by its \"sha256\" and its \"length\"")
      }
      let key = text("key").map { BlobKey(hex: $0) }
      if case .some(nil) = key {
        throw DatabaseError(.invalidArgument, "a content's key has 64 hexadecimal digits")
      }
      return try BlobReference(
        digest: digest, length: Int(clamping: length), contentType: text("contentType"),
        path: text("path"), key: key ?? nil)
    }

    /// Converts a timestamp. The database keeps whole microseconds.
    package func timestamp(_ wire: Google_Protobuf_Timestamp) throws(DatabaseError) -> Timestamp {
      try Timestamp(seconds: wire.seconds, nanoseconds: wire.nanos)
    }

    // MARK: - To the wire

    package func wire(_ value: Value) -> WireValue {
      var wire = WireValue()
      wire.valueType =
        switch value {
        case .null: .nullValue(.nullValue)
        case .boolean(let value): .booleanValue(value)
        case .integer(let value): .integerValue(value)
        case .double(let value): .doubleValue(value)
        case .decimal(let value): .mapValue(map([(Self.decimalName, .string("\(value)"))]))
        case .timestamp(let value): .timestampValue(self.wire(value))
        case .string(let value): .stringValue(value)
        case .bytes(let value): .bytesValue(Data(value))
        case .reference(let path): .referenceValue(database.name(of: path))
        case .geoPoint(let value):
          .geoPointValue(
            .with {
              $0.latitude = value.latitude
              $0.longitude = value.longitude
            })
        case .array(let elements):
          .arrayValue(.with { $0.values = elements.map { self.wire($0) } })
        case .vector(let vector):
          .mapValue(Self.vector(self.wire(.array(vector.components.map { .double($0) }))))
        case .map(let fields): .mapValue(.with { $0.fields = self.wire(fields) })
        case .blob(let blob): .mapValue(map([(Self.blobName, .map(self.fields(of: blob)))]))
        }
      return wire
    }

    package func wire(_ fields: [String: Value]) -> [WireEntry] {
      fields.map { name, value in self.entry(name, value) }
    }

    package func wire(_ moment: Timestamp) -> Google_Protobuf_Timestamp {
      .with {
        $0.seconds = moment.seconds
        $0.nanos = moment.nanoseconds
      }
    }

    private func entry(_ name: String, _ value: Value) -> WireEntry {
      .with {
        $0.key = name
        $0.value = wire(value)
      }
    }

    private func map(_ fields: [(String, Value)]) -> WireMapValue {
      .with { $0.fields = fields.map { self.entry($0.0, $0.1) } }
    }

    private func fields(of blob: BlobReference) -> [String: Value] {
      var fields: [String: Value] = [
        "sha256": .string(blob.digest.hex), "length": .integer(Int64(blob.length)),
      ]
      fields["contentType"] = blob.contentType.map { .string($0) }
      fields["path"] = blob.path.map { .string($0) }
      fields["key"] = blob.key.map { .string($0.hex) }
      return fields
    }
  }
#endif
