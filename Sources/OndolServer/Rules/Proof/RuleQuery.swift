// A query as a proof sees it: where its documents are, and what is true of each of them because the
// query would not answer with it otherwise. A query with OR is proven when each of its alternatives
// is.

#if Server
  /// A list of documents that a client asks for.
  struct RuleQuery: Sendable {
    /// What is true of a field of every document of the answer.
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

      /// The names that lead to the field, as in `["address", "city"]`.
      let field: [String]
      let test: Test
    }

    /// The database's name.
    var database = "(default)"
    /// The document that the collection is of, as in `["rooms", "r1"]`; empty for the root.
    var parent: [String] = []
    /// The collection's id; nil for all collections.
    var collection: String?
    /// Whether it is of all collections with this id, at any depth below the parent.
    var isGroup = false
    /// All of them hold.
    var conditions: [Condition] = []
    var limit: Int64?
    var offset: Int64?
    /// As in `["age DESC", "__name__ ASC"]`.
    var orders: [String] = []
    var auth = RuleValue.null
    var time: RuleTimestamp

    /// The request of each of its documents, as far as they have it in common.
    var request: RuleRequest {
      RuleRequest(
        service: .firestore, method: .list, path: [], auth: auth, time: time,
        resource: .unknown(.resource), query: requestQuery)
    }

    /// `request.query`. Without a limit it has none, and a rule that asks for one fails.
    var requestQuery: RuleValue {
      var fields: [String: RuleValue] = [:]
      if let limit { fields["limit"] = .int(limit) }
      if let offset { fields["offset"] = .int(offset) }
      if !orders.isEmpty { fields["orderBy"] = .string(orders.joined(separator: ", ")) }
      return .map(fields)
    }

    /// The path of each of its documents, as far as they have it in common.
    var documentPath: [RulePathElement] {
      let above = RuleRequest.firestore(parent, database: database).map {
        RulePathElement.known($0)
      }
      let own: [RulePathElement] = [collection.map { .known($0) } ?? .segment, .segment]
      return above + (isGroup || collection == nil ? [.segments] : []) + own
    }
  }

  /// What is known of a list before it is read.
  enum RuleProof: Sendable, Hashable {
    /// Every document of the answer is allowed.
    case proven
    /// It depends on the documents.
    case notProven
    /// No document of the answer is allowed.
    case refuted
  }
#endif
