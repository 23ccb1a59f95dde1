// The cases that others published of what listeners to a tree are told: where they are, and their
// form, which is JSON, read as it is. Tests run them against the tree and against its server.

import Foundation

package import Ondol

/// A case: steps, one after the other.
package struct SyncCase: Decodable {
  package var name: String
  package var steps: [SyncStep]
}

extension SyncCase {
  /// How names of cases begin that test writes over data which is not known, or not confirmed.
  private static let aboutTheProtocol = [
    "Deep merge on listener with complete children",
    "Descendant set below an empty default listener is ignored",
    "Clear parent shadowing server values", "Clear child shadowing server values",
    "Can set alongside a remote merge", "setPriority on a location with no cache",
    "Edge case in newChildForChange_",
    "Handles a server value moving a child out of a query window",
    "Handle repeated listen with merge as first update", "runs, round2",
    "No double value events for user ack", "Deep set for non-local data",
    "User write with deep user overwrite", "User overwrites inherit priority",
    "User update on user set leaf node", "User updates priority on empty root",
    "User updates priority twice", "Server updates priority after user sets",
    "A server update that leaves user sets unchanged", "User write outside of limit",
    "Deep merge ack (on incomplete data", "Limit query handles deep server merge",
    "Limit query handles deep user merge", "Unrelated", "Deep update raises immediate events only",
    "Can revert a child set and see the underlying data",
  ]

  /// Whether it is about writes that a server has yet to confirm, or takes back.
  package var isAboutTheProtocol: Bool {
    name.localizedCaseInsensitiveContains("revert")
      || Self.aboutTheProtocol.contains { name.hasPrefix($0) }
  }

  private static let file = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()
    .appending(path: "../shared/conformance/realtime-database/sync-points.json")

  /// Whether the data is beside the project.
  package static var arePresent: Bool {
    FileManager.default.fileExists(atPath: file.path(percentEncoded: false))
  }

  package static func all() throws -> [SyncCase] {
    try JSONDecoder().decode([SyncCase].self, from: Data(contentsOf: file))
  }
}

/// A step, and the events that listeners are told at it.
package struct SyncStep: Decodable {
  package struct Bound: Decodable {
    package var index: JSONValue?
    package var name: String?
  }

  package struct Params: Decodable {
    package var orderBy: String?
    package var orderByKey: Bool?
    package var orderByPriority: Bool?
    package var startAt: Bound?
    package var endAt: Bound?
    package var equalTo: Bound?
    package var limitToFirst: Int?
    package var limitToLast: Int?
  }

  package var type: String
  package var path: String?
  package var params: Params?
  package var content: JSONValue?
  package var events: [SyncEvent]?
  package var revert: Bool?

  package enum CodingKeys: String, CodingKey {
    case type, path, params, events, revert
    case content = "data"
  }

  package var data: Value? { content?.value }

  package func query(below root: TreeReference) -> TreeQuery {
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
package struct SyncEvent: Decodable {
  package var type: String
  package var path: String
  package var name: String?
  package var prevName: String?
  package var content: JSONValue?

  package enum CodingKeys: String, CodingKey {
    case type, path, name, prevName
    case content = "data"
  }

  package var data: Value? { content?.value }

  package var kind: TreeEvent.Kind {
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
package struct JSONValue: Decodable {
  package var value: Value

  package init(from decoder: any Decoder) throws {
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
