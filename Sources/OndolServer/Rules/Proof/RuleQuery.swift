// A query as a proof sees it: the place of its documents, and the conditions that hold for each of
// them, because the query returns no others. A query with OR is proven if each of its alternatives
// is.

#if Server
  /// A list of documents that a client requests.
  struct RuleQuery: Sendable {
    /// A condition that holds for a field of every returned document.
    struct Condition: Sendable {
      enum Test: Sendable {
        case equal(RuleValue)
        case notEqual(RuleValue)
        case less(RuleValue)
        case lessOrEqual(RuleValue)
        case greater(RuleValue)
        case greaterOrEqual(RuleValue)
        case oneOf([RuleValue])
        case noneOf([RuleValue])
        /// An array with the element.
        case contains(RuleValue)
        /// An array with one of the elements.
        case containsAny([RuleValue])
      }

      /// The names on the way to the field, such as `["address", "city"]`.
      let field: [String]
      let test: Test
    }

    /// The database's name.
    var database = "(default)"
    /// The document that contains the collection, such as `["rooms", "r1"]`; empty for the root.
    var parent: [String] = []
    /// The collection's id; nil for all collections.
    var collection: String?
    /// Whether it covers all collections with this id, at any depth below the parent.
    var isGroup = false
    /// The conditions, all of which hold.
    var conditions: [Condition] = []
    var limit: Int64?
    var offset: Int64?
    /// The orders, such as `["age DESC", "__name__ ASC"]`.
    var orders: [String] = []
    var auth = RuleValue.null
    var time: RuleTimestamp

    /// The parts of the request that all of its documents share.
    var request: RuleRequest {
      RuleRequest(
        service: .firestore, method: .list, path: [], auth: auth, time: time,
        resource: .unknown(.resource), query: requestQuery)
    }

    /// `request.query`. Without a limit it has no `limit`, and a rule that reads it fails.
    var requestQuery: RuleValue {
      var fields: [String: RuleValue] = [:]
      if let limit { fields["limit"] = .int(limit) }
      if let offset { fields["offset"] = .int(offset) }
      if !orders.isEmpty { fields["orderBy"] = .string(orders.joined(separator: ", ")) }
      return .map(fields)
    }

    /// The parts of the path that all of its documents share.
    var documentPath: [RulePathElement] {
      let above = RuleRequest.firestore(parent, database: database).map {
        RulePathElement.known($0)
      }
      let own: [RulePathElement] = [collection.map { .known($0) } ?? .segment, .segment]
      return above + (isGroup || collection == nil ? [.segments] : []) + own
    }
  }

  /// The conclusion about a list before it is read.
  enum RuleProof: Sendable, Hashable {
    /// Every returned document is allowed.
    case proven
    /// It depends on the documents.
    case notProven
    /// No returned document is allowed.
    case refuted
  }
#endif
