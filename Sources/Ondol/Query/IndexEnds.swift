// The least and the greatest value of a field, when they are at an end of an index's rows: the
// first document of the result in the field's order, which is planned like any other query.
// Aggregates use it instead of a walk over all documents.

internal import OndolEngine

extension AggregateQuery {
  /// For each of the fields, a query whose first document has the aggregate. Nil when one of them
  /// is neither a minimum nor a maximum, compares texts, or is not at an end of an index's rows.
  ///
  /// Every row must belong to a document of the result. Otherwise the first one that does could be
  /// far from the end.
  func indexEnds(_ executor: Executor) throws(DatabaseError) -> [Executor]? {
    let shape = executor.shape
    guard executor.query.isWhole, shape.start == nil, shape.end == nil, !fields.isEmpty else {
      return nil
    }
    var ends: [Executor] = []
    for field in fields {
      guard field.kind == .minimum || field.kind == .maximum, field.comparison == nil,
        let path = field.field
      else { return nil }
      let ordered = try QueryField(path)
      let end = try Executor(
        shape.ordered(by: ordered, descending: field.kind == .maximum), in: query.database,
        executor.rows)
      guard end.isInOrder, end.parts.allSatisfy(\.plan.isExact) else { return nil }
      ends.append(end)
    }
    return ends
  }
}

extension QueryShape {
  /// The same documents, ordered by the field, without those that lack it or have null in it.
  fileprivate func ordered(by field: QueryField, descending: Bool) -> QueryShape {
    var shape = self
    shape.orders.removeAll { $0.field == field }
    shape.orders.insert(SortOrder(field: field, descending: descending), at: 0)
    if field != .documentID {
      shape.filters.append(.field(FieldFilter(field: field, condition: .notEqual(.null))))
    }
    return shape
  }
}
