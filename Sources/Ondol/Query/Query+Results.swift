// In which order a result comes, which part of it, and which fields. Of several calls that set the
// same thing the last one counts; orders add up.

extension QuerySource {
  /// Sorts by a field, behind the orders already asked for. Values of different types are sorted by
  /// type first: null, booleans, numbers, timestamps, texts, bytes, references, places, arrays,
  /// vectors, maps. Ties are broken by the document's id, in the direction of the last order.
  ///
  /// Documents without the field are left out, unless `missing` says where they stand.
  public func order(
    by field: FieldPath, descending: Bool = false, missing: MissingPlacement = .excluded
  ) -> Query {
    query.changed { (shape) throws(DatabaseError) in
      shape.orders.append(
        SortOrder(field: try QueryField(field), descending: descending, missing: missing))
    }
  }

  /// At most `count` documents, the first of the order.
  public func limit(to count: Int) -> Query { limited(to: count, last: false) }

  /// At most `count` documents, the last of the order, in the order asked for.
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
  /// the times are nil.
  public func select(_ fields: [FieldPath]) -> Query {
    query.changed { (shape) throws(DatabaseError) in
      var selection: [FieldNames] = []
      for field in fields where !field.isDocumentID { selection.append(try field.names()) }
      shape.selection = selection
    }
  }
}

// MARK: - Where a result begins and ends

extension QuerySource {
  /// Begins with documents at these values, one for each of the first orders.
  public func start(at values: [(any FieldContent)?]) -> Query {
    started(isIncluded: true) { () throws(DatabaseError) in try values.position() }
  }

  /// Begins behind documents at these values, one for each of the first orders.
  public func start(after values: [(any FieldContent)?]) -> Query {
    started(isIncluded: false) { () throws(DatabaseError) in try values.position() }
  }

  /// Ends with documents at these values, one for each of the first orders.
  public func end(at values: [(any FieldContent)?]) -> Query {
    ended(isIncluded: true) { () throws(DatabaseError) in try values.position() }
  }

  /// Ends in front of documents at these values, one for each of the first orders.
  public func end(before values: [(any FieldContent)?]) -> Query {
    ended(isIncluded: false) { () throws(DatabaseError) in try values.position() }
  }

  /// Begins with where `document` stands in the order.
  public func start(atDocument document: DocumentSnapshot) -> Query {
    started(isIncluded: true) { () throws(DatabaseError) in try document.position() }
  }

  /// Begins behind where `document` stands in the order.
  public func start(afterDocument document: DocumentSnapshot) -> Query {
    started(isIncluded: false) { () throws(DatabaseError) in try document.position() }
  }

  /// Ends with where `document` stands in the order.
  public func end(atDocument document: DocumentSnapshot) -> Query {
    ended(isIncluded: true) { () throws(DatabaseError) in try document.position() }
  }

  /// Ends in front of where `document` stands in the order.
  public func end(beforeDocument document: DocumentSnapshot) -> Query {
    ended(isIncluded: false) { () throws(DatabaseError) in try document.position() }
  }

  /// Begins at a place that was kept, even when the document it was taken from is gone. Nil begins
  /// at the beginning.
  public func start(at cursor: QueryCursor?) -> Query { started(isIncluded: true, cursor) }

  /// Begins behind a place that was kept. Nil begins at the beginning.
  public func start(after cursor: QueryCursor?) -> Query { started(isIncluded: false, cursor) }

  /// Ends at a place that was kept. Nil ends at the end.
  public func end(at cursor: QueryCursor?) -> Query { ended(isIncluded: true, cursor) }

  /// Ends in front of a place that was kept. Nil ends at the end.
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
    return .document(path: path, fields: contents.fields)
  }
}
