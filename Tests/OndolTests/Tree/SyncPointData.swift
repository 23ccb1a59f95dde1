// The form of the published cases: JSON, read as it is. What the cases are run against is in
// SyncPointTests.

import Foundation

@testable import Ondol

/// A case: steps, one after the other.
struct SyncCase: Decodable {
  var name: String
  var steps: [SyncStep]
}

/// A step, and the events that listeners are told at it.
struct SyncStep: Decodable {
  struct Bound: Decodable {
    var index: JSONValue?
    var name: String?
  }

  struct Params: Decodable {
    var orderBy: String?
    var orderByKey: Bool?
    var orderByPriority: Bool?
    var startAt: Bound?
    var endAt: Bound?
    var equalTo: Bound?
    var limitToFirst: Int?
    var limitToLast: Int?
  }

  var type: String
  var path: String?
  var params: Params?
  var content: JSONValue?
  var events: [SyncEvent]?
  var revert: Bool?

  enum CodingKeys: String, CodingKey {
    case type, path, params, events, revert
    case content = "data"
  }

  var data: Value? { content?.value }

  func query(below root: TreeReference) -> TreeQuery {
    var query = root.child(path ?? "").treeQuery
    guard let params else { return query }
    if let child = params.orderBy { query = query.queryOrdered(byChild: child) }
    if params.orderByKey == true { query = query.queryOrderedByKey() }
    if params.orderByPriority == true { query = query.queryOrderedByPriority() }
    if let start = params.startAt {
      query = query.queryStarting(atValue: start.index?.value, childKey: start.name)
    }
    if let end = params.endAt {
      query = query.queryEnding(atValue: end.index?.value, childKey: end.name)
    }
    if let equal = params.equalTo {
      query = query.queryEqual(toValue: equal.index?.value, childKey: equal.name)
    }
    if let limit = params.limitToFirst { query = query.queryLimited(toFirst: limit) }
    if let limit = params.limitToLast { query = query.queryLimited(toLast: limit) }
    return query
  }
}

/// An event as a case tells it.
struct SyncEvent: Decodable {
  var type: String
  var path: String
  var name: String?
  var prevName: String?
  var content: JSONValue?

  enum CodingKeys: String, CodingKey {
    case type, path, name, prevName
    case content = "data"
  }

  var data: Value? { content?.value }

  var kind: TreeEvent.Kind {
    switch type {
    case "child_added": .childAdded
    case "child_removed": .childRemoved
    case "child_changed": .childChanged
    case "child_moved": .childMoved
    default: .value
    }
  }
}

/// Any JSON.
struct JSONValue: Decodable {
  var value: Value

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      value = .null
    } else if let boolean = try? container.decode(Bool.self) {
      value = .boolean(boolean)
    } else if let integer = try? container.decode(Int64.self) {
      value = .integer(integer)
    } else if let double = try? container.decode(Double.self) {
      value = .double(double)
    } else if let text = try? container.decode(String.self) {
      value = .string(text)
    } else if let list = try? container.decode([JSONValue].self) {
      value = .array(list.map(\.value))
    } else {
      value = .map(try container.decode([String: JSONValue].self).mapValues(\.value))
    }
  }
}
