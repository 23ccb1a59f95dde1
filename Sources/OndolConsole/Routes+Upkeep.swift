// Indexes, the realtime tree and changes.

import Ondol
import OndolJSON

extension ConsoleHandler {
  // MARK: - Indexes

  func createIndex(_ body: [UInt8]) async throws -> JSON {
    let members = try Members(
      body,
      known: ["collection", "group", "fields", "unique", "nullsDistinct", "elements", "where"])
    guard var fields = try members.texts("fields"), !fields.isEmpty else {
      throw ConsoleFailure.wrong("\"fields\" is missing")
    }
    let condition = try members.condition("where")?.filter
    let isUnique = try members.boolean("unique") ?? false
    let nullsDistinct = try members.boolean("nullsDistinct")
    guard nullsDistinct == nil || isUnique else {
      throw ConsoleFailure.wrong("nulls can be distinct only in a unique index")
    }
    if try members.boolean("elements") ?? false, !fields[0].hasSuffix("[]") { fields[0] += "[]" }
    let database = database
    let collection = try members.text("collection")
    let group = try members.text("group")
    guard (collection == nil) != (group == nil) else {
      throw ConsoleFailure.wrong("name either a collection or a group")
    }
    guard group == nil || !isUnique else {
      throw ConsoleFailure.wrong("an index of a group cannot be unique")
    }
    let place = collection ?? group ?? ""
    if let collection {
      let known = try await database.collection(collection).listIndexes()
      if condition == nil,
        known.contains(where: {
          $0.fields == fields && $0.isUnique == isUnique
            && $0.nullsDistinct == (isUnique && nullsDistinct ?? true)
        })
      {
        throw ConsoleFailure(409, "alreadyExists", "this index exists already")
      }
    }
    let title = "Create index \(fields.joined(separator: ", ")) of \(place)"
    let wanted = fields
    return try tasks.start("createIndex", title, unit: "documents") { progress in
      let show = { @Sendable (now: IndexProgress) in progress(now.documents, now.total) }
      if let group {
        try await database.collectionGroup(group).createIndex(
          on: wanted, where: condition, progress: show)
      } else {
        try await database.collection(place).createIndex(
          on: wanted, unique: isUnique, nullsDistinct: nullsDistinct ?? true, where: condition,
          progress: show)
      }
      return TaskOutcome()
    }
  }

  func dropIndex(_ items: QueryItems) async throws -> JSON {
    let name = try items.text("name")
    let (collection, group) = (items["collection"], items["group"])
    let declared = try await database.declarations().indexes
    guard
      declared.contains(where: { index in
        index.information.name == name && index.collection == (group ?? collection)
          && index.isOfGroup == (group != nil)
      })
    else { throw ConsoleFailure(404, "notFound", "there is no such index") }
    if let group {
      try await database.collectionGroup(group).dropIndex(named: name)
    } else {
      try await database.collection(Self.path(ofPattern: collection ?? "")).dropIndex(named: name)
    }
    log("dropped index \(name) of \(group ?? collection ?? "")")
    monitor.poke()
    return [:]
  }

  /// One of the pattern's collections. It does not matter which, because they have the same
  /// indexes.
  static func path(ofPattern pattern: String) -> String {
    pattern.split(separator: "/").joined(separator: "/any/")
  }

  // MARK: - Tree

  private func node(_ path: String) -> TreeReference {
    let path = path.split(separator: "/").joined(separator: "/")
    return path.isEmpty ? database.tree : database.tree.child(path)
  }

  func tree(_ path: String, limit: Int, after: String?) async throws -> JSON {
    let (node, children, isMore) = try await node(path)
      .outline(after: after, atMost: limit, counting: Self.countedChildren)
    return [
      "path": .text(path), "exists": .boolean(node.exists), "node": Self.outline(node),
      "children": .list(children.map { Self.outline($0) }), "more": .boolean(isMore),
    ]
  }

  /// The largest number of counted children for each shown node.
  private static let countedChildren = 100

  private static func outline(_ node: TreeOutline) -> JSON {
    [
      "key": .text(node.key), "value": node.leaf.map { .value($0) },
      "children": node.childCount > 0 ? .number(node.childCount) : nil,
      "uncounted": node.hasMoreChildren ? true : nil,
      "priority": node.priority.map { .value($0) },
    ]
  }

  private static func node(_ node: TreeSnapshot) -> JSON {
    [
      "key": .text(node.key ?? ""),
      "value": node.exists && !node.hasChildren ? .value(node.value) : nil,
      "children": node.hasChildren ? .number(node.childrenCount) : nil,
      "priority": node.priority.map { .value($0) },
    ]
  }

  func treeValue(_ path: String) async throws -> JSON {
    let value = try await node(path).getData().exportedValue
    let bytes = JSON.value(value).bytes
    guard bytes.count <= AskedQuery.largestAnswer else {
      throw ConsoleFailure(413, "resourceExhausted", "the value is longer than 8 MiB")
    }
    return ["value": .written(bytes)]
  }

  func changeTree(_ method: String, _ path: String, _ body: [UInt8]) async throws -> JSON {
    let reference = node(path)
    let version: Version
    switch method {
    case "DELETE": version = try await reference.removeValue().version
    case "PATCH":
      guard let values = try Members(body, known: ["values"]).fields("values") else {
        throw ConsoleFailure.wrong("\"values\" is missing")
      }
      version = try await reference.updateChildValues(values).version
    default:
      let members = try Members(body, known: ["value", "priority", "expected"])
      guard let value = members.value("value") else {
        throw ConsoleFailure.wrong("\"value\" is missing")
      }
      let priority = members.value("priority")
      if let expected = members.value("expected") {
        try await database.runTransaction { transaction in
          let found = try transaction.getData(reference)
          guard !found.hasChildren, found.value == expected else {
            var failure = ConsoleFailure(409, "aborted", "the node has changed")
            failure.path = path
            failure.current = Self.node(found)
            throw failure
          }
          try transaction.setValue(value, at: reference, andPriority: priority)
        }
        version = database.newestPoint.version
      } else {
        version = try await reference.setValue(value, andPriority: priority).version
      }
    }
    log("wrote /\(path) of the tree in version \(version)")
    return ["version": .digits(version.rawValue)]
  }

  // MARK: - Changes

  func changes(since text: String?, limit: Int, below path: String?) async throws -> JSON {
    let path = path.flatMap { $0.isEmpty ? nil : $0 }
    var changes: [JSON] = []
    var isMore = false
    if let text {
      guard let token = ChangeToken(text) else {
        throw ConsoleFailure.wrong("\"since\" is not a change token")
      }
      (changes, isMore) = try await monitor.changes(since: token, atMost: limit, below: path)
    } else {
      changes = try await monitor.newestChanges(atMost: limit, below: path)
    }
    return [
      "changes": .list(changes), "token": .text("\(database.newestToken)"),
      "more": .boolean(isMore), "source": database.keepsChanges ? "log" : "memory",
    ]
  }
}
