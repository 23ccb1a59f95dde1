// The aggregations that a client requests, and the names of their results.

#if Server
  import Ondol
  import OndolMapping
  import OndolWire
  import SwiftProtobuf

  struct AggregationMapping: Sendable {
    private struct Wanted: Sendable {
      let alias: String
      let field: AggregateField
      /// The field of a sum or an average; nil for a count.
      var path: FieldPath?
      /// The largest count.
      var upTo: Int64?
    }

    private let wanted: [Wanted]

    /// Throws `.invalidArgument` without any aggregation, for an invalid one, and for a repeated
    /// name.
    init(_ wire: [WireStructuredAggregationQuery.Aggregation]) throws(DatabaseError) {
      var wanted: [Wanted] = []
      for (place, aggregation) in wire.enumerated() {
        let alias = aggregation.alias.isEmpty ? "field_\(place + 1)" : aggregation.alias
        switch aggregation.operator {
        case .count(let count):
          let upTo = count.hasUpTo ? count.upTo.value : nil
          guard upTo ?? 1 > 0 else {
            throw DatabaseError(.invalidArgument, "a count goes up to \(upTo ?? 0)")
          }
          wanted.append(Wanted(alias: alias, field: .count(), upTo: upTo))
        case .sum(let sum):
          let path = FieldPath(sum.field.fieldPath)
          wanted.append(Wanted(alias: alias, field: .sum(path), path: path))
        case .avg(let average):
          let path = FieldPath(average.field.fieldPath)
          wanted.append(Wanted(alias: alias, field: .average(path), path: path))
        case nil: throw DatabaseError(.invalidArgument, "an aggregation has no operator")
        }
      }
      guard !wanted.isEmpty else {
        throw DatabaseError(
          .invalidArgument, "Aggregations can not be empty: the query asks for no number")
      }
      let aliases = wanted.map(\.alias)
      if let twice = aliases.first(where: { alias in aliases.count { $0 == alias } > 1 }) {
        throw DatabaseError(
          .invalidArgument, "Aggregation aliases contain duplicate alias: \(twice)")
      }
      self.wanted = wanted
    }

    var fields: [AggregateField] { wanted.map(\.field) }

    /// The aggregated fields, as paths in text form.
    var fieldNames: [String] { wanted.compactMap(\.path).map(\.description) }

    /// The query whose result is aggregated. Firestore reads sums and averages from an index on
    /// their fields. So documents without one of several fields do not count, and without an order
    /// a limit keeps the least values.
    func source(_ query: Query, isLimited: Bool, hasOrder: Bool) -> Query {
      var fields: [FieldPath] = []
      for path in wanted.compactMap(\.path) where !fields.contains(path) { fields.append(path) }
      guard fields.count > 1 || isLimited && !hasOrder && !fields.isEmpty else { return query }
      return fields.reduce(query) { $0.order(by: $1) }
    }

    /// Returns the numbers by their names. The average of nothing is null.
    func values(of result: AggregateQuerySnapshot) -> [String: Value] {
      var values: [String: Value] = [:]
      for wanted in wanted {
        var value = result.get(wanted.field) ?? .null
        if let upTo = wanted.upTo, let count = value.integer { value = .integer(min(count, upTo)) }
        values[wanted.alias] = value
      }
      return values
    }
  }
#endif
