// A geographical point, checked once when it is made, so that later code need not check it.

/// A place on Earth by latitude and longitude in degrees. Sorted by latitude, then longitude. There
/// is no query by distance.
public struct GeoPoint: Sendable, Hashable {
  /// Degrees north, within −90...90.
  public let latitude: Double
  /// Degrees east, within −180...180.
  public let longitude: Double

  /// A point. −0.0 is stored as 0, so that each place has one form.
  ///
  /// - Parameters:
  ///   - latitude: degrees north, −90 to 90.
  ///   - longitude: degrees east, −180 to 180.
  /// - Throws: `.invalidArgument` when a coordinate is not a number or not on Earth.
  public init(latitude: Double, longitude: Double) throws(DatabaseError) {
    guard latitude >= -90, latitude <= 90 else {
      throw DatabaseError(
        .invalidArgument, "a latitude must be within -90...90 degrees, and is \(latitude)")
    }
    guard longitude >= -180, longitude <= 180 else {
      throw DatabaseError(
        .invalidArgument, "a longitude must be within -180...180 degrees, and is \(longitude)")
    }
    // Adding zero turns −0.0 into 0, so that each place has one form.
    self.latitude = latitude + 0
    self.longitude = longitude + 0
  }
}

extension GeoPoint: CustomStringConvertible {
  /// Both coordinates.
  public var description: String { "geoPoint(\(latitude), \(longitude))" }
}

extension GeoPoint: Codable {
  private enum CodingKeys: String, CodingKey {
    case latitude, longitude
  }

  /// Reads `latitude` and `longitude`, and throws when they are not on Earth.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    try self.init(
      latitude: container.decode(Double.self, forKey: .latitude),
      longitude: container.decode(Double.self, forKey: .longitude))
  }
}
