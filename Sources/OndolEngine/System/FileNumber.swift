// Types for the two numbers that every file of a database carries.

/// The number of a file. One counter serves all files of a database, and no number is reused.
package struct FileNumber: RawRepresentable, Sendable, Hashable, Comparable {
  package var rawValue: UInt64

  package init(rawValue: UInt64) {
    self.rawValue = rawValue
  }

  package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

  package static var zero: Self { Self(rawValue: 0) }
  /// The numbers of a new database's first files.
  static var firstManifest: Self { Self(rawValue: 1) }
  static var firstLog: Self { Self(rawValue: 2) }

  package var segmentName: String { "\(rawValue).seg" }
  package var valueFileName: String { "\(rawValue).val" }
  package var packName: String { "\(rawValue).pack" }
  package var contentFileName: String { "\(rawValue).content" }
  package var scratchName: String { "\(rawValue).scratch" }
  var logName: String { "LOG-\(rawValue)" }
  var manifestName: String { "MANIFEST-\(rawValue)" }

  /// The number in `name` if it consists of `prefix`, digits and `suffix` only.
  static func parse(_ name: String, prefix: String = "", suffix: String = "") -> FileNumber? {
    let (bytes, front, back) = (name.utf8, prefix.utf8.count, suffix.utf8.count)
    guard bytes.count > front + back, bytes.starts(with: prefix.utf8),
      bytes.suffix(back).elementsEqual(suffix.utf8)
    else { return nil }
    let digits = bytes.dropFirst(front).dropLast(back)
    guard digits.count == 1 || digits.first != UInt8(ascii: "0") else { return nil }
    var number: UInt64 = 0
    for digit in digits {
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { return nil }
      number = number * 10 + UInt64(digit - UInt8(ascii: "0"))
      guard FileNumber(rawValue: number).isPossible else { return nil }
    }
    return FileNumber(rawValue: number)
  }
}

/// Identifies the database that a file belongs to: 128 random bits, generated at creation.
package struct DatabaseIdentity: Sendable, Hashable {
  package var low: UInt64
  package var high: UInt64

  package init(low: UInt64, high: UInt64) {
    self.low = low
    self.high = high
  }

  /// Its 32 hexadecimal digits.
  package var text: String {
    [high, low].map { word in
      let digits = String(word, radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
  }

  /// Its sixteen bytes.
  package var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.appendLittleEndian(low)
    bytes.appendLittleEndian(high)
    return bytes
  }
}
