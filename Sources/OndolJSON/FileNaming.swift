// Names of collections as names of files, and back. Letters, digits, "-", "_" and inner dots stay;
// every other byte becomes "%" and two digits, so that no file system and no shell minds.

import Ondol

/// Percent-encodes names.
package enum FileNaming {
  package static func encoded(_ name: String) -> String {
    PercentCoding.encoded(name) { index, byte in index > 0 && byte == UInt8(ascii: ".") }
  }

  /// The name that was encoded; nil when none was.
  package static func decoded(_ text: String) -> String? { PercentCoding.decoded(text) }
}
