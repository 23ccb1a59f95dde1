// A result as a stream. The documents are read in pages, each beginning behind the last document of
// the one before, all from one snapshot: so memory holds a page and not the result, nothing is kept
// open between two documents but the snapshot, and the reader may take its time.

internal import OndolEngine

/// The documents of a query's result one after the other, all as they were when the first was asked
/// for.
///
/// Memory holds some hundred documents at a time, or a thousand small ones. When an index serves
/// the query's order, the first document comes at once; otherwise the places of documents are
/// sorted first, of 262,144 at a time, and each time all are looked at.
public struct QueryDocuments: AsyncSequence, Sendable {
  /// What comes, one by one.
  public typealias Element = DocumentSnapshot
  /// What reading throws.
  public typealias Failure = DatabaseError

  let query: Query

  /// Begins to read.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(QueryPages(query)) }

  /// Reads one document after the other.
  public struct AsyncIterator: AsyncIteratorProtocol {
    private var reading: PagedReading<QueryPages>

    init(_ pages: QueryPages) {
      reading = PagedReading(pages)
    }

    /// Documents met so far that could not be upgraded, in the order of their paths; they are
    /// passed over. See `QuerySnapshot.unreadable`.
    public var unreadable: [DocumentReference] {
      reading.pages.unreadable.sorted { ValueOrder.compare($0.path, $1.path) < 0 }
    }

    /// The next document; nil at the end.
    ///
    /// - Throws: as `getDocuments()`, and `.cancelled` when the task was cancelled.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(DatabaseError) -> DocumentSnapshot? {
      try await reading.next()
    }
  }
}

extension QuerySource {
  /// The documents of the result one after the other, with bounded memory, all as they are when the
  /// first is asked for. With `limit(toLast:)` the limit's documents are in memory at once.
  public var documents: QueryDocuments { QueryDocuments(query: query) }
}

/// A result in pages.
struct QueryPages: PageSource {
  private let query: Query
  private var snapshot: Snapshot?
  /// The moment of the first page.
  private var moment: Int64?
  /// Sorted documents that are not read yet.
  private var ranked: ArraySlice<Ranked> = []
  /// Where the last page ended.
  private var last: [Value?]?
  private var returned = 0
  private var isAtEnd = false
  /// Documents met so far that could not be upgraded.
  private(set) var unreadable: Set<DocumentReference> = []

  init(_ query: Query) {
    self.query = query
  }

  /// - Parameters:
  ///   - snapshot: what is read.
  ///   - moment: decides which documents are over.
  init(_ query: Query, at snapshot: Snapshot, asOf moment: Int64) {
    self.query = query
    self.snapshot = snapshot
    self.moment = moment
  }

  /// Documents of the next page: more when they are small, so that a page is worth its beginning.
  private var pageCount = 256
  private static let pageCounts = 16...1_024
  /// Bytes of documents below which the next page has more, and above which it has fewer.
  private static let pageBytes = 256 << 10...4 << 20
  private static let sortedCount = 1 << 18

  /// The next documents, none at the end, and what is behind them.
  @concurrent
  func next() async throws(DatabaseError) -> (QueryPages, [DocumentSnapshot]) {
    guard !isAtEnd else { return (self, []) }
    let shape = try query.shape.get()
    let snapshot: Snapshot
    if let known = self.snapshot {
      snapshot = known
    } else {
      snapshot = try query.database.engineSnapshot()
    }
    let moment = moment ?? query.database.now()
    return try await query.database.read(snapshot, asOf: moment, canBeCancelled: true) {
      [self] (rows) throws(DatabaseError) in
      var rest = self
      rest.snapshot = snapshot
      rest.moment = moment
      let documents = try rest.read(shape, rows)
      rest.returned += documents.count
      if documents.isEmpty { rest.isAtEnd = true }
      return (rest, documents)
    }
  }

  private mutating func read(
    _ shape: QueryShape, _ rows: Rows
  ) throws(DatabaseError) -> [DocumentSnapshot] {
    var shape = shape
    if shape.isLimitToLast {
      isAtEnd = true
      var executor = try Executor(shape, in: query.database, rows)
      defer { note(executor.unreadable) }
      return try executor.documents()
    }
    let left = (shape.limit ?? .max) - returned - ranked.count
    shape.limit = min(left, pageCount)
    if last != nil { shape.offset = 0 }
    var executor = try Executor(shape, in: query.database, rows, behind: last)
    defer { note(executor.unreadable) }
    let documents = try page(of: &executor, atMost: left)
    adjust(to: documents)
    return documents
  }

  private mutating func page(
    of executor: inout Executor, atMost left: Int
  ) throws(DatabaseError) -> [DocumentSnapshot] {
    if ranked.isEmpty, left > 0 {
      if let documents = try executor.documentsInOrder() {
        last = try executor.end(of: documents, keepsKeys: true).keys ?? last
        return documents
      }
      ranked = try executor.ranked(limit: min(left, Self.sortedCount))[...]
      last = ranked.last?.sortKeys ?? last
    }
    let page = ranked.prefix(pageCount)
    ranked = ranked.dropFirst(page.count)
    return try executor.shaped(page)
  }

  private mutating func adjust(to page: [DocumentSnapshot]) {
    let bytes = page.reduce(0) { $0 + ($1.contents?.storedLength ?? 0) }
    if bytes < Self.pageBytes.lowerBound {
      pageCount = min(2 * pageCount, Self.pageCounts.upperBound)
    } else if bytes > Self.pageBytes.upperBound {
      pageCount = max(pageCount / 2, Self.pageCounts.lowerBound)
    }
  }

  private mutating func note(_ found: [DocumentReference]) {
    if !found.isEmpty { unreadable.formUnion(found) }
  }
}
