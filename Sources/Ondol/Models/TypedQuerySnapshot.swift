// The result of a typed query: an untyped result that is decoded on request.

internal import OndolEngine

/// The documents that a typed query found, all as of one moment.
public struct TypedQuerySnapshot<Model: Codable & Sendable>: Sendable {
  /// The same result without the type: ids, versions, changes, a cursor for the next page.
  public let snapshot: QuerySnapshot
  private let decoder: DocumentDecoder

  init(_ snapshot: QuerySnapshot, _ fields: ModelFields<Model>) {
    self.snapshot = snapshot
    decoder = fields.decoder
  }

  /// For each document, in the query's order, its value or why it does not fit.
  ///
  /// - Complexity: O(size of the documents) at each call.
  public var results: [Result<Model, DatabaseError>] {
    snapshot.decode(as: Model.self, decoder: decoder).results
  }

  /// The values that fit the type, in the query's order.
  ///
  /// - Complexity: O(size of the documents) at each call.
  public var documents: [Model] { results.compactMap { try? $0.get() } }

  /// The errors of the documents that do not fit, with the document's path and the field.
  ///
  /// - Complexity: O(size of the documents) at each call.
  public var failures: [DatabaseError] {
    results.compactMap { if case .failure(let failure) = $0 { failure } else { nil } }
  }

  /// What changed since the listener's previous snapshot. See `QuerySnapshot.documentChanges`.
  ///
  /// - Complexity: O(changes), at each call.
  public var changes: [TypedDocumentChange<Model>] {
    snapshot.documentChanges.map { TypedDocumentChange($0, decoder) }
  }

  /// The position of the last document. See `QuerySnapshot.cursor`.
  public var cursor: QueryCursor? { snapshot.cursor }

  /// Whether the limit leaves nothing out. See `QuerySnapshot.isLastPage`.
  public var isLastPage: Bool { snapshot.isLastPage }
}

/// What happened to one document of a typed result.
public struct TypedDocumentChange<Model: Codable & Sendable>: Sendable {
  /// The same change without the type: its kind, its indices, the document's id.
  public let change: DocumentChange
  /// The document, in its last state when it was removed; or why it does not fit the type.
  public let document: Result<Model, DatabaseError>

  init(_ change: DocumentChange, _ decoder: DocumentDecoder) {
    self.change = change
    document = Result { () throws(DatabaseError) in
      try change.document.data(as: Model.self, decoder: decoder)
    }
  }
}

/// The documents of a typed query's result one after the other, all as of the moment when the first
/// was requested.
public struct TypedQueryDocuments<Model: Codable & Sendable>: AsyncSequence, Sendable {
  /// The elements of the sequence.
  public typealias Element = Model
  /// The errors of reading.
  public typealias Failure = DatabaseError

  private let query: TypedQuery<Model>

  init(_ query: TypedQuery<Model>) {
    self.query = query
  }

  /// Begins reading.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(query.query.documents.makeAsyncIterator(), query.fields.decoder)
  }

  /// Reads one document after the other.
  public struct AsyncIterator: AsyncIteratorProtocol {
    private var documents: QueryDocuments.AsyncIterator
    private let decoder: DocumentDecoder

    init(_ documents: QueryDocuments.AsyncIterator, _ decoder: DocumentDecoder) {
      self.documents = documents
      self.decoder = decoder
    }

    /// The next document; nil at the end.
    ///
    /// - Throws: as `QueryDocuments.AsyncIterator.next(isolation:)`, and `.failedPrecondition` for
    ///   a document that does not fit; the next call continues after it.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(DatabaseError) -> Model? {
      guard let document = try await documents.next(isolation: actor) else { return nil }
      return try document.data(as: Model.self, decoder: decoder)
    }
  }
}

// MARK: - Listening

extension Updates {
  /// The same states in another form.
  func map<Other: Sendable>(
    _ transform: @escaping @Sendable (Element) -> Other
  ) -> Updates<Other> {
    let updates = self
    return Updates<Other> { MappedListener(updates.makeListener(), transform) }
  }
}

/// Passes on the elements of another listener in another form.
private final class MappedListener<Source: Sendable, Element: Sendable>: Listener {
  private let listener: any Listener<Source>
  private let transform: @Sendable (Source) -> Element

  init(
    _ listener: any Listener<Source>, _ transform: @escaping @Sendable (Source) -> Element
  ) {
    self.listener = listener
    self.transform = transform
  }

  func next() async throws(DatabaseError) -> Element? {
    try await listener.next().map(transform)
  }

  func poll() async throws(DatabaseError) -> Element? {
    try await listener.poll().map(transform)
  }
}
