// Cases others published for the system whose events these are: what listeners are told at each
// step. Each case runs at the root of the tree and somewhere inside it. Cases about writes that a
// server has yet to confirm, or take back, have no meaning here, because a commit is final.

import Foundation
import Testing

@testable import Ondol

private let file = URL(filePath: #filePath)
  .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
  .deletingLastPathComponent()
  .appending(path: "../shared/conformance/realtime-database/sync-points.json")

private let isPresent = FileManager.default.fileExists(atPath: file.path)

@Suite struct SyncPointTests {
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

  private func isAboutTheProtocol(_ name: String) -> Bool {
    name.localizedCaseInsensitiveContains("revert")
      || Self.aboutTheProtocol.contains { name.hasPrefix($0) }
  }

  @Test(
    .enabled(if: isPresent, "the conformance data is not beside the project"),
    arguments: ["", "foo/bar/baz"])
  func `Published cases give the events they expect`(base: String) async throws {
    let cases = try JSONDecoder().decode([SyncCase].self, from: Data(contentsOf: file))
    var passed = 0
    let meant = cases.filter { !isAboutTheProtocol($0.name) }
    for one in meant {
      let problem = try await SyncRun(one, base: base).problem()
      passed += problem == nil ? 1 : 0
      if let problem { Issue.record("\(one.name), at /\(base): \(problem)") }
    }
    var others = 0
    for one in cases where isAboutTheProtocol(one.name) {
      if try await SyncRun(one, base: base).problem() == nil { others += 1 }
    }
    print(
      "Conformance, sync points at /\(base): \(passed) of \(meant.count), and \(others) of"
        + " \(cases.count - meant.count) about writes to be confirmed")
    #expect(meant.count > 20)
  }
}

/// One run of one case.
private struct SyncRun {
  private let test: SyncCase
  private let base: String

  init(_ test: SyncCase, base: String) {
    self.test = test
    self.base = base
  }

  /// A query that is listened to, and whether the case has told of its value.
  private struct Listened {
    var query: TreeQuery
    var hasValue = false
  }

  /// What is wrong with the events, or nil.
  func problem() async throws -> String? {
    let database = try await Database.inMemory()
    let root = database.tree.child(base)
    var listened: [Listened] = []
    var group: TreeListener<TreeEvent>?
    for (number, step) in test.steps.enumerated() {
      var events: [TreeEvent] = []
      switch step.type {
      case "listen":
        let query = step.query(below: root)
        events = try await drain(TreeListener(database, [(query, Self.allKinds)]) { $0 })
        if !listened.contains(where: { $0.query == query }) {
          listened.append(Listened(query: query))
        }
      case "unlisten":
        let query = step.query(below: root)
        listened.removeAll { $0.query == query }
      case "set", "serverUpdate", "update", "serverMerge":
        try await write(step, below: root)
        if let group { events = try await drain(group) }
      case "ackUserWrite" where step.revert == true: return "a write is taken back"
      default: break
      }
      if let problem = compare(events, step.events ?? [], root, &listened) {
        return "step \(number): \(problem)"
      }
      if step.type == "listen" || step.type == "unlisten" {
        let members = listened.map { ($0.query, Self.allKinds) }
        group = TreeListener(database, members) { $0 }
        if let group { _ = try await drain(group) }
      }
    }
    try await database.close()
    return nil
  }

  private static let allKinds = Set(TreeEvent.Kind.allCases)

  private func drain(_ listener: TreeListener<TreeEvent>) async throws -> [TreeEvent] {
    var events: [TreeEvent] = []
    while let event = try await listener.poll() { events.append(event) }
    return events
  }

  private func write(_ step: SyncStep, below root: TreeReference) async throws {
    let place = root.child((step.path ?? "").replacing(".priority", with: ""))
    let value = step.data ?? .null
    if step.path?.hasSuffix(".priority") == true {
      try await place.setPriority(value)
    } else if step.type == "set" || step.type == "serverUpdate" {
      try await place.setValue(value)
    } else {
      try await place.updateChildValues(value.map ?? [:])
    }
  }

  // MARK: - Comparing

  private func compare(
    _ events: [TreeEvent], _ expected: [SyncEvent], _ root: TreeReference,
    _ listened: inout [Listened]
  ) -> String? {
    if let problem = disorder(of: events) { return problem }
    var ours = events.map { Told($0, below: base) }
    var missing: [Told] = []
    for event in expected.map(Told.init) {
      if let index = ours.firstIndex(of: event) {
        ours.remove(at: index)
      } else {
        missing.append(event)
      }
      if event.kind == .value {
        for index in listened.indices
        where Told.path(listened[index].query.reference, below: base) == event.path {
          listened[index].hasValue = true
        }
      }
    }
    // A value that the case tells late, because its data was not complete, was told before.
    missing.removeAll { event in
      event.kind == .value
        && listened.contains {
          Told.path($0.query.reference, below: base) == event.path
            && (try? root.database.snapshot().getData($0.query))?.exportedValue == event.data
        }
    }
    ours.removeAll { event in
      event.kind == .value
        && listened.contains {
          Told.path($0.query.reference, below: base) == event.path && !$0.hasValue
        }
    }
    guard missing.isEmpty, ours.isEmpty else {
      return "expected and not told: \(missing); told and not expected: \(ours)"
    }
    return nil
  }

  /// What is wrong with the order of events: the deepest place first, and there one kind after the
  /// other.
  private func disorder(of events: [TreeEvent]) -> String? {
    for (first, second) in zip(events, events.dropFirst()) {
      let (above, below) = (depth(first), depth(second))
      if above < below { return "\(second) after \(first), which is not as deep" }
      if first.query == second.query, second.kind < first.kind {
        return "\(second.kind) after \(first.kind)"
      }
    }
    return nil
  }

  private func depth(_ event: TreeEvent) -> Int {
    event.query.reference.path.split(separator: "/").count
  }
}

/// An event as far as the cases tell it.
private struct Told: Equatable, CustomStringConvertible {
  var kind: TreeEvent.Kind
  var path: String
  var key: String?
  var previous: String?
  var data: Value

  init(_ event: TreeEvent, below base: String) {
    kind = event.kind
    path = Self.path(event.query.reference, below: base)
    key = kind == .value ? nil : event.snapshot.key
    previous = event.previousSiblingKey
    data = event.snapshot.exportedValue
  }

  init(_ event: SyncEvent) {
    kind = event.kind
    path = event.path.split(separator: "/").joined(separator: "/")
    key = kind == .value ? nil : event.name
    previous = kind == .value || kind == .childRemoved ? nil : event.prevName
    data = event.data ?? .null
  }

  static func path(_ reference: TreeReference, below base: String) -> String {
    let path = reference.path.dropFirst(base.count)
    return path.split(separator: "/").joined(separator: "/")
  }

  var description: String {
    "\(kind) at /\(path) \(key ?? "") after \(previous ?? "none"): \(data)"
  }
}

// MARK: - The file

private struct SyncCase: Decodable {
  var name: String
  var steps: [SyncStep]
}

private struct SyncStep: Decodable {
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

private struct SyncEvent: Decodable {
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
private struct JSONValue: Decodable {
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
