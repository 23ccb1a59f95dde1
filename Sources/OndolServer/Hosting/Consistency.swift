// The moment that a call reads: the present, a time from an earlier answer, or a transaction's
// moment. All reads of the services go through a Reading, so that a transaction records each of
// them.

#if Server
  import Ondol
  import OndolMapping
  import OndolWire

  /// The moment that a client wants to read.
  enum Consistency: Sendable {
    case latest
    case time(Timestamp)
    case transaction(TransactionID)
    /// This read begins a transaction.
    case new(WireTransactionOptions)
  }

  /// The source of a call's reads.
  struct Reading: Sendable {
    let moment: ReadMoment
    let transaction: HeldTransaction?
    /// Whether this call began the transaction. Its answer then has the transaction's id.
    let isNew: Bool

    /// The documents at these paths, in this order.
    func documents(at paths: [DocumentPath]) async throws(DatabaseError) -> [DocumentSnapshot] {
      guard let transaction else { return try await moment.documents(at: paths) }
      let database = moment.database
      return try await transaction.read { (transaction) throws(DatabaseError) in
        var documents: [DocumentSnapshot] = []
        for path in paths {
          documents.append(try transaction.getDocument(database.document(path)))
        }
        return documents
      }
    }

    /// Delivers a query's documents in groups.
    func documents(
      of query: Query, _ body: ([DocumentSnapshot]) async throws -> Void
    ) async throws {
      if let transaction {
        let result = try await transaction.read { (transaction) throws(DatabaseError) in
          try transaction.getDocuments(query)
        }
        return try await body(result.documents)
      }
      var documents = moment.documents(of: query)
      var group: [DocumentSnapshot] = []
      while let document = try await documents.next() {
        group.append(document)
        guard group.count == Self.groupCount else { continue }
        try await body(group)
        group = []
      }
      if !group.isEmpty { try await body(group) }
    }

    /// Delivers the documents of several queries as if of one. Each query is in the order of names.
    func documents(
      ofAll queries: [Query], limit: Int?, _ body: ([DocumentSnapshot]) async throws -> Void
    ) async throws {
      var sources: [DocumentSource] = []
      for query in queries {
        var source = try await source(of: query)
        if try await source.advance() { sources.append(source) }
      }
      var (group, left) = ([DocumentSnapshot](), limit ?? .max)
      while left > 0,
        let first = sources.indices.min(by: { sources[$0].comes(before: sources[$1]) })
      {
        if let document = sources[first].first { group.append(document) }
        left -= 1
        if try await !sources[first].advance() { sources.remove(at: first) }
        guard group.count == Self.groupCount else { continue }
        try await body(group)
        group = []
      }
      if !group.isEmpty { try await body(group) }
    }

    private func source(of query: Query) async throws(DatabaseError) -> DocumentSource {
      guard let transaction else { return DocumentSource(.stream(moment.documents(of: query))) }
      let result = try await transaction.read { (transaction) throws(DatabaseError) in
        try transaction.getDocuments(query)
      }
      return DocumentSource(.list(result.documents[...]))
    }

    /// The number of documents that are sent together.
    private static let groupCount = 32

    func aggregation(
      _ aggregate: AggregateQuery
    ) async throws(DatabaseError) -> AggregateQuerySnapshot {
      guard let transaction else { return try await moment.aggregation(aggregate) }
      return try await transaction.read { (transaction) throws(DatabaseError) in
        try transaction.getAggregation(aggregate)
      }
    }
  }

  /// The documents of one of several queries.
  private struct DocumentSource {
    enum Rest {
      case stream(QueryDocuments.AsyncIterator)
      case list(ArraySlice<DocumentSnapshot>)
    }

    private var rest: Rest
    private(set) var first: DocumentSnapshot?
    private var path: DocumentPath?

    init(_ rest: Rest) {
      self.rest = rest
    }

    /// Moves to the next document; false when there is none.
    mutating func advance() async throws(DatabaseError) -> Bool {
      switch rest {
      case .stream(var stream):
        first = try await stream.next()
        rest = .stream(stream)
      case .list(let list):
        first = list.first
        rest = .list(list.dropFirst())
      }
      path = try first.map { (document) throws(DatabaseError) in
        try DocumentPath(document.reference.path)
      }
      return first != nil
    }

    func comes(before other: DocumentSource) -> Bool {
      guard let path, let other = other.path else { return path != nil }
      return path < other
    }
  }

  extension ServedDatabase {
    /// Returns the source of the reads in a call of `owner`.
    ///
    /// Throws `.invalidArgument` for a transaction that is over or belongs to another owner, and
    /// `.failedPrecondition` for a time that is no longer kept.
    func reading(
      _ consistency: Consistency, of owner: String, _ values: ValueMapping
    ) async throws(DatabaseError) -> Reading {
      switch consistency {
      case .latest: return Reading(moment: try moments.now(), transaction: nil, isNew: false)
      case .time(let time):
        return Reading(moment: try await moments.moment(at: time), transaction: nil, isNew: false)
      case .transaction(let id):
        let transaction = try transactions.transaction(id, of: owner)
        return Reading(moment: transaction.moment, transaction: transaction, isNew: false)
      case .new(let options):
        let transaction = try await begin(options, of: owner, values)
        return Reading(moment: transaction.moment, transaction: transaction, isNew: true)
      }
    }

    /// Begins a transaction.
    func begin(
      _ options: WireTransactionOptions, of owner: String, _ values: ValueMapping
    ) async throws(DatabaseError) -> HeldTransaction {
      switch options.mode {
      case .readOnly(let options):
        var moment = try moments.now()
        if case .readTime(let time)? = options.consistencySelector {
          moment = try await moments.moment(at: values.timestamp(time))
        }
        return try await transactions.begin(for: owner, at: moment, isReadOnly: true)
      case .readWrite(let options):
        let before = options.retryTransaction
        return try await transactions.begin(
          for: owner, after: before.isEmpty ? nil : TransactionID([UInt8](before)))
      case nil: return try await transactions.begin(for: owner)
      }
    }
  }
#endif
