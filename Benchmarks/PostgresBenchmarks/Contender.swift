// Who is measured: a database of documents, open, with the three indexes of the documents' suite:
// `email`; `user` and `date`; `category` and `price`, descending.

import CPeers
import Peers

/// Where an engine keeps what it is given.
struct Place {
  /// A server's address for one of its databases.
  var server: @Sendable (Int) -> String
  var directory: String
}

protocol Contender: AnyObject, Sendable {
  static var name: String { get }
  static var settings: String { get }
  /// Whether several processes can write at once.
  static var isShared: Bool { get }

  /// Opens a database by its number, and makes what is not there.
  static func open(_ database: Int, at place: Place) async throws -> Self

  /// The same for a process that only reads beside one that writes.
  static func openToRead(at place: Place) async throws -> Self

  /// Makes indexes, where they are not there.
  func prepare() async throws

  /// Writes many documents at once.
  func load(_ records: [IdentifiedRecord]) async throws

  /// Brings the data into the shape it is best read in.
  func settle() async throws

  /// Gets documents, one after the other; the fold of their `name` and `user`.
  func get(_ ids: [String]) async throws -> UInt64

  /// Finds twenty documents for a query, the dearest first; the same.
  func page(_ query: PageQuery) async throws -> UInt64

  /// Writes a document so that it survives a power cut.
  func write(_ record: IdentifiedRecord) async throws

  /// Has so many writers write at once, one record after the other, for so long; how many writes
  /// came to their end.
  func write(
    _ records: [IdentifiedRecord], writers: Int, for duration: Duration
  ) async throws -> Int

  /// Writes a number, for those who listen to it.
  func announce(_ number: Int64) async throws

  /// Calls with each number that is announced, once what is there already has been seen, until
  /// the answer is false.
  func listen(ready: () -> Void, _ body: (Int64) -> Bool) async throws

  /// How often the server was asked for rows so far; nil where nobody counts.
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
