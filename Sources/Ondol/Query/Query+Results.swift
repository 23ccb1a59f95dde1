// In which order a result comes, which part of it, and which fields. Of several calls that set the
// same thing the last one counts; orders add up.

extension QuerySource {
  /// Sorts by a field, behind the orders already asked for. Values of different types are sorted by
  /// type first: null, booleans, numbers, timestamps, texts, bytes, references, places, arrays,
  /// vectors, maps, blobs. Ties are broken by the document's id, in the direction of the last
  /// order.
  ///
  /// As in Firestore, documents without the field are left out, unless `missing` says where they
  /// stand. An order may be added after a place in the result was set, which Firestore refuses.
  ///
  /// - Parameters:
  ///   - field: a field, a path into maps, or `FieldPath.documentID()`. One that is asked for twice
  ///     counts once. `"-price"`, as an index would have it, makes the call throw
  ///     `.invalidArgument` that uses the query: here the direction is told by `descending`.
  ///   - descending: whether the greatest value comes first.
  ///   - missing: where documents without the field stand.
  /// - Complexity: none where an index serves the order; otherwise all documents that match are
  ///   looked at, and O(m log m) comparisons sort the m that do.
  public func order(
    by field: FieldPath, descending: Bool = false, missing: MissingPlacement = .excluded
  ) -> Query {
    query.changed { (shape) throws(DatabaseError) in
      try shape.refuseMinus(in: field)
      shape.orders.append(
        SortOrder(field: try QueryField(field), descending: descending, missing: missing))
    }
  }

  /// At most `count` documents, the first of the order.
  ///
  /// - Parameter count: 0 or more. Firestore refuses 0, which gives nothing here; a negative number
  ///   makes the call throw `.invalidArgument` that uses the query. The last call of `limit`
  ///   counts.
  public func limit(to count: Int) -> Query { limited(to: count, last: false) }

  /// At most `count` documents, the last of the order, in the order asked for. Unlike in Firestore
  /// no order need be named: then it is that of the ids.
  ///
  /// - Parameter count: 0 or more; see `limit(to:)`.
  public func limit(toLast count: Int) -> Query { limited(to: count, last: true) }

  private func limited(to count: Int, last: Bool) -> Query {
    query.changed { (shape) throws(DatabaseError) in
      guard count >= 0 else {
        throw DatabaseError(.invalidArgument, "a limit must not be negative, and is \(count)")
      }
      shape.limit = count
      shape.isLimitToLast = last
    }
  }

  /// Leaves out the first `count` documents; with `limit(toLast:)`, the last ones.
  ///
  /// They are passed over one by one. To page through a long result, begin each page behind the
  /// one before with `start(after:)`.
  ///
  /// - Parameter count: 0 or more; a negative number makes the call throw `.invalidArgument` that
  ///   uses the query.
  /// - Complexity: O(count).
  public func offset(_ count: Int) -> Query {
    query.changed { (shape) throws(DatabaseError) in
      guard count >= 0 else {
        throw DatabaseError(.invalidArgument, "an offset must not be negative, and is \(count)")
      }
      shape.offset = count
    }
  }

  /// Documents with these fields only; what is inside maps is named by paths. Without any field
  /// only ids come back: nothing but an index need be read then, and `version` is `.missing` and
  /// the times are nil. Firestore's clients lack this.
  ///
  /// - Parameter fields: fields or paths into maps. One that a document lacks is missing from what
  ///   comes back. `FieldPath.documentID()` may stand among them and adds nothing.
  public func select(_ fields: [FieldPath]) -> Query {
    query.changed { (shape) throws(DatabaseError) in
      var selection: [FieldNames] = []
      for field in fields where !field.isDocumentID { selection.append(try field.names()) }
      shape.selection = FieldSelection(fields: selection)
    }
  }

  /// Documents with these fields only; see `select(_:)` with a list.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps.
  ///   - others: more of them.
  public func select(_ field: FieldPath, _ others: FieldPath...) -> Query {
    select([field] + others)
  }
}

// MARK: - Where a result begins and ends

extension QuerySource {
  /// Begins with documents at these values.
  ///
  /// - Parameter values: at least one, and at most one for each `order(by:)`, in the same order;
  ///   nil stands for null. For an order by `FieldPath.documentID()` an id, in a collection group a
  ///   path. Otherwise the call throws `.invalidArgument` that uses the query.
  public func start(at values: [(any FieldContent)?]) -> Query {
    started(isIncluded: true) { () throws(DatabaseError) in try values.position() }
  }

  /// Begins behind documents at these values; see `start(at:)`.
  ///
  /// - Parameter values: one for each of the first orders.
  public func start(after values: [(any FieldContent)?]) -> Query {
    started(isIncluded: false) { () throws(DatabaseError) in try values.position() }
  }

  /// Ends with documents at these values; see `start(at:)`.
  ///
  /// - Parameter values: one for each of the first orders.
  public func end(at values: [(any FieldContent)?]) -> Query {
    ended(isIncluded: true) { () throws(DatabaseError) in try values.position() }
  }

  /// Ends in front of documents at these values; see `start(at:)`.
  ///
  /// - Parameter values: one for each of the first orders.
  public func end(before values: [(any FieldContent)?]) -> Query {
    ended(isIncluded: false) { () throws(DatabaseError) in try values.position() }
  }

  /// Begins with where `document` stands in the order, its id included, so the place is one
  /// document exactly. The document need not be stored any more: what counts are the fields it was
  /// read with.
  ///
  /// - Parameter document: one that exists, of the collection asked, with every field the result is
  ///   ordered by. Otherwise the call throws `.invalidArgument` that uses the query.
  public func start(atDocument document: DocumentSnapshot) -> Query {
    started(isIncluded: true) { () throws(DatabaseError) in try document.position() }
  }

  /// Begins behind where `document` stands in the order.
  ///
  /// - Parameter document: see `start(atDocument:)`.
  public func start(afterDocument document: DocumentSnapshot) -> Query {
    started(isIncluded: false) { () throws(DatabaseError) in try document.position() }
  }

  /// Ends with where `document` stands in the order.
  ///
  /// - Parameter document: see `start(atDocument:)`.
  public func end(atDocument document: DocumentSnapshot) -> Query {
    ended(isIncluded: true) { () throws(DatabaseError) in try document.position() }
  }

  /// Ends in front of where `document` stands in the order.
  ///
  /// - Parameter document: see `start(atDocument:)`.
  public func end(beforeDocument document: DocumentSnapshot) -> Query {
    ended(isIncluded: false) { () throws(DatabaseError) in try document.position() }
  }

  /// Begins at a place that was kept, even when the document it was taken from is gone.
  ///
  /// - Parameter cursor: a place in a result of the same order, or the call throws
  ///   `.invalidArgument` that uses the query. Nil begins at the beginning.
  public func start(at cursor: QueryCursor?) -> Query { started(isIncluded: true, cursor) }

  /// Begins behind a place that was kept: how pages follow each other.
  ///
  /// - Parameter cursor: see `start(at:)`. Nil begins at the beginning.
  public func start(after cursor: QueryCursor?) -> Query { started(isIncluded: false, cursor) }

  /// Ends at a place that was kept.
  ///
  /// - Parameter cursor: see `start(at:)`. Nil ends at the end.
  public func end(at cursor: QueryCursor?) -> Query { ended(isIncluded: true, cursor) }

  /// Ends in front of a place that was kept.
  ///
  /// - Parameter cursor: see `start(at:)`. Nil ends at the end.
  public func end(before cursor: QueryCursor?) -> Query { ended(isIncluded: false, cursor) }

  private func started(isIncluded: Bool, _ cursor: QueryCursor?) -> Query {
    query.changed { $0.start = cursor.map { CursorPlace(.saved($0), isIncluded: isIncluded) } }
  }

  private func ended(isIncluded: Bool, _ cursor: QueryCursor?) -> Query {
    query.changed { $0.end = cursor.map { CursorPlace(.saved($0), isIncluded: isIncluded) } }
  }

  private func started(
    isIncluded: Bool, _ position: () throws(DatabaseError) -> CursorPlace.Position
  ) -> Query {
    query.changed { (shape) throws(DatabaseError) in
      shape.start = try shape.place(position(), isIncluded: isIncluded)
    }
  }

  private func ended(
    isIncluded: Bool, _ position: () throws(DatabaseError) -> CursorPlace.Position
  ) -> Query {
    query.changed { (shape) throws(DatabaseError) in
      shape.end = try shape.place(position(), isIncluded: isIncluded)
    }
  }
}

extension CursorPlace {
  fileprivate init(_ position: Position, isIncluded: Bool) {
    self.init(position: position, isIncluded: isIncluded)
  }
}

extension QueryShape {
  fileprivate func place(
    _ position: CursorPlace.Position, isIncluded: Bool
  ) throws(DatabaseError) -> CursorPlace {
    if case .document(let path, _) = position, !contains(path) {
      throw DatabaseError(
        .invalidArgument, "\(path) is not in \(source), where the query asks for documents",
        path: "\(path)")
    }
    return CursorPlace(position, isIncluded: isIncluded)
  }
}

extension [(any FieldContent)?] {
  fileprivate func position() throws(DatabaseError) -> CursorPlace.Position {
    guard !isEmpty else {
      throw DatabaseError(
        .invalidArgument,
        "a result begins or ends at one value or more; pass a value for the"
          + " first order(by:)")
    }
    var values: [Value] = []
    for content in self { values.append(try content?.encodeField().plainValue() ?? .null) }
    return .values(values)
  }
}

extension DocumentSnapshot {
  fileprivate func position() throws(DatabaseError) -> CursorPlace.Position {
    let path = try reference.place.get()
    guard let contents else {
      throw DatabaseError(
        .invalidArgument, "there is no document to begin or end at; pass one that exists",
        path: "\(path)")
    }
    return .document(path: path, fields: .map(contents.fields))
  }
}

extension QueryShape {
  /// Throws for a field as an index would have it, whose direction is told otherwise here.
  func refuseMinus(in field: FieldPath) throws(DatabaseError) {
    guard let name = field.nameBehindMinus else { return }
    throw DatabaseError(
      .invalidArgument,
      "order(by: \"-\(name)\") would order by a field of that very name; write"
        + " order(by: \"\(name)\", descending: true), or put the name in backticks where it is"
        + " meant", field: "\(field)")
  }
}
