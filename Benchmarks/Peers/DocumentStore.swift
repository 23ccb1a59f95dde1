// The calls that a measured document database must support. As with the engines, each call is a
// loop inside the adapter over arguments that exist before the clock starts. The loop reads and
// sums two fields of each document that it finds, or decodes the whole document and sums all its
// fields.

package import Foundation

/// A place of documents.
package enum DocumentPlace: String, Sendable, CaseIterable {
  /// All of them, with three indexes: `email`; `user` and `date`; `category` and `price`,
  /// descending.
  case diary
  /// Further documents, without an index.
  case archive
  /// Further documents, which are decoded in one pass.
  case export
}

/// A document and its id.
package struct IdentifiedRecord: Sendable {
  package var id: String
  package var record: Record

  package init(id: String, record: Record) {
    self.id = id
    self.record = record
  }
}

/// A person's week.
package struct WeekQuery: Sendable {
  package var user: Int
  package var dates: [Date]

  package init(user: Int, dates: [Date]) {
    self.user = user
    self.dates = dates
  }
}

/// The twenty most expensive documents of a category below a price.
package struct PageQuery: Sendable {
  package static let length = 20
  package var category: String
  package var price: Double

  package init(category: String, price: Double) {
    self.category = category
    self.price = price
  }
}

/// A database of documents under measurement, open in a directory of its own.
package protocol DocumentStore: AnyObject, Sendable {
  static var name: String { get }
  static var version: String { get }
  /// The important settings in one line, for the reader of the table.
  static var settings: String { get }

  /// Opens the database in the existing directory. Commits survive the kill of the process.
  static func open(_ directory: String, cacheBytes: Int) async throws -> Self

  /// Creates the places and the indexes.
  func prepare() async throws

  /// Writes the documents in one commit.
  func write(_ records: [IdentifiedRecord], to place: DocumentPlace) async throws

  /// Gets each document of the diary in its newest state.
  ///
  /// - Returns: the fold of their `name` and `user`, as in all calls below unless they say
  ///   otherwise.
  func get(_ ids: [String]) async throws -> UInt64

  /// Gets and decodes each document.
  ///
  /// - Returns: the fold of the checksums of the records.
  func decode(_ ids: [String]) async throws -> UInt64

  /// Finds the document with each of the addresses.
  func equality(_ emails: [String]) async throws -> UInt64

  /// Finds seven documents for each query, by date.
  func weeks(_ queries: [WeekQuery]) async throws -> UInt64

  /// Finds twenty documents for each query, the most expensive first.
  func pages(_ queries: [PageQuery]) async throws -> UInt64

  /// Finds the documents of the archive with each of the names, without an index.
  func scan(_ names: [String]) async throws -> UInt64

  /// Decodes everything in `export`.
  ///
  /// - Returns: the sum of the checksums of the records, in any order.
  func decodeAll() async throws -> UInt64

  /// Writes files into the listing, which has no index yet, in one commit.
  func write(_ files: [(id: String, file: ListedFile)]) async throws

  /// Creates an index of the listing.
  func build(_ index: ListingIndex) async throws

  /// Counts the listed files.
  func countAll() async throws -> UInt64

  /// Counts the files deeper than `ListedFile.depth`, without an index.
  func countDeep() async throws -> UInt64

  /// Counts the files of each section, by its index.
  ///
  /// - Returns: the fold of sections and counts, in the order of the sections.
  func groupBySection() async throws -> UInt64

  /// Counts the files of each package with the ending, which no index contains.
  ///
  /// - Returns: the fold of packages and counts, in the order of the packages.
  func groupByPackage() async throws -> UInt64

  /// Finds the first files between the paths, without an index.
  ///
  /// - Returns: the fold of the paths.
  func paths(_ query: PathQuery) async throws -> UInt64

  /// Brings the data into the best form for reading.
  func settle() async throws

  func close() async throws
}

extension Checksum {
  /// Adds the two fields that a loop reads of a document.
  @inline(__always)
  package mutating func add(name: String, user: Int) {
    add(name)
    add(UInt64(bitPattern: Int64(user)))
  }
}
