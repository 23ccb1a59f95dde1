// Followed queries as rows and as targets of a listen stream. The row has the query as a message of
// the protocol, with names of this device, so it needs no format of its own.
//
//   query       bytes: the query's message
//   collection  text: the path of the collection; or
//   group       text: the id of the collections
//   isWhole     boolean: whether the query has all their documents
//   token       bytes: from where the server continues; missing before the first moment
//   readTime    timestamp: the moment that all documents are as of
//   isComplete  boolean: whether the device has had all documents once
//   count       integer: how many documents it contains
//   isEnding    boolean: whether its documents are being removed

#if Sync
  import Foundation
  import Ondol
  import OndolMapping
  import OndolWire
  import SwiftProtobuf

  /// A query whose documents are kept equal to the server's.
  struct FollowedQuery: Sendable {
    let number: Int64
    /// The query's message, with this device's names.
    let target: WireTarget.QueryTarget
    let source: QueryDescription.Source
    let isWhole: Bool
    var token: [UInt8]?
    var readTime: Timestamp?
    var isComplete = false
    var count: Int64 = 0
    var isEnding = false

    /// Throws the errors of `Query.described()`.
    init(_ query: Query, number: Int64) throws(DatabaseError) {
      let described = try query.described()
      self.number = number
      source = described.source
      var isWhole = described.limit == nil && described.orders.isEmpty
      if case .all(let conditions) = described.condition, !conditions.isEmpty { isWhole = false }
      self.isWhole = isWhole
      target = try QueryWire(OutboxEntry.stored).target(described)
    }

    /// The query's message, with a server's names.
    func target(in database: DatabaseName) -> WireTarget.QueryTarget {
      Self.sent(target, to: database)
    }

    /// A stored message, with a server's names.
    static func sent(
      _ target: WireTarget.QueryTarget, to database: DatabaseName
    ) -> WireTarget.QueryTarget {
      QueryWire.renamed(target, from: OutboxEntry.stored.database, to: database)
    }

    /// Whether the other one asks the same.
    func isSame(as other: FollowedQuery) -> Bool { target == other.target }

    // MARK: - As a row

    private enum Field {
      static let query = "query"
      static let collection = "collection"
      static let group = "group"
      static let isWhole = "isWhole"
      static let token = "token"
      static let readTime = "readTime"
      static let isComplete = "isComplete"
      static let count = "count"
      static let isEnding = "isEnding"
    }

    /// Throws `.dataLoss` for a row that is none.
    init(_ row: DocumentSnapshot) throws(DatabaseError) {
      let fields = row.data()
      guard let number = Int64(row.documentID), case .bytes(let bytes)? = fields[Field.query],
        let target = try? WireTarget.QueryTarget(serializedBytes: bytes)
      else {
        throw DatabaseError(.dataLoss, "the row of a follow is damaged", path: row.reference.path)
      }
      self.number = number
      self.target = target
      if case .string(let id)? = fields[Field.group] {
        source = .group(id)
      } else if case .string(let text)? = fields[Field.collection] {
        source = .collection(try CollectionPath(text))
      } else {
        throw DatabaseError(.dataLoss, "the row of a follow is damaged", path: row.reference.path)
      }
      isWhole = fields[Field.isWhole] == .boolean(true)
      if case .bytes(let token)? = fields[Field.token] { self.token = token }
      if case .timestamp(let time)? = fields[Field.readTime] { readTime = time }
      isComplete = fields[Field.isComplete] == .boolean(true)
      if case .integer(let count)? = fields[Field.count] { self.count = count }
      isEnding = fields[Field.isEnding] == .boolean(true)
    }

    func fields() throws(DatabaseError) -> [String: Value] {
      guard let bytes: [UInt8] = try? target.serializedBytes() else {
        throw DatabaseError(.invalidArgument, "the query cannot be sent to a server")
      }
      var fields: [String: Value] = [
        Field.query: .bytes(bytes), Field.isWhole: .boolean(isWhole),
        Field.isComplete: .boolean(isComplete), Field.count: .integer(count),
      ]
      if isEnding { fields[Field.isEnding] = .boolean(true) }
      switch source {
      case .collection(let path):
        fields[Field.collection] = .string("\(path)")
      case .group(let id): fields[Field.group] = .string(id)
      }
      fields[Field.token] = token.map { .bytes($0) }
      fields[Field.readTime] = readTime.map { .timestamp($0) }
      return fields
    }

    func add(to collections: inout FollowedCollections) {
      switch source {
      case .collection(let path): collections.add(path)
      case .group(let id): collections.add(group: id)
      }
    }
  }

  extension Database {
    /// The row of a follow.
    func followRow(_ number: Int64) -> DocumentReference { syncFollows.document("\(number)") }
  }

  // MARK: - Messages

  /// Makes a query's message.
  private struct QueryWire {
    let values: ValueMapping

    init(_ values: ValueMapping) {
      self.values = values
    }

    func target(_ query: QueryDescription) throws(DatabaseError) -> WireTarget.QueryTarget {
      var target = WireTarget.QueryTarget()
      var selector = WireStructuredQuery.CollectionSelector()
      var collection: CollectionPath?
      switch query.source {
      case .collection(let path):
        collection = path
        selector.collectionID = path.collectionID
        target.parent =
          path.parent.map { values.database.name(of: $0) } ?? values.database.documents
      case .group(let id):
        selector.collectionID = id
        selector.allDescendants = true
        target.parent = values.database.documents
      }
      target.structuredQuery.from = [selector]
      if let filter = try filter(query.condition, in: collection) {
        target.structuredQuery.where = filter
      }
      target.structuredQuery.orderBy = query.orders.map { field, isDescending in
        .with {
          $0.field.fieldPath = Self.name(of: field)
          $0.direction = isDescending ? .descending : .ascending
        }
      }
      if let limit = query.limit {
        target.structuredQuery.limit.value = Int32(clamping: limit)
      }
      return target
    }

    private static func name(of field: QueryDescription.Field) -> String {
      field.map { ValueMapping.path(of: $0) } ?? "__name__"
    }

    /// Nil for a condition that all documents meet.
    private func filter(
      _ condition: QueryDescription.Condition, in collection: CollectionPath?
    ) throws(DatabaseError) -> WireStructuredQuery.Filter? {
      switch condition {
      case .all(let conditions):
        let filters = try self.filters(conditions, in: collection)
        guard filters.count > 1 else { return filters.first }
        return .with {
          $0.compositeFilter.op = .and
          $0.compositeFilter.filters = filters
        }
      case .any(let conditions):
        let filters = try self.filters(conditions, in: collection)
        guard filters.count > 1 else { return filters.first }
        return .with {
          $0.compositeFilter.op = .or
          $0.compositeFilter.filters = filters
        }
      case .field(let field, let comparison):
        return try filter(field, comparison, in: collection)
      }
    }

    private func filters(
      _ conditions: [QueryDescription.Condition], in collection: CollectionPath?
    ) throws(DatabaseError) -> [WireStructuredQuery.Filter] {
      var filters: [WireStructuredQuery.Filter] = []
      for condition in conditions {
        if let filter = try filter(condition, in: collection) { filters.append(filter) }
      }
      return filters
    }

    private func filter(
      _ field: QueryDescription.Field, _ comparison: QueryDescription.Comparison,
      in collection: CollectionPath?
    ) throws(DatabaseError) -> WireStructuredQuery.Filter {
      func one(_ value: Value) throws(DatabaseError) -> WireValue {
        guard field == nil, case .string(let id) = value, let collection else {
          return values.wire(value)
        }
        return values.wire(.reference(try DocumentPath(segments: collection.segments + [id])))
      }
      func list(_ list: [Value]) throws(DatabaseError) -> WireValue {
        var wire: [WireValue] = []
        for value in list { wire.append(try one(value)) }
        return .with { $0.arrayValue.values = wire }
      }
      func filter(
        _ op: WireStructuredQuery.FieldFilter.Operator, _ value: WireValue
      ) -> WireStructuredQuery.Filter {
        .with {
          $0.fieldFilter.field.fieldPath = Self.name(of: field)
          $0.fieldFilter.op = op
          $0.fieldFilter.value = value
        }
      }
      switch comparison {
      case .equal(let value):
        if let unary = unary(field, value, .isNull, .isNan) { return unary }
        return try filter(.equal, one(value))
      case .notEqual(let value):
        if let unary = unary(field, value, .isNotNull, .isNotNan) { return unary }
        return try filter(.notEqual, one(value))
      case .less(let value): return try filter(.lessThan, one(value))
      case .lessOrEqual(let value): return try filter(.lessThanOrEqual, one(value))
      case .greater(let value): return try filter(.greaterThan, one(value))
      case .greaterOrEqual(let value): return try filter(.greaterThanOrEqual, one(value))
      case .arrayContains(let value): return filter(.arrayContains, values.wire(value))
      case .isIn(let operands): return try filter(.in, list(operands))
      case .notIn(let operands): return try filter(.notIn, list(operands))
      case .arrayContainsAny(let operands):
        let wire = WireValue.with { $0.arrayValue.values = operands.map { values.wire($0) } }
        return filter(.arrayContainsAny, wire)
      }
    }

    private func unary(
      _ field: QueryDescription.Field, _ value: Value,
      _ null: WireStructuredQuery.UnaryFilter.Operator,
      _ nan: WireStructuredQuery.UnaryFilter.Operator
    ) -> WireStructuredQuery.Filter? {
      let isNaN = if case .double(let number) = value { number.isNaN } else { false }
      guard value == .null || isNaN else { return nil }
      return .with {
        $0.unaryFilter.field.fieldPath = Self.name(of: field)
        $0.unaryFilter.op = isNaN ? nan : null
      }
    }

    // MARK: - Names

    /// The message with the names of another database.
    static func renamed(
      _ target: WireTarget.QueryTarget, from old: DatabaseName, to new: DatabaseName
    ) -> WireTarget.QueryTarget {
      func name(_ text: String) -> String {
        guard text.utf8.starts(with: "\(old)/".utf8) else { return text }
        return "\(new)" + text.utf8.dropFirst("\(old)".utf8.count).map { $0 }.text
      }
      func value(_ wire: inout WireValue) {
        switch wire.valueType {
        case .referenceValue(let text): wire.referenceValue = name(text)
        case .arrayValue(var list):
          for index in list.values.indices { value(&list.values[index]) }
          wire.arrayValue = list
        case .mapValue(var map):
          for index in map.fields.indices { value(&map.fields[index].value) }
          wire.mapValue = map
        default: break
        }
      }
      func filter(_ wire: inout WireStructuredQuery.Filter) {
        switch wire.filterType {
        case .compositeFilter(var composite):
          for index in composite.filters.indices { filter(&composite.filters[index]) }
          wire.compositeFilter = composite
        case .fieldFilter(var field):
          value(&field.value)
          wire.fieldFilter = field
        case .unaryFilter, nil: break
        }
      }
      var target = target
      target.parent = name(target.parent)
      if target.structuredQuery.hasWhere { filter(&target.structuredQuery.where) }
      return target
    }
  }

  extension [UInt8] {
    fileprivate var text: String { String(decoding: self, as: UTF8.self) }
  }
#endif
