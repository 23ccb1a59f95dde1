// What a query asks, as a plain value without a database. Query builds it, and NormalQuery brings
// it into the normal form that the planner, the executor and the matcher work on.

/// Where documents without a field come when a query is ordered by it.
public enum MissingPlacement: Sendable, Hashable {
  /// Not in the result, as in Firestore.
  case excluded
  /// Before all documents that have it, whatever the direction. Firestore has no equivalent.
  case first
  /// After all documents that have it, whatever the direction. Firestore has no equivalent.
  case last

  var opposite: MissingPlacement {
    switch self {
    case .excluded: .excluded
    case .first: .last
    case .last: .first
    }
  }
}

/// A field by which results are sorted.
struct SortOrder: Sendable, Hashable {
  var field: QueryField
  var descending = false
  var missing = MissingPlacement.excluded

  /// The same order, reversed.
  var reversed: SortOrder {
    SortOrder(field: field, descending: !descending, missing: missing.opposite)
  }

  /// How two documents with these values are ordered: negative, zero or positive.
  func compare(_ left: Value?, _ right: Value?) -> Int {
    switch (left, right) {
    case (let left?, let right?):
      let comparison = ValueOrder.compare(left, right)
      return descending ? -comparison : comparison
    case (nil, nil): return 0
    case (nil, _): return missing == .first ? -1 : 1
    case (_, nil): return missing == .first ? 1 : -1
    }
  }
}

/// Where a result begins or ends.
struct CursorPlace: Sendable, Hashable {
  enum Position: Sendable, Hashable {
    /// Values for the first of the orders.
    case values([Value])
    /// The position of a document, whether it is stored or not.
    case document(path: DocumentPath, fields: Value)
    /// A cursor taken from a result.
    case saved(QueryCursor)
  }

  var position: Position
  /// Whether documents at the position itself are in the result.
  var isIncluded: Bool
}

/// The documents of one collection, or of all collections with one id, that meet a condition, in an
/// order, or a part of them.
struct QueryShape: Sendable, Hashable {
  enum Source: Sendable, Hashable {
    case collection(CollectionPath)
    /// All collections with this id, wherever they are.
    case group(ExactText)
  }

  var source: Source
  /// All of them must be met.
  var filters: [FilterTree] = []
  /// The requested orders; see `completeOrders`.
  var orders: [SortOrder] = []
  var start: CursorPlace?
  var end: CursorPlace?
  var limit: Int?
  /// Whether the limit keeps the last documents instead of the first.
  var isLimitToLast = false
  /// Documents left out before the first.
  var offset = 0
  /// The fields that results have; nil for all.
  var selection: FieldSelection?

  init(source: Source) {
    self.source = source
  }

  init(collection: CollectionPath) {
    self.init(source: .collection(collection))
  }

  /// The requested orders, then the fields of inequalities that are not among them, by name, then
  /// the document's id, so that the order is total. Appended orders have the direction of the last
  /// requested one.
  var completeOrders: [SortOrder] { everyOrder.upToName }

  /// The complete orders, including those after the id. They do not change the order, but a start
  /// or an end may name them.
  var everyOrder: [SortOrder] {
    var complete: [SortOrder] = []
    for order in orders { complete.complete(with: order) }
    let descending = orders.last?.descending ?? false
    var fields: [QueryField] = []
    for tree in filters {
      for filter in tree.fieldFilters where filter.isInequality && filter.field != .documentID {
        fields.append(filter.field)
      }
    }
    if fields.count > 1 {
      fields.sort { ValueOrder.compare($0.description, $1.description) < 0 }
    }
    fields.append(.documentID)
    for field in fields { complete.complete(with: SortOrder(field: field, descending: descending)) }
    return complete
  }

  /// The document as the query shows it.
  func shown(_ document: DocumentSnapshot) -> DocumentSnapshot {
    guard let selection, let contents = document.contents else { return document }
    return DocumentSnapshot(
      reference: document.reference,
      contents: .init(
        stamps: selection.isEmpty ? .unread : contents.stamps,
        fields: selection.of { (names, _) in contents.value(at: names) })
    ).marked(as: document)
  }

  /// The name by which this query identifies the document at `path`: its id in a collection, its
  /// path in a group.
  func name(of path: DocumentPath) -> Value {
    switch source {
    case .collection: .string(path.documentID)
    case .group: .reference(path)
    }
  }

  /// Whether the document at `path` belongs to the queried collection or group.
  func contains(_ path: DocumentPath) -> Bool {
    switch source {
    case .collection(let collection): path.collection == collection
    case .group(let id): ExactText(path.collection.collectionID) == id
    }
  }
}

/// The fields that results have.
struct FieldSelection: Sendable, Hashable {
  let fields: [FieldNames]

  /// Whether only ids are requested.
  var isEmpty: Bool { fields.isEmpty }

  /// A document's values in these fields.
  ///
  /// - Parameter value: finds one of the fields, given with its place among them.
  func of<Failure>(
    _ value: (FieldNames, Int) throws(Failure) -> Value?
  ) throws(Failure) -> [String: Value] {
    var found: [String: Value] = [:]
    for (place, names) in fields.enumerated() {
      guard let value = try value(names, place) else { continue }
      // Cannot fail: the document has all of them, so no two are spellings of one name.
      try? assign(value, at: names[...], in: &found)
    }
    return found
  }

  static func == (left: FieldSelection, right: FieldSelection) -> Bool {
    left.fields.elementsEqual(right.fields) { ValueOrder.compareSegments($0, $1) == 0 }
  }

  func hash(into hasher: inout Hasher) {
    for names in fields { hasher.combine(segments: names) }
  }
}

extension [SortOrder] {
  /// The orders up to the document's id: nothing after it affects the order.
  var upToName: [SortOrder] {
    guard let index = firstIndex(where: { $0.field == .documentID }), index + 1 < count else {
      return self
    }
    return Array(self[...index])
  }

  /// The fields without which a document is not in the result.
  var requiredFields: [QueryField] {
    var fields: [QueryField] = []
    for order in self where order.missing == .excluded { fields.append(order.field) }
    return fields
  }

  /// Adds an order unless it has no effect. A comparison of texts is followed by the texts
  /// themselves: among equal keys, bytes decide.
  mutating func complete(with order: SortOrder) {
    // Equal texts have equal keys.
    guard !orders(by: order.field), !orders(by: order.field.plain) else { return }
    append(order)
    guard order.field.comparison != nil else { return }
    var tie = order
    tie.field = order.field.plain
    append(tie)
  }

  /// Whether one of the orders is by the field.
  func orders(by field: QueryField) -> Bool { contains { $0.field == field } }

  /// A document's sort keys; nil for a field that it lacks.
  func keys(of fields: [String: Value], name: Value) -> [Value?] {
    map { $0.field.value(in: fields, name: name) }
  }

  /// The first required field of the orders that the keys have no value for.
  func lacking(in keys: [Value?]) -> QueryField? {
    zip(keys, self).first { key, order in key == nil && order.missing == .excluded }?.1.field
  }

  /// The order of documents with these keys, as far as the shorter list goes.
  func compare(_ left: [Value?], _ right: [Value?]) -> Int {
    for index in 0..<Swift.min(count, left.count, right.count) {
      let order = self[index].compare(left[index], right[index])
      if order != 0 { return order }
    }
    return 0
  }

  /// A document's sort keys; nil for a field that it lacks.
  func keys(of contents: DocumentSnapshot.Contents?, name: Value) -> [Value?] {
    map { order in
      switch order.field {
      case .documentID: name
      case .field(let names): contents?.value(at: names)
      case .compared(let names, let comparison):
        contents?.value(at: names).map(comparison.value)
      }
    }
  }

  /// Whether the document with the keys `left` comes before the one with `right`.
  func areInOrder(_ left: [Value?], _ right: [Value?]) -> Bool { compare(left, right) < 0 }
}

extension QueryShape.Source: CustomStringConvertible {
  var description: String {
    switch self {
    case .collection(let path): "\(path)"
    case .group(let id): "every \(id.text)"
    }
  }
}

extension SortOrder: CustomStringConvertible {
  var description: String {
    let placement =
      switch missing {
      case .excluded: ""
      case .first: " (missing first)"
      case .last: " (missing last)"
      }
    return "\(field)\(descending ? " descending" : "")\(placement)"
  }
}

extension QueryShape: CustomStringConvertible {
  var description: String {
    var text = "\(source)"
    if let selection {
      let names = selection.fields.map(WriteCompiler.describe).joined(separator: ", ")
      text = "\(names.isEmpty ? "ids" : names) of " + text
    }
    if !filters.isEmpty {
      let tree = filters.count == 1 ? filters[0] : FilterTree.all(filters)
      text += " where \(tree)"
    }
    if !orders.isEmpty {
      text += " order by " + orders.map(\.description).joined(separator: ", ")
    }
    if let start { text += " start \(start.isIncluded ? "at" : "after") \(start.position)" }
    if let end { text += " end \(end.isIncluded ? "at" : "before") \(end.position)" }
    if offset > 0 { text += " offset \(offset)" }
    if let limit { text += " limit \(isLimitToLast ? "to last " : "")\(limit)" }
    return text
  }
}

extension CursorPlace.Position: CustomStringConvertible {
  var description: String {
    switch self {
    case .values(let values): values.map(\.description).joined(separator: ", ")
    case .document(let path, _): "\(path)"
    case .saved(let cursor):
      cursor.keys.map { $0.map { "\($0)" } ?? "missing" }.joined(separator: ", ")
    }
  }
}
