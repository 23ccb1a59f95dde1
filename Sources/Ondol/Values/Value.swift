// The values a field can have, and nothing about bytes: those are in ValueCoding (documents) and KeyCoding
// (index keys).

/// The value of a field, as reads give it back.
public enum Value: Sendable {
  case null
  case boolean(Bool)
  case integer(Int64)
  case double(Double)
  case timestamp(Timestamp)
  case string(String)
  case bytes([UInt8])
  /// A reference to a document, by its path.
  case reference(DocumentPath)
  case geoPoint(GeoPoint)
  case array([Value])
  case vector(VectorValue)
  case map([String: Value])
}
