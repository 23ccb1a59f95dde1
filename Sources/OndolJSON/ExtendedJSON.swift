// The meaning of objects with one `$` name: MongoDB's Extended JSON (version 2) for the types that
// it shares with Ondol, and Ondol's own names for the others. JSONWriter writes them and JSONReader
// reads them. Every value is preserved to the last bit.
//
//   {"$numberInt": "1"} {"$numberLong": "1"}   integer
//   {"$numberDouble": "NaN"}                   double; NaN, Infinity, -Infinity or a number
//   {"$numberDecimal": "0.10"}                 decimal of up to 38 digits
//   {"$date": "2026-05-01T09:30:00.5Z"}        timestamp, microseconds and all; or milliseconds
//                                              since 1970, as a number or a $numberLong
//   {"$binary": {"base64": "…", "subType": "00"}}      bytes
//   {"$reference": "users/alice"}              reference to a document
//   {"$geoPoint": [37.5, 127.0]}               latitude and longitude
//   {"$vector": [1.0, 0.5]}                    vector of doubles; NaN and infinities as texts
//   {"$blob": {"sha256": "…", "length": 1}}    reference to a content; also contentType, path
//   {"$literal": {…}}                          the map inside, its names as they stand
//
// A map of the app with a name that begins with `$` is written inside `$literal`. A reader takes an
// object with an unknown `$` name as the map that it is.

import Foundation
import Ondol

/// The forms of values that JSON has no notation for.
package enum JSONForm: String, Sendable, CaseIterable {
  /// Numbers are plain JSON numbers.
  case relaxed
  /// Numbers carry their type, for readers that do not distinguish 1 from 1.0.
  case canonical
  /// Values without types, for programs that know none: dates and bytes are texts, vectors are
  /// arrays. The original type is lost.
  case plain
}

/// The objects that represent values.
package enum ExtendedJSON {
  /// Why an object does not match its `$` name.
  struct Failure: Error {
    var reason: String
  }

  /// The result of examining an object.
  private enum Reading {
    /// Not one of these objects.
    case unknown
    /// A known name with an invalid value.
    case wrong
    case value(Value)

    init(_ value: Value?) {
      self = value.map { .value($0) } ?? .wrong
    }
  }

  static let literalName = "$literal"

  /// Returns the value that an object with a `$` name represents, or the map itself if it
  /// represents none.
  static func value(of fields: [String: Value]) throws(Failure) -> Value {
    if let literal = fields[literalName] {
      guard fields.count == 1, case .map = literal else {
        throw Failure(reason: "\(literalName) has one object in it and nothing beside it")
      }
      return literal
    }
    guard fields.count == 1, let (name, content) = fields.first else { return .map(fields) }
    let reading: Reading
    do throws(DatabaseError) {
      reading = try read(name, content)
    } catch {
      throw Failure(reason: error.message)
    }
    switch reading {
    case .unknown: return .map(fields)
    case .wrong: throw Failure(reason: "this is not a valid value for \"\(name)\"")
    case .value(let value): return value
    }
  }

  private static func read(_ name: String, _ content: Value) throws(DatabaseError) -> Reading {
    switch name {
    case "$numberInt", "$numberLong": return Reading(integer(content).map { .integer($0) })
    case "$numberDouble": return Reading(content.string.flatMap(double).map { .double($0) })
    case "$numberDecimal":
      return Reading(content.string.flatMap { DecimalValue($0) }.map { .decimal($0) })
    case "$date": return Reading(try timestamp(content).map { .timestamp($0) })
    case "$binary": return Reading(bytes(content).map { .bytes($0) })
    case "$reference":
      guard let path = content.string else { return .wrong }
      return .value(.reference(try DocumentPath(path)))
    case "$geoPoint": return Reading(try geoPoint(content).map { .geoPoint($0) })
    case "$vector": return Reading(vector(content).map { .vector($0) })
    case "$blob": return Reading(try blob(content).map { .blob($0) })
    default: return .unknown
    }
  }

  // MARK: - Numbers

  private static func integer(_ content: Value) -> Int64? {
    guard let text = content.string, let integer = Int64(text), text.utf8.first != UInt8(ascii: "+")
    else { return nil }
    return integer
  }

  /// Returns the double that a text names, as the inverse of `text(of:)`.
  static func double(_ text: String) -> Double? {
    switch text {
    case "NaN": return .nan
    case "Infinity": return .infinity
    case "-Infinity": return -.infinity
    default: break
    }
    if text.hasPrefix("NaN("), text.hasSuffix(")") {
      guard let bits = UInt64(text.dropFirst(4).dropLast(), radix: 16) else { return nil }
      let double = Double(bitPattern: bits)
      return double.isNaN ? double : nil
    }
    let isPlain = text.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "+"),
        UInt8(ascii: "."), UInt8(ascii: "e"), UInt8(ascii: "E"):
        true
      default: false
      }
    }
    guard isPlain, let double = Double(text), double.isFinite else { return nil }
    return double
  }

  /// Returns a double as a text: the shortest that reads back as the same bits. A NaN other than
  /// the usual one is followed by its bits.
  static func text(of double: Double) -> String {
    if double.isFinite { return String(double) }
    if !double.isNaN { return double < 0 ? "-Infinity" : "Infinity" }
    let bits = double.bitPattern
    return bits == Double.nan.bitPattern ? "NaN" : "NaN(\(String(bits, radix: 16)))"
  }

  /// An element of a vector or a coordinate.
  private static func component(_ value: Value) -> Double? {
    switch value {
    case .double(let double): double
    case .integer(let integer): Double(exactly: integer)
    // A number with more digits than a double preserves, where a double is required.
    case .decimal(let decimal): decimal.double
    case .string(let text): double(text)
    default: nil
    }
  }

  // MARK: - The others

  private static func timestamp(_ content: Value) throws(DatabaseError) -> Timestamp? {
    if let text = content.string { return try Moment.timestamp(text) }
    guard let milliseconds = content.integer else { return nil }
    let (microseconds, isOver) = milliseconds.multipliedReportingOverflow(by: 1_000)
    return isOver ? nil : try Timestamp(microsecondsSince1970: microseconds)
  }

  private static func bytes(_ content: Value) -> [UInt8]? {
    guard let fields = content.map, fields.count == 2, fields["subType"]?.string != nil,
      let text = fields["base64"]?.string, let data = Data(base64Encoded: text)
    else { return nil }
    return Array(data)
  }

  private static func geoPoint(_ content: Value) throws(DatabaseError) -> GeoPoint? {
    guard let numbers = content.array?.map(component), numbers.count == 2,
      let latitude = numbers[0], let longitude = numbers[1]
    else { return nil }
    return try GeoPoint(latitude: latitude, longitude: longitude)
  }

  private static func vector(_ content: Value) -> VectorValue? {
    guard let elements = content.array else { return nil }
    let components = elements.compactMap(component)
    return components.count == elements.count ? VectorValue(components) : nil
  }

  private static func blob(_ content: Value) throws(DatabaseError) -> BlobReference? {
    guard let fields = content.map,
      fields.keys.allSatisfy(["sha256", "length", "contentType", "path", "key"].contains),
      let digest = fields["sha256"]?.string.flatMap(BlobDigest.init(hex:)),
      let length = fields["length"]?.integer.flatMap(Int.init(exactly:)),
      isText(fields["contentType"]), isText(fields["path"])
    else { return nil }
    let key = fields["key"]?.string.flatMap(BlobKey.init(hex:))
    guard key != nil || fields["key"] == nil else { return nil }
    return try BlobReference(
      digest: digest, length: length, contentType: fields["contentType"]?.string,
      path: fields["path"]?.string, key: key)
  }

  private static func isText(_ value: Value?) -> Bool { value.map { $0.string != nil } ?? true }
}
