// Queries as clients express them: the object of the WebSocket protocol, and what rules see as
// `query`. TreeREST+Queries reads those of the REST interface.

#if Server
  import Ondol

  /// An order of a node's children, bounds and a limit.
  struct TreeQueryTerms: Sendable {
    enum Ordering: Sendable, Equatable {
      case priority
      case key
      case value
      /// By the value at a path below each child: keys with `/` between.
      case child(String)
    }

    struct Bound: Sendable {
      /// Null for children without a value.
      var value: Value
      /// Distinguishes children with the same value.
      var key: String?
      var isIncluded: Bool
    }

    var order = Ordering.priority
    var start: Bound?
    var end: Bound?
    var limit: (count: Int, isFromEnd: Bool)?
    /// Whether start and end were one condition.
    var isEqual = false

    /// Whether all children are selected, in the default order.
    var isDefault: Bool { order == .priority && start == nil && end == nil && limit == nil }

    /// The query at a place.
    func query(at reference: TreeReference) -> TreeQuery {
      var query = reference.treeQuery
      switch order {
      case .priority: break
      case .key: query = query.queryOrderedByKey()
      case .value: query = query.queryOrderedByValue()
      case .child(let path): query = query.queryOrdered(byChild: path)
      }
      if let start {
        query =
          start.isIncluded
          ? query.queryStarting(atValue: start.value, childKey: start.key)
          : query.queryStarting(afterValue: start.value, childKey: start.key)
      }
      if let end {
        query =
          end.isIncluded
          ? query.queryEnding(atValue: end.value, childKey: end.key)
          : query.queryEnding(beforeValue: end.value, childKey: end.key)
      }
      guard let limit else { return query }
      return limit.isFromEnd
        ? query.queryLimited(toLast: limit.count) : query.queryLimited(toFirst: limit.count)
    }

    /// The child to declare an index for, if the order needs one and `indexes` lacks it.
    func missingIndex(in indexes: [String]) -> String? {
      let name: String
      switch order {
      case .priority, .key: return nil
      case .value: name = ".value"
      case .child(let path): name = path
      }
      return indexes.contains(name) ? nil : name
    }
  }

  // MARK: - The WebSocket protocol

  extension TreeQueryTerms {
    /// The names before and after all keys.
    private static let (firstName, lastName) = ("[MIN_NAME]", "[MAX_NAME]")

    /// Reads the object of a request; nil is the default query.
    init(_ object: Value?) throws(TreeRefusal) {
      guard let object, !object.isNull else { return }
      guard let fields = object.map else { throw Self.fault("a query is an object") }
      switch fields["i"] {
      case nil: break
      case .string(".priority"): order = .priority
      case .string(".key"): order = .key
      case .string(".value"): order = .value
      case .string(let path): order = .child(try TreePlace(path).text)
      default: throw Self.fault("the index of a query is a text")
      }
      start = try Self.bound(fields["sp"], fields["sn"], fields["sin"], none: Self.firstName)
      end = try Self.bound(fields["ep"], fields["en"], fields["ein"], none: Self.lastName)
      // After the last name of a value: after all children with it. Before the first: likewise.
      if start?.key == Self.lastName {
        start = Bound(value: start?.value ?? .null, isIncluded: false)
      }
      if end?.key == Self.firstName { end = Bound(value: end?.value ?? .null, isIncluded: false) }
      guard let count = fields["l"] else { return }
      guard let number = count.integer, let limit = Int(exactly: number), limit > 0 else {
        throw Self.fault("the limit of a query is a positive integer")
      }
      self.limit = (limit, fields["vf"]?.string == "r" || fields["vf"] == nil && start == nil)
    }

    private static func bound(
      _ value: Value?, _ name: Value?, _ isIncluded: Value?, none: String
    ) throws(TreeRefusal) -> Bound? {
      guard let value else { return nil }
      var bound = Bound(value: value, key: name?.string, isIncluded: isIncluded?.boolean ?? true)
      if bound.key == none { bound.key = nil }
      return bound
    }

    static func fault(_ message: String) -> TreeRefusal { TreeRefusal(.invalid, message) }
  }

  // MARK: - Rules

  extension TreeQueryTerms {
    /// What rules see as `query`.
    var rule: RuleValue {
      var fields: [String: RuleValue] = [
        "orderByKey": .bool(order == .key), "orderByValue": .bool(order == .value),
        "orderByPriority": .bool(order == .priority), "orderByChild": .null,
        "startAt": .null, "endAt": .null, "equalTo": .null, "limitToFirst": .null,
        "limitToLast": .null,
      ]
      if case .child(let path) = order { fields["orderByChild"] = .string(path) }
      if isEqual, let start {
        fields["equalTo"] = RuleValue(leaf: start.value)
      } else {
        if let start { fields["startAt"] = RuleValue(leaf: start.value) }
        if let end { fields["endAt"] = RuleValue(leaf: end.value) }
      }
      if let limit {
        fields[limit.isFromEnd ? "limitToLast" : "limitToFirst"] = .int(Int64(limit.count))
      }
      return .map(fields)
    }
  }

  extension RuleValue {
    /// A leaf of the tree, or a priority.
    init(leaf: Value?) {
      switch leaf {
      case .boolean(let truth)?: self = .bool(truth)
      case .integer(let number)?: self = .int(number)
      case .double(let number)?: self = .float(number)
      case .string(let text)?: self = .string(text)
      default: self = .null
      }
    }
  }
#endif
