// Converts the protocol's queries to the database's. Firestore's rules are the database's own, so
// only words are mapped: operators, orders, cursors and the document's name, which a query of one
// collection compares as an id.

#if Server
  import Ondol
  import OndolMapping
  import OndolWire
  import SwiftProtobuf

  /// A mapped query of the protocol.
  struct MappedQuery: Sendable {
    var query: Query
    /// The fields of the documents in the answer; nil for all.
    var mask: FieldMask?
    /// Whether the query reads all collections at once, whatever their ids. Then `query` is the
    /// part for one collection id.
    var isOfAllCollections = false
    /// Whether the query reads collections below several documents.
    var isOfGroup = false
  }

  /// Maps the queries below one parent.
  struct QueryMapping: Sendable {
    let values: ValueMapping
    let database: Database
    let parent: DocumentPath?
    /// Whether the query reads the documents' other fields as well: somebody must see them before
    /// the mask hides them.
    var readsWhole = false

    /// The query.
    ///
    /// Throws `.invalidArgument` for an invalid query, and `.unimplemented` for nearest neighbours.
    ///
    /// - Parameter id: the collection id of this part, if the query reads all collections.
    func query(
      _ wire: WireStructuredQuery, in id: String? = nil
    ) throws(DatabaseError) -> MappedQuery {
      guard !wire.hasFindNearest else {
        throw DatabaseError(.unimplemented, "this server does not find nearest neighbours")
      }
      guard wire.from.count == 1 else {
        throw DatabaseError(.invalidArgument, "a query is of one collection")
      }
      var selector = wire.from[0]
      let isOfAll = selector.collectionID.isEmpty && selector.allDescendants
      if isOfAll {
        try refuseOrders(of: wire)
        selector.collectionID = id ?? "any"
      }
      var query = try source(selector)
      let naming = naming(selector)
      if wire.hasWhere { query = query.whereFilter(try naming.filter(wire.where)) }
      for order in wire.orderBy {
        query = query.order(
          by: FieldPath(order.field.fieldPath), descending: order.direction == .descending)
      }
      if wire.hasStartAt {
        let place = try naming.values(of: wire.startAt, wire.orderBy)
        query = wire.startAt.before ? query.start(at: place) : query.start(after: place)
      }
      if wire.hasEndAt {
        let place = try naming.values(of: wire.endAt, wire.orderBy)
        query = wire.endAt.before ? query.end(before: place) : query.end(at: place)
      }
      if wire.hasLimit { query = query.limit(to: Int(wire.limit.value)) }
      if wire.offset != 0 { query = query.offset(Int(wire.offset)) }
      var mapped = try project(query, wire)
      mapped.isOfAllCollections = isOfAll
      mapped.isOfGroup = selector.allDescendants
      return mapped
    }

    /// All collections share only their documents' names.
    private func refuseOrders(of wire: WireStructuredQuery) throws(DatabaseError) {
      let orders = wire.orderBy.allSatisfy {
        FieldPath($0.field.fieldPath).isDocumentID && $0.direction != .descending
      }
      guard orders, wire.offset == 0 else {
        throw DatabaseError(
          .unimplemented, "a query of all collections is in the order of names, without an offset")
      }
    }

    /// Keeps only the requested fields. A query for names alone still returns the documents' times,
    /// which the database omits when it reads no document. So the mask, not the query, removes its
    /// fields.
    private func project(
      _ query: Query, _ wire: WireStructuredQuery
    ) throws(DatabaseError) -> MappedQuery {
      guard wire.hasSelect, !wire.select.fields.isEmpty else { return MappedQuery(query: query) }
      let mask = try FieldMask(.with { $0.fieldPaths = wire.select.fields.map(\.fieldPath) })
      guard !mask.paths.isEmpty, !readsWhole else { return MappedQuery(query: query, mask: mask) }
      return MappedQuery(query: query.select(mask.paths.map { FieldPath($0) }), mask: mask)
    }

    private func source(
      _ selector: WireStructuredQuery.CollectionSelector
    ) throws(DatabaseError) -> Query {
      guard selector.allDescendants else {
        return database.collection(try parent.collection(selector.collectionID)).query
      }
      let group = database.collectionGroup(selector.collectionID)
      guard let parent else { return group.query }
      // Everything below the parent and nothing else: its path comes first, and all paths that
      // begin with it precede the next id's.
      let end = DocumentPath(
        unchecked: parent.segments.dropLast() + [parent.documentID + "\u{0}"])
      return group.whereField(FieldPath.documentID(), isGreaterThan: Value.reference(parent))
        .whereField(FieldPath.documentID(), isLessThan: Value.reference(end))
    }

    private func naming(_ selector: WireStructuredQuery.CollectionSelector) -> QueryNaming {
      QueryNaming(
        values: values,
        collection: selector.allDescendants ? nil : try? parent.collection(selector.collectionID))
    }
  }

  /// The conditions and cursors of a query, and its names for documents.
  private struct QueryNaming {
    let values: ValueMapping
    /// The queried collection; nil for all with one id.
    let collection: CollectionPath?

    // MARK: - Conditions

    func filter(_ wire: WireStructuredQuery.Filter) throws(DatabaseError) -> Filter {
      try filter(wire, depth: 0)
    }

    /// The deepest nesting of filters in a query.
    private static let mostNesting = 100

    private func filter(
      _ wire: WireStructuredQuery.Filter, depth: Int
    ) throws(DatabaseError) -> Filter {
      guard depth <= Self.mostNesting else {
        throw DatabaseError(
          .invalidArgument, "filters are nested more than \(Self.mostNesting) deep")
      }
      switch wire.filterType {
      case .compositeFilter(let composite):
        var parts: [Filter] = []
        for part in composite.filters { parts.append(try filter(part, depth: depth + 1)) }
        switch composite.op {
        case .and: return .andFilter(parts)
        case .or: return .orFilter(parts)
        default:
          throw DatabaseError(.invalidArgument, "a composite filter is either AND or OR")
        }
      case .fieldFilter(let field): return try filter(field)
      case .unaryFilter(let unary): return try filter(unary)
      case nil: throw DatabaseError(.invalidArgument, "a filter is empty")
      }
    }

    private func filter(
      _ wire: WireStructuredQuery.UnaryFilter
    ) throws(DatabaseError) -> Filter {
      let field = FieldPath(wire.field.fieldPath)
      return switch wire.op {
      case .isNan: .whereField(field, isEqualTo: Double.nan)
      case .isNotNan: .whereField(field, isNotEqualTo: Double.nan)
      case .isNull: .whereField(field, isEqualTo: nil)
      case .isNotNull: .whereField(field, isNotEqualTo: nil)
      default: throw DatabaseError(.invalidArgument, "a unary filter has no operator")
      }
    }

    private func filter(
      _ wire: WireStructuredQuery.FieldFilter
    ) throws(DatabaseError) -> Filter {
      let field = FieldPath(wire.field.fieldPath)
      switch wire.op {
      case .in, .notIn, .arrayContainsAny: return try listFilter(wire, field)
      default: break
      }
      let operand = try operand(wire.value, of: field)
      return switch wire.op {
      case .lessThan: .whereField(field, isLessThan: operand)
      case .lessThanOrEqual: .whereField(field, isLessThanOrEqualTo: operand)
      case .greaterThan: .whereField(field, isGreaterThan: operand)
      case .greaterThanOrEqual: .whereField(field, isGreaterThanOrEqualTo: operand)
      case .equal: .whereField(field, isEqualTo: operand)
      case .notEqual: .whereField(field, isNotEqualTo: operand)
      case .arrayContains: .whereField(field, arrayContains: operand)
      default:
        throw DatabaseError(
          .invalidArgument, "the filter has no operator", field: wire.field.fieldPath)
      }
    }

    private func listFilter(
      _ wire: WireStructuredQuery.FieldFilter, _ field: FieldPath
    ) throws(DatabaseError) -> Filter {
      guard case .arrayValue(let list) = wire.value.valueType else {
        throw DatabaseError(
          .invalidArgument, "the filter's operand is an array", field: wire.field.fieldPath)
      }
      var operands: [Value] = []
      for element in list.values { operands.append(try operand(element, of: field)) }
      switch wire.op {
      case .notIn: return .whereField(field, notIn: operands)
      case .arrayContainsAny: return .whereField(field, arrayContainsAny: operands)
      default:
        // For Firestore's clients, null and NaN match nothing here.
        return .whereField(field, in: operands.filter { !$0.isNull && $0 != .double(.nan) })
      }
    }

    // MARK: - Places

    /// The values of a cursor.
    func values(
      of cursor: WireCursor, _ orders: [WireStructuredQuery.Order]
    ) throws(DatabaseError) -> [(any FieldContent)?] {
      guard cursor.values.count <= orders.count else {
        throw DatabaseError(
          .invalidArgument,
          "a cursor has \(cursor.values.count) values, and the query \(orders.count) orders")
      }
      var place: [(any FieldContent)?] = []
      for (value, order) in zip(cursor.values, orders) {
        place.append(try operand(value, of: FieldPath(order.field.fieldPath)))
      }
      return place
    }

    /// A value to compare a field with. A query of a collection compares a document by its id.
    private func operand(
      _ wire: WireValue, of field: FieldPath
    ) throws(DatabaseError) -> Value {
      guard field.isDocumentID else { return try values.value(wire) }
      guard case .referenceValue(let name)? = wire.valueType else {
        throw DatabaseError(.invalidArgument, "__name__ is compared with a document")
      }
      let path = try values.database.bound(of: name)
      guard let collection else { return .reference(path) }
      guard path.collection == collection else {
        throw DatabaseError(
          .invalidArgument, "\(path) is not in the collection \(collection), which is asked")
      }
      return .string(path.documentID)
    }
  }
#endif
