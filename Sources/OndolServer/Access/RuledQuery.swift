// What a client's query says of every document that it can find, for a proof that the rules allow
// all of them. A query with OR finds what any of its alternatives finds, so each of them needs a
// proof.

#if Server
  import Ondol
  import OndolMapping
  import OndolWire
  import SwiftProtobuf

  /// A query as rules are asked about it.
  struct RuledQuery: Sendable {
    /// All documents of the answer are of one of these. Nil when there are too many to try.
    let alternatives: [RuleQuery]?
    /// `request.query`.
    let parameters: RuleValue
    /// Whether the query reaches documents below more than one collection of the root.
    let isGroup: Bool

    /// The most alternatives of a query that are tried.
    private static let mostAlternatives = 64

    /// - Throws: `.invalidArgument` when the query's values are wrong.
    init(
      _ wire: WireStructuredQuery, below parent: DocumentPath?, _ values: ValueMapping,
      _ access: RuledAccess, at time: RuleTimestamp
    ) throws(DatabaseError) {
      let selector = wire.from.first
      var query = RuleQuery(
        database: access.database, parent: parent?.segments ?? [],
        collection: selector?.collectionID.isEmpty == false ? selector?.collectionID : nil,
        isGroup: selector?.allDescendants ?? false, auth: access.auth, time: time)
      query.limit = wire.hasLimit ? Int64(wire.limit.value) : nil
      query.offset = wire.offset == 0 ? nil : Int64(wire.offset)
      query.orders = wire.orderBy.map {
        "\($0.field.fieldPath) \($0.direction == .descending ? "DESC" : "ASC")"
      }
      isGroup = query.isGroup
      parameters = query.requestQuery
      let mapping = ConditionMapping(values: values, database: access.database)
      let conditions =
        wire.hasWhere
        ? try mapping.alternatives(of: wire.where, atMost: Self.mostAlternatives) : [[]]
      alternatives = conditions?.map { conditions in
        var alternative = query
        alternative.conditions = conditions
        return alternative
      }
    }

    /// Whether the rules allow every document that the query can find.
    ///
    /// - Throws: the errors of reading the documents that the rules ask for.
    func proof(
      _ access: RuledAccess, _ documents: RuleReads
    ) throws(DatabaseError) -> RuleProof {
      guard let rules = access.rules else { return .refuted }
      guard let alternatives else { return .notProven }
      var result = RuleProof.proven
      for query in alternatives {
        guard !query.isClosed else { return .refuted }
        let proof = rules.proof(of: query, documents: documents, digests: .usual)
        if let failure = documents.failure { throw failure }
        switch proof {
        case .proven: continue
        case .notProven: result = .notProven
        case .refuted: return .refuted
        }
      }
      return result
    }
  }

  extension RuleQuery {
    /// Whether it can only be meant for what rules cannot open.
    fileprivate var isClosed: Bool { RuledAccess.isClosed(root: parent.first ?? collection) }
  }

  /// The conditions of a query's filters.
  private struct ConditionMapping {
    typealias Condition = RuleQuery.Condition

    let values: ValueMapping
    let database: String

    /// Lists of conditions, of which at least one holds whole; nil when there are more than `most`.
    func alternatives(
      of filter: WireStructuredQuery.Filter, atMost most: Int, depth: Int = 0
    ) throws(DatabaseError) -> [[Condition]]? {
      guard depth <= 100 else { return nil }
      switch filter.filterType {
      case .compositeFilter(let composite):
        var all: [[Condition]] = composite.op == .or ? [] : [[]]
        for part in composite.filters {
          guard let parts = try alternatives(of: part, atMost: most, depth: depth + 1) else {
            return nil
          }
          if composite.op == .or {
            all += parts
          } else {
            guard all.count * parts.count <= most else { return nil }
            all = all.flatMap { one in parts.map { one + $0 } }
          }
          guard all.count <= most else { return nil }
        }
        return all
      case .fieldFilter(let field): return [try condition(field).map { [$0] } ?? []]
      case .unaryFilter(let unary): return [try condition(unary).map { [$0] } ?? []]
      case nil: return [[]]
      }
    }

    private func condition(
      _ filter: WireStructuredQuery.FieldFilter
    ) throws(DatabaseError) -> Condition? {
      let field = FieldPath(filter.field.fieldPath)
      guard !field.isDocumentID else { return nil }
      let operand = RuleValue(try values.value(filter.value), in: database)
      let test: Condition.Test
      switch (filter.op, operand) {
      case (.equal, _): test = .equal(operand)
      case (.notEqual, _): test = .notEqual(operand)
      case (.lessThan, _): test = .less(operand)
      case (.lessThanOrEqual, _): test = .lessOrEqual(operand)
      case (.greaterThan, _): test = .greater(operand)
      case (.greaterThanOrEqual, _): test = .greaterOrEqual(operand)
      case (.arrayContains, _): test = .contains(operand)
      case (.in, .list(let operands)): test = .oneOf(operands)
      case (.notIn, .list(let operands)): test = .noneOf(operands)
      case (.arrayContainsAny, .list(let operands)): test = .containsAny(operands)
      default: return nil
      }
      return Condition(field: try field.names(), test: test)
    }

    private func condition(
      _ filter: WireStructuredQuery.UnaryFilter
    ) throws(DatabaseError) -> Condition? {
      let names = try FieldPath(filter.field.fieldPath).names()
      return switch filter.op {
      case .isNull: Condition(field: names, test: .equal(.null))
      case .isNotNull: Condition(field: names, test: .notEqual(.null))
      default: nil
      }
    }
  }
#endif
