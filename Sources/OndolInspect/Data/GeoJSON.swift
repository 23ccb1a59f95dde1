// Documents as GeoJSON features (RFC 7946). A document that came from GeoJSON already is a feature.
// In any other document, one field becomes the geometry and the others its properties.

import Ondol

enum GeoJSON {
  private static let geometries: Set<String> = [
    "Point", "MultiPoint", "LineString", "MultiLineString", "Polygon", "MultiPolygon",
    "GeometryCollection",
  ]

  /// The members of a document's feature.
  ///
  /// - Parameters:
  ///   - id: its name; nil to omit it.
  ///   - geometry: the field that was named.
  ///   - document: for messages.
  static func feature(
    of fields: [String: Value], id: String?, geometry: String?, document: String
  ) throws(CommandFailure) -> [String: Value] {
    var feature = fields
    if geometry != nil || fields["type"] != "Feature" || fields["geometry"] == nil {
      feature = try composed(fields, geometry, document)
    }
    if let id, feature["id"] == nil { feature["id"] = .string(id) }
    return feature
  }

  private static func composed(
    _ fields: [String: Value], _ said: String?, _ document: String
  ) throws(CommandFailure) -> [String: Value] {
    var properties = fields
    var geometry = Value.null
    if let name = try field(fields, said, document), let value = properties[name] {
      guard let shape = self.geometry(value) else {
        throw CommandFailure(
          .failed, "\(document): \"\(name)\" is neither a geo point nor a GeoJSON geometry")
      }
      geometry = shape
      properties[name] = nil
    }
    return ["type": "Feature", "geometry": geometry, "properties": .map(properties)]
  }

  /// The field with the geometry; nil if a document has none.
  private static func field(
    _ fields: [String: Value], _ said: String?, _ document: String
  ) throws(CommandFailure) -> String? {
    if let said { return said }
    let found = fields.filter { geometry($0.value) != nil }.keys.sorted()
    guard found.count < 2 else {
      throw CommandFailure(
        .failed,
        "\(document) has several geometries, \(found.joined(separator: ", ")); say --geometry FIELD"
      )
    }
    return found.first
  }

  /// A geo point in GeoJSON's form, longitude first, or a value that already is a geometry.
  private static func geometry(_ value: Value) -> Value? {
    if case .geoPoint(let point) = value {
      return ["type": "Point", "coordinates": [.double(point.longitude), .double(point.latitude)]]
    }
    guard let fields = value.map, let type = fields["type"]?.string, geometries.contains(type),
      fields["coordinates"]?.array != nil || fields["geometries"]?.array != nil
    else { return nil }
    return value
  }
}
