// The small documents of the documents' suite: the files of a distribution's packages, five short
// fields each. They are counted, grouped and looked through as a whole.

import CPeers

/// One file of a package.
package struct ListedFile: Codable, Sendable {
  package static let sections = 60
  package static let packages = 1_500
  /// Files are deeper than that or not.
  package static let depth = 9
  /// Files with this ending are grouped.
  package static let ending = "so"

  package var path: String
  package var depth: Int
  package var section: String
  package var ending: String
  package var package: String

  /// File `number` of `count`.
  package init(_ number: Int, of count: Int) {
    // No divisor of any count in use, so the paths are in an order of their own.
    path = "usr/share/doc/\(number * 7_919 % count)/copyright"
    depth = number % 13
    section = "section \(number % Self.sections)"
    ending = number % 9 == 0 ? Self.ending : "h\(number % 7)"
    package = "package-\(number % Self.packages)"
  }

  package static func id(_ number: Int) -> String { "file-\(number)" }
}

/// The first files, by path, between two paths.
package struct PathQuery: Sendable {
  package static let length = 20
  package var lower: String
  package var upper: String

  package init(lower: String, upper: String) {
    self.lower = lower
    self.upper = upper
  }
}

/// The fields that an index of the listing is over.
package enum ListingIndex: Sendable, CaseIterable {
  case section
  case sectionAndEnding
}

extension Checksum {
  /// Adds a group and how many are in it.
  @inline(__always)
  package mutating func add(group: String, count: Int) {
    add(group)
    add(UInt64(bitPattern: Int64(count)))
  }
}
