// A contender: an open document database with the three indexes of the documents' suite: `email`;
// `user` and `date`; `category` and `price`, descending.

import CPeers
import Peers

/// The place of an engine's data.
struct Place {
  /// Returns a server's address for one of its databases.
  var server: @Sendable (Int) -> String
  var directory: String
}

protocol Contender: AnyObject, Sendable {
  static var name: String { get }
  static var settings: String { get }
  /// Whether several processes can write at the same time.
  static var isShared: Bool { get }

  /// Opens a database by its number, and creates it if it does not exist.
  static func open(_ database: Int, at place: Place) async throws -> Self

  /// Opens it in a process that only reads beside one that writes.
  static func openToRead(at place: Place) async throws -> Self

  /// Creates the indexes that do not exist.
  func prepare() async throws

  /// Writes many documents at once.
  func load(_ records: [IdentifiedRecord]) async throws

  /// Brings the data into the best form for reading.
  func settle() async throws

  /// Gets documents, one after another. Returns the fold of their `name` and `user`.
  func get(_ ids: [String]) async throws -> UInt64

  /// Finds twenty documents for a query, the most expensive first. Returns the same fold.
  func page(_ query: PageQuery) async throws -> UInt64

  /// Writes a document so that it survives a power cut.
  func write(_ record: IdentifiedRecord) async throws

  /// Runs a number of concurrent writers, each one record after another, for a duration. Returns
  /// the number of finished writes.
  func write(
    _ records: [IdentifiedRecord], writers: Int, for duration: Duration
  ) async throws -> Int

  /// Writes a number for the listeners.
  func announce(_ number: Int64) async throws

  /// Calls `body` with each announced number, after the initial state, until it returns false.
  func listen(ready: () -> Void, _ body: (Int64) -> Bool) async throws

  /// The number of row requests to the server so far; nil if the engine does not count them.
  var trips: Int? { get }

  func close() async throws
}

extension Contender {
  static func openToRead(at place: Place) async throws -> Self {
    try await open(0, at: place)
  }

  var trips: Int? { nil }
}

extension Record {
  /// The document with a number, under its id.
  static func identified(_ number: Int, of documents: Int) -> IdentifiedRecord {
    IdentifiedRecord(id: Record.id(number), record: Record(number, of: documents))
  }
}
