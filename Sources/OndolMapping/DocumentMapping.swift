// Documents in the protocol's form: all their fields, or those of a mask.

#if Server || Sync
  package import Ondol
  package import OndolWire
  import SwiftProtobuf

  /// The fields that a client requests.
  package struct FieldMask: Sendable {
    /// Paths of names, none of them inside another.
    package let paths: [[String]]

    /// Throws `.invalidArgument` when a path is invalid.
    package init(_ wire: WireDocumentMask) throws(DatabaseError) {
      var paths: [[String]] = []
      for text in wire.fieldPaths {
        let path = FieldPath(text)
        if !path.isDocumentID { paths.append(try path.names()) }
      }
      self.paths = paths
    }

    /// Returns the fields that the mask names.
    package func part(of fields: [String: Value]) -> [String: Value] {
      var part: [String: Value] = [:]
      for path in paths {
        if let value = Self.value(at: path[...], in: fields) {
          Self.put(value, at: path[...], in: &part)
        }
      }
      return part
    }

    private static func value(
      at path: ArraySlice<String>, in fields: [String: Value]
    ) -> Value? {
      guard let name = path.first, let value = fields[name] else { return nil }
      let rest = path.dropFirst()
      return rest.isEmpty ? value : value.map.flatMap { self.value(at: rest, in: $0) }
    }

    private static func put(
      _ value: Value, at path: ArraySlice<String>, in fields: inout [String: Value]
    ) {
      guard let name = path.first else { return }
      let rest = path.dropFirst()
      guard !rest.isEmpty else {
        fields[name] = value
        return
      }
      var nested = fields[name]?.map ?? [:]
      put(value, at: rest, in: &nested)
      fields[name] = .map(nested)
    }
  }

  extension ValueMapping {
    /// Maps an existing document.
    ///
    /// - Parameter mask: the requested fields; nil for all.
    package func wire(_ document: DocumentSnapshot, mask: FieldMask? = nil) -> WireDocument {
      .with {
        $0.name = "\(database.documents)/\(document.reference.path)"
        $0.fields = wire(mask.map { $0.part(of: document.data()) } ?? document.data())
        if let time = document.createTime { $0.createTime = wire(time) }
        if let time = document.updateTime { $0.updateTime = wire(time) }
      }
    }
  }
#endif
