// A result as a stream. The documents are read in pages, each beginning after the last document of
// the previous one, all from one snapshot. So memory holds a page and not the result, only the
// snapshot stays open between two documents, and the reader may take its time.

internal import OndolEngine

/// The documents of a query's result one after the other, all as of the moment when the first was
/// requested.
///
/// Memory holds a few hundred documents at a time, or a thousand small ones. When an index serves
/// the query's order, the first document comes at once. Otherwise the stream sorts the positions of
/// documents first, 262,144 at a time, and each time looks at all documents.
public struct QueryDocuments: AsyncSequence, Sendable {
  /// The elements of the stream.
  public typealias Element = DocumentSnapshot
  /// The errors of reading.
  public typealias Failure = DatabaseError

  let query: Query

  /// Begins reading.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(QueryPages(query)) }

  /// Reads one document after the other.
  public struct AsyncIterator: AsyncIteratorProtocol {
    private var reading: PagedReading<QueryPages>

    init(_ pages: QueryPages) {
      reading = PagedReading(pages)
    }

    /// Documents so far that could not be upgraded, in the order of their paths. The stream skips
    /// them. See `QuerySnapshot.unreadable`.
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
  /// The documents of the result one after the other, with bounded memory, all as of the moment
  /// when the first is requested. With `limit(toLast:)` all documents of the limit are in memory at
  /// once.
  public var documents: QueryDocuments { QueryDocuments(query: query) }
}

/// A result in pages.
struct QueryPages: PageSource {
  private let query: Query
  private var snapshot: Snapshot?
  /// The time of the first page.
  private var moment: Int64?
  /// Sorted documents that are not read yet.
  private var ranked: ArraySlice<Ranked> = []
  /// Where the last page ended.
  private var last: [Value?]?
  private var returned = 0
  private var isAtEnd = false
  /// Documents so far that could not be upgraded.
  private(set) var unreadable: Set<DocumentReference> = []

  init(_ query: Query) {
    self.query = query
  }

  /// - Parameters:
  ///   - snapshot: the snapshot to read.
  ///   - moment: decides which documents have expired.
  init(_ query: Query, at snapshot: Snapshot, asOf moment: Int64) {
    self.query = query
    self.snapshot = snapshot
    self.moment = moment
  }

  /// Documents of the next page: more when they are small, so that starting a page pays off.
  private var pageCount = 256
  private static let pageCounts = 16...1_024
  /// With fewer bytes of documents than this the next page has more documents, and with more bytes
  /// it has fewer.
  private static let pageBytes = 256 << 10...4 << 20
  private static let sortedCount = 1 << 18

  /// The source after the next documents, and these documents, none at the end.
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
