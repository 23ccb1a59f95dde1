// The small documents of the documents' suite: the files of a distribution's packages, with five
// short fields each. The suite counts and groups them, and reads all of them.

import CPeers

/// One file of a package.
package struct ListedFile: Codable, Sendable {
  package static let sections = 60
  package static let packages = 1_500
  /// The depth that some files exceed.
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
    // The factor divides no count in use, so the paths have an order of their own.
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

/// The fields of an index of the listing.
package enum ListingIndex: Sendable, CaseIterable {
  case section
  case sectionAndEnding
}

extension Checksum {
  /// Adds a group and its count.
  @inline(__always)
  package mutating func add(group: String, count: Int) {
    add(group)
    add(UInt64(bitPattern: Int64(count)))
  }
}
