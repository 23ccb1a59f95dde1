// The least and the greatest value of a field, where the rows of an index have it at their end: the
// first document of the result in the field's order, which is planned like any other query. Used by
// aggregates instead of a walk over all documents.

internal import OndolEngine

extension AggregateQuery {
  /// For each of the fields a query whose first document has the aggregate; nil when one of them is
  /// neither a minimum nor a maximum, compares texts, or is not at the end of anything.
  ///
  /// Only rows that all stand for documents of the result will do: else the first that does could
  /// be far from the end.
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
  /// The same documents, those without the field and those with null in it left out, by the field.
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
