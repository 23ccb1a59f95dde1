// The results of an executor as the app receives them: decoded documents, and whether the result
// ends there.

internal import OndolEngine

extension Executor {
  /// The result.
  mutating func snapshot(of query: Query) throws(DatabaseError) -> QuerySnapshot {
    try snapshot(of: query, documents(), isLast: isLast)
  }

  /// The result with the given documents, in the order in which they were found.
  mutating func snapshot(
    of query: Query, _ documents: [DocumentSnapshot], isLast: Bool
  ) throws(DatabaseError) -> QuerySnapshot {
    self.isLast = isLast
    return QuerySnapshot(
      query: query, documents: documents, try end(of: documents), unreadable: unreadable)
  }

  /// The end of the result that `documents()` has found.
  ///
  /// - Parameter keepsKeys: whether the documents do not show what they are sorted by.
  func end(
    of documents: [DocumentSnapshot], keepsKeys: Bool = false
  ) throws(DatabaseError) -> ResultEnd {
    var end = ResultEnd(isLast: isLast)
    guard keepsKeys || shape.selection != nil, let path = try documents.last?.reference.place.get(),
      let index = parts.firstIndex(where: {
        $0.naming.pattern == CollectionPattern(path.collection)
      })
    else { return end }
    let part = parts[index]
    // The documents may lack the field, so the last one is looked up again.
    _ = try rows.show(DocumentKey.key(part.naming.keyspace, path), upgraders[index]) {
      (key, row) throws(DatabaseError) in
      end.keys = try part.matcher.sortKeys(of: DocumentShaper.view(row, key, part.naming), key)
    }
    return end
  }

  /// The documents at these places, decoded.
  func shaped(_ ranked: some Sequence<Ranked>) throws(DatabaseError) -> [DocumentSnapshot] {
    let shapers = parts.map { DocumentShaper(database, $0, shape.selection) }
    var documents: [DocumentSnapshot] = []
    documents.reserveCapacity(ranked.underestimatedCount)
    for document in ranked {
      let shaper = shapers[document.source]
      if shape.selection?.isEmpty == true {
        documents.append(try shaper.name(document.key.bytes))
        continue
      }
      let upgrader = upgraders[document.source]
      _ = try rows.show(document.key, upgrader) { (key, row) throws(DatabaseError) in
        documents.append(try shaper.snapshot(shaper.view(row, key), row, key))
      }
    }
    return documents
  }
}
