// What a query asks, as a plain value without a database: what the planner, the executor and the
// tests' evaluator work on.

/// A field results are sorted by.
struct SortOrder: Sendable, Hashable {
  var field: QueryField
  var descending = false
}

/// The documents of one collection that meet all conditions, in an order.
struct QueryShape: Sendable, Hashable {
  var collection: CollectionPath
  var filters: [FieldFilter] = []
  /// As asked for; see `completeOrders`.
  var orders: [SortOrder] = []
  var limit: Int?

  init(collection: CollectionPath) {
    self.collection = collection
  }

  /// The orders asked for, then the fields with inequalities that they leave out, by name, then the
  /// document's id, so that the order is total. What is appended has the direction of the last
  /// asked for.
  var completeOrders: [SortOrder] {
    var complete: [SortOrder] = []
    for order in orders where !complete.contains(where: { $0.field == order.field }) {
      complete.append(order)
    }
    let descending = orders.last?.descending ?? false
    let inequalities = filters.filter(\.isInequality).map(\.field)
      .filter { $0 != .documentID }
      .sorted { ValueOrder.compare($0.description, $1.description) < 0 }
    for field in inequalities + [.documentID] where !complete.contains(where: { $0.field == field })
    {
      complete.append(SortOrder(field: field, descending: descending))
    }
    // Nothing is left to be ordered behind an id.
    if let index = complete.firstIndex(where: { $0.field == .documentID }) {
      complete.removeSubrange((index + 1)...)
    }
    return complete
  }

  /// Whether a document is in the result, leaving the limit aside: it meets every condition and has
  /// every field the result is ordered by.
  func matches(_ fields: [String: Value], id: String) -> Bool {
    filters.allSatisfy { $0.matches($0.field.value(in: fields, id: id)) }
      && requiredFields.allSatisfy { $0.value(in: fields, id: id) != nil }
  }

  /// The fields a document must have because the result is ordered by them.
  private var requiredFields: [QueryField] {
    orders.map(\.field) + filters.filter(\.isInequality).map(\.field)
  }
}

extension [SortOrder] {
  /// What a document is sorted by.
  func keys(of fields: [String: Value], id: String) -> [Value] {
    map { $0.field.value(in: fields, id: id) ?? .null }
  }

  /// What a document is sorted by.
  func keys(of contents: DocumentSnapshot.Contents, id: String) -> [Value] {
    map { order in
      switch order.field {
      case .documentID: .string(id)
      case .field(let names): contents.value(at: names) ?? .null
      }
    }
  }

  /// Whether the document with the keys `left` comes before that with `right`.
  func areInOrder(_ left: [Value], _ right: [Value]) -> Bool {
    for (index, order) in enumerated() {
      let comparison = ValueOrder.compare(left[index], right[index])
      if comparison != 0 { return order.descending ? comparison > 0 : comparison < 0 }
    }
    return false
  }
}

extension QueryShape: CustomStringConvertible {
  var description: String {
    var text = "\(collection)"
    if !filters.isEmpty {
      text += " where " + filters.map(\.description).joined(separator: " and ")
    }
    if !orders.isEmpty {
      text +=
        " order by "
        + orders.map { "\($0.field)\($0.descending ? " descending" : "")" }.joined(separator: ", ")
    }
    if let limit { text += " limit \(limit)" }
    return text
  }
}
