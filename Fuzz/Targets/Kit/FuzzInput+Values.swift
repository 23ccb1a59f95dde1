// Values from an input's bytes.

@testable import Ondol

extension FuzzInput {
  /// Returns any value. Containers hold others down to `depth`.
  mutating func value(depth: Int) -> Value {
    switch below(depth > 0 ? 16 : 13) {
    case 0: return .null
    case 1: return .boolean(flag())
    case 2: return .integer(Int64(bitPattern: edge()))
    case 3: return .double(Double(bitPattern: word()))
    case 4: return .double(Double(Int64(bitPattern: edge())) + (flag() ? 0.5 : 0))
    case 5: return .string(text())
    case 6: return .bytes(take(below(24)))
    case 7: return .timestamp(timestamp())
    case 8:
      let place = try? GeoPoint(
        latitude: Double(below(181)) - 90, longitude: Double(below(361)) - 180)
      return place.map { .geoPoint($0) } ?? .null
    case 9:
      let segments = (0..<(2 * (1 + below(2)))).map { _ in "x" + text() }
      return (try? DocumentPath(segments: segments)).map { .reference($0) } ?? .null
    case 10:
      return .vector(VectorValue((0..<below(4)).map { _ in Double(bitPattern: word()) }))
    case 11: return blob().map { .blob($0) } ?? .null
    case 12: return .decimal(decimal())
    case 13, 14: return .array((0..<below(5)).map { _ in value(depth: depth - 1) })
    default: return .map(fields(depth: depth - 1))
    }
  }

  /// Returns the digits of any number, or those next to a double or an integer.
  private mutating func decimal() -> DecimalValue {
    let found: DecimalValue? =
      switch below(4) {
      case 0: DecimalValue("\(Int64(bitPattern: edge())).\(below(100))")
      case 1: DecimalValue("\(Double(bitPattern: word()))")
      case 2: DecimalValue(exactly: Double(bitPattern: word()))
      default:
        DecimalValue(
          (UInt128(word()) << 64 | UInt128(word())) >> UInt128(below(128)),
          exponent: below(256) - 128, isNegative: flag())
      }
    return found ?? .zero
  }

  private mutating func blob() -> BlobReference? {
    func octets() -> [UInt8] { (0..<32).map { _ in UInt8(below(256)) } }
    let digest = BlobDigest(bytes: octets())
    let length = Int(Int64(bitPattern: edge()))
    let contentType = flag() ? nil : "x" + text()
    let path = flag() ? nil : StoragePath.normal("x" + text())
    let key = flag() ? nil : BlobKey(bytes: octets())
    return digest.flatMap { digest in
      try? BlobReference(
        digest: digest, length: length, contentType: contentType, path: path, key: key)
    }
  }

  mutating func fields(depth: Int) -> [String: Value] {
    var fields: [String: Value] = [:]
    for _ in 0..<below(6) { fields["n" + text()] = value(depth: depth) }
    return fields
  }

  mutating func text() -> String {
    if oneIn(16) { return String(repeating: "é", count: 500 + below(40)) }
    return String(decoding: take(below(16)), as: UTF8.self)
  }

  private mutating func timestamp() -> Timestamp {
    let microseconds = Int64(bitPattern: edge())
    return (try? Timestamp(microsecondsSince1970: microseconds)) ?? .maximum
  }
}
