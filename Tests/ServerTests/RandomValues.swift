// Random values of every kind, for mapping them and back.

#if Server
  import Ondol
  import OndolTestKit

  extension Value {
    /// Any value except a reference to a content, nested up to three levels.
    static func random(_ random: inout SeededRandom, depth: Int = 0) throws -> Value {
      switch random.below(depth < 3 ? 13 : 10) {
      case 0: return .null
      case 1: return .boolean(random.below(2) == 0)
      case 2: return .integer(Int64(bitPattern: random.next()))
      case 3: return .double([.nan, -0.0, .infinity, 0.1, -1e300][random.below(5)])
      case 4:
        return .timestamp(
          try Timestamp(microsecondsSince1970: Int64(random.below(1 << 50)) - (1 << 49)))
      case 5: return .string(["", "a", "Стол 🪑", "e\u{301}", "\u{0}"][random.below(5)])
      case 6: return .bytes((0..<random.below(9)).map { _ in UInt8(random.below(256)) })
      case 7: return .reference(try DocumentPath("c/d\(random.below(9))"))
      case 8:
        return .geoPoint(
          try GeoPoint(
            latitude: Double(random.below(181)) - 90, longitude: Double(random.below(361)) - 180))
      case 9:
        return DecimalValue("\(random.below(1_000)).\(random.below(100))").map { .decimal($0) }
          ?? .null
      case 10: return .vector(VectorValue((0..<random.below(4)).map { Double($0) / 3 }))
      case 11:
        return .array(
          try (0..<random.below(4)).map { _ in try Value.random(&random, depth: depth + 1) })
      default:
        var fields: [String: Value] = [:]
        for _ in 0..<random.below(4) {
          fields["f\(random.below(9))"] = try Value.random(&random, depth: depth + 1)
        }
        return .map(fields)
      }
    }
  }
#endif
