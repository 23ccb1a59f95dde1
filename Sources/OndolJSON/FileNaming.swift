// Names of collections as file names, and back. Letters, digits, "-", "_" and inner dots stay.
// Every other byte becomes "%" and two digits, so that the name is safe for every file system and
// shell.

import Ondol

/// Percent-encodes names.
package enum FileNaming {
  package static func encoded(_ name: String) -> String {
    PercentCoding.encoded(name) { index, byte in index > 0 && byte == UInt8(ascii: ".") }
  }

  /// The decoded name; nil if the text is not an encoded one.
  package static func decoded(_ text: String) -> String? { PercentCoding.decoded(text) }
}
