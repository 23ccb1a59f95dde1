// The order of a result, the part of it that is returned, and its fields. Of several calls that set
// the same thing, the last one counts. Orders accumulate.

extension QuerySource {
  /// Sorts by a field, after the orders already added. Values of different types are sorted by type
  /// first: null, booleans, numbers, timestamps, texts, bytes, references, geographical points,
  /// arrays, vectors, maps, blobs. The document's id breaks ties, in the direction of the last
  /// order.
  ///
  /// As in Firestore, documents without the field are left out, unless `missing` says where they
  /// come. An order may be added after a start or an end was set, which Firestore refuses.
  ///
  /// - Parameters:
  ///   - field: a field, a path into maps, or `FieldPath.documentID()`. A repeated field counts
  ///     once. With `"-price"`, the form used for indexes, the call that uses the query throws
  ///     `.invalidArgument`: here `descending` sets the direction.
  ///   - descending: whether the greatest value comes first.
  ///   - missing: where documents without the field come.
  /// - Complexity: none when an index serves the order; otherwise all matching documents are looked
  ///   at, and O(m log m) comparisons sort the m that match.
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

  /// At most `count` documents, the first in the order.
  ///
  /// - Parameter count: 0 or more. With 0 the result is empty, while Firestore refuses 0. With a
  ///   negative number, the call that uses the query throws `.invalidArgument`. The last call of
  ///   `limit` counts.
  public func limit(to count: Int) -> Query { limited(to: count, last: false) }

  /// At most `count` documents, the last in the order, in the requested order. Unlike in Firestore,
  /// the query need not name an order: without one, it is the order of the ids.
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
  /// The query skips them one by one. To page through a long result, begin each page after the
  /// previous one with `start(after:)`.
  ///
  /// - Parameter count: 0 or more. With a negative number, the call that uses the query throws
  ///   `.invalidArgument`.
  /// - Complexity: O(count).
  public func offset(_ count: Int) -> Query {
    query.changed { (shape) throws(DatabaseError) in
      guard count >= 0 else {
        throw DatabaseError(.invalidArgument, "an offset must not be negative, and is \(count)")
      }
      shape.offset = count
    }
  }

  /// Documents with these fields only; paths name fields inside maps. Without any field, only ids
  /// are returned: then an index alone may answer the query, `version` is `.missing` and the times
  /// are nil. Firestore's clients lack this.
  ///
  /// - Parameter fields: fields or paths into maps. A field that a document lacks is missing from
  ///   its result. `FieldPath.documentID()` is allowed among them and adds nothing.
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
  ///   nil means null. For an order by `FieldPath.documentID()` an id, in a collection group a
  ///   path. With other values, the call that uses the query throws `.invalidArgument`.
  public func start(at values: [(any FieldContent)?]) -> Query {
    started(isIncluded: true) { () throws(DatabaseError) in try values.position() }
  }

  /// Begins after documents at these values; see `start(at:)`.
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

  /// Ends before documents at these values; see `start(at:)`.
  ///
  /// - Parameter values: one for each of the first orders.
  public func end(before values: [(any FieldContent)?]) -> Query {
    ended(isIncluded: false) { () throws(DatabaseError) in try values.position() }
  }

  /// Begins with the position of `document` in the order. The position includes the document's id,
  /// so it is exactly one document's. The document need not be stored any more: the position is
  /// that of the fields it was read with.
  ///
  /// - Parameter document: one that exists, of the queried collection, with every field the result
  ///   is ordered by. With another one, the call that uses the query throws `.invalidArgument`.
  public func start(atDocument document: DocumentSnapshot) -> Query {
    started(isIncluded: true) { () throws(DatabaseError) in try document.position() }
  }

  /// Begins after the position of `document` in the order.
  ///
  /// - Parameter document: see `start(atDocument:)`.
  public func start(afterDocument document: DocumentSnapshot) -> Query {
    started(isIncluded: false) { () throws(DatabaseError) in try document.position() }
  }

  /// Ends with the position of `document` in the order.
  ///
  /// - Parameter document: see `start(atDocument:)`.
  public func end(atDocument document: DocumentSnapshot) -> Query {
    ended(isIncluded: true) { () throws(DatabaseError) in try document.position() }
  }

  /// Ends before the position of `document` in the order.
  ///
  /// - Parameter document: see `start(atDocument:)`.
  public func end(beforeDocument document: DocumentSnapshot) -> Query {
    ended(isIncluded: false) { () throws(DatabaseError) in try document.position() }
  }

  /// Begins at a saved cursor, even when the document it was taken from has been deleted.
  ///
  /// - Parameter cursor: a position in a result of the same order. With another order, the call
  ///   that uses the query throws `.invalidArgument`. Nil begins at the beginning.
  public func start(at cursor: QueryCursor?) -> Query { started(isIncluded: true, cursor) }

  /// Begins after a saved cursor, to read the next page.
  ///
  /// - Parameter cursor: see `start(at:)`. Nil begins at the beginning.
  public func start(after cursor: QueryCursor?) -> Query { started(isIncluded: false, cursor) }

  /// Ends at a saved cursor.
  ///
  /// - Parameter cursor: see `start(at:)`. Nil ends at the end.
  public func end(at cursor: QueryCursor?) -> Query { ended(isIncluded: true, cursor) }

  /// Ends before a saved cursor.
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
  /// Throws for a field in the form used for indexes, because a parameter sets its direction here.
  func refuseMinus(in field: FieldPath) throws(DatabaseError) {
    guard let name = field.nameBehindMinus else { return }
    throw DatabaseError(
      .invalidArgument,
      "order(by: \"-\(name)\") would order by a field of that very name; write"
        + " order(by: \"\(name)\", descending: true), or put the name in backticks where it is"
        + " meant", field: "\(field)")
  }
}
