// Writes values as JSON in one line: field names in the order of their bytes, so that equal
// documents are equal lines. What JSON has no word for is written as an object with one `$` name,
// after MongoDB's Extended JSON; `import` reads plain JSON and takes such an object for the map it
// is.

import Foundation
package import Ondol

/// Writes one value after another into the same buffer.
package struct JSONWriter {
  package private(set) var text = ""

  /// `value` as JSON in one line.
  package static func line(_ value: Value) -> String {
    var writer = JSONWriter()
    writer.write(value)
    return writer.text
  }

  /// A document's fields with its id in front, under the name that no field can have.
  package static func line(id: String, _ fields: [String: Value]) -> String {
    var writer = JSONWriter()
    writer.write(fields, first: (documentIDName, .string(id)))
    return writer.text
  }

  /// How queries, too, call the document's id.
  package static let documentIDName = "__name__"

  package mutating func write(_ value: Value) {
    switch value {
    case .null: text += "null"
    case .boolean(let value): text += value ? "true" : "false"
    case .integer(let value): text += String(value)
    case .double(let value): write(value)
    case .string(let value): write(value)
    case .array(let elements): write(elements)
    case .map(let fields): write(fields)
    case .timestamp(let value): write(["$date": .string(Self.dateText(value))])
    case .bytes(let value):
      write(["$binary": .string(Data(value).base64EncodedString())])
    case .reference(let path): write(["$reference": .string(path.description)])
    case .geoPoint(let point):
      write(["$geoPoint": .array([.double(point.latitude), .double(point.longitude)])])
    case .vector(let vector):
      write(["$vector": .array(vector.components.map { .double($0) })])
    case .blob(let blob): write(["$blob": .map(Self.fields(of: blob))])
    }
  }

  private static func fields(of blob: BlobReference) -> [String: Value] {
    var fields: [String: Value] = [
      "sha256": .string(blob.digest.hex), "length": .integer(Int64(blob.length)),
    ]
    fields["contentType"] = blob.contentType.map { .string($0) }
    fields["path"] = blob.path.map { .string($0) }
    return fields
  }

  private mutating func write(_ value: Double) {
    if value.isFinite {
      // The shortest text that reads back as the same bits; always with "." or "e".
      text += String(value)
    } else {
      let name = value.isNaN ? "NaN" : value < 0 ? "-Infinity" : "Infinity"
      write(["$number": .string(name)])
    }
  }

  private mutating func write(_ elements: [Value]) {
    text += "["
    for (index, element) in elements.enumerated() {
      if index > 0 { text += "," }
      write(element)
    }
    text += "]"
  }

  private mutating func write(_ fields: [String: Value], first: (String, Value)? = nil) {
    text += "{"
    var isFirst = true
    let ordered = fields.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
    for (name, value) in (first.map { [$0] } ?? []) + ordered.map({ ($0.key, $0.value) }) {
      if !isFirst { text += "," }
      isFirst = false
      write(name)
      text += ":"
      write(value)
    }
    text += "}"
  }

  private mutating func write(_ string: String) {
    text += "\""
    for scalar in string.unicodeScalars {
      switch scalar {
      case "\"": text += "\\\""
      case "\\": text += "\\\\"
      case "\n": text += "\\n"
      case "\r": text += "\\r"
      case "\t": text += "\\t"
      case _ where scalar.value < 0x20 || scalar.value == 0x7F:
        let digits = String(scalar.value, radix: 16)
        text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: text.unicodeScalars.append(scalar)
      }
    }
    text += "\""
  }
}

// MARK: - Moments

extension JSONWriter {
  /// "2026-05-01T09:30:00.000000Z", the fraction only where there is one.
  package static func dateText(_ timestamp: Timestamp) -> String {
    let (days, second) = timestamp.seconds.quotientAndRemainder(dividingByFloor: 86_400)
    let (year, month, day) = civilDate(daysSince1970: days)
    let clock = [second / 3_600, second / 60 % 60, second % 60].map { padded($0, 2) }
    let microseconds = Int64(timestamp.nanoseconds / 1_000)
    let fraction = microseconds == 0 ? "" : ".\(padded(microseconds, 6))"
    return "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))"
      + "T\(clock.joined(separator: ":"))\(fraction)Z"
  }

  private static func padded(_ number: Int64, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }

  /// The Gregorian date. Years begin in March here, so that the leap day is the last of its year.
  private static func civilDate(daysSince1970 days: Int64) -> (
    year: Int64, month: Int64, day: Int64
  ) {
    let (era, dayOfEra) = (days + 719_468).quotientAndRemainder(dividingByFloor: 146_097)
    let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let marchMonth = (5 * dayOfYear + 2) / 153
    let day = dayOfYear - (153 * marchMonth + 2) / 5 + 1
    let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
  }
}

extension Int64 {
  /// Division that rounds down, with a remainder that is never negative.
  fileprivate func quotientAndRemainder(dividingByFloor divisor: Int64) -> (Int64, Int64) {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }
}
