// The planner's scripts: queries, the existing indexes, and how each is answered. A wrong choice is
// only slow and so shows nowhere else.

import OndolJSON
import OndolTestKit
import Testing

@testable import Ondol

/// A database that a script fills and queries.
private struct PlannerWorld {
  private var database: Database?

  mutating func run(_ step: GoldenScript.Step) async throws -> String {
    switch step.name {
    // plan INDEX...: a collection with these indexes, and how each query is answered.
    case "plan":
      try await open(step.words, documents: ["d {\"a\": 1}"])
      return try await step.lines.async { line in
        let plan = try await query(line).explain().description.split(separator: "\n")
        return "\(line) ->\(plan[1].dropFirst())"
      }
    // database INDEX...: the same with documents, for the commands that follow.
    case "database":
      try await open(step.words, documents: step.lines)
      return ""
    case "fill":
      let items = try collection()
      for number in 0..<(Int(step.words[0]) ?? 0) {
        try await items.document("d\(number)").setData([step.words[1]: number], durability: .memory)
      }
      return ""
    case "explain":
      return try await step.lines.async { try await query($0).explain().description }
    case "analyze":
      return try await step.lines.async { line in
        let text = try await query(line).explain(analyze: true).description
        return text.split(separator: "\n").filter { !$0.hasPrefix("  took") }
          .joined(separator: "\n")
      }
    default: throw step.unknown
    }
  }

  private mutating func open(_ indexes: [String], documents: [String]) async throws {
    try await database?.close()
    let database = try await Database.underTest()
    self.database = database
    let items = database.collection("c")
    for document in documents {
      let parts = document.split(separator: " ", maxSplits: 1)
      try await items.document(String(parts[0])).setData(
        try JSONReader.readDocument(Array(parts[1].utf8)), durability: .memory)
    }
    for index in indexes {
      try await items.createIndex(on: index.split(separator: ",").map(String.init))
    }
  }

  private func collection() throws -> CollectionReference {
    guard let database else { throw BrokenInvariant("there is no database yet") }
    return database.collection("c")
  }

  /// "a = 1 | order b desc | limit 3": a condition or "all", then the rest of the query.
  private func query(_ text: String) throws -> Query {
    let parts = text.split(separator: "|").map { $0.trimming { $0 == " " } }
    var query = try collection().query
    if parts[0] != "all" { query = query.whereFilter(try WhereExpression(parts[0]).filter) }
    for part in parts.dropFirst() {
      let words = part.split(separator: " ", maxSplits: 1).map(String.init)
      switch words[0] {
      case "order":
        for order in try WhereParser.orders(words[1]) { query = order.added(to: query) }
      case "limit": query = query.limit(to: Int(words[1]) ?? 0)
      case "missing-first": query = query.order(by: FieldPath(words[1]), missing: .first)
      case "missing-last": query = query.order(by: FieldPath(words[1]), missing: .last)
      default: throw BrokenInvariant("no query has '\(part)'")
      }
    }
    return query
  }
}

extension [String] {
  /// Returns the results of `body`, in lines.
  fileprivate func async(_ body: (String) async throws -> String) async rethrows -> String {
    var lines: [String] = []
    for element in self { lines.append(try await body(element)) }
    return lines.joined(separator: "\n")
  }
}

extension Substring {
  fileprivate func trimming(_ isTrimmed: (Character) -> Bool) -> String {
    let start = firstIndex { !isTrimmed($0) } ?? endIndex
    let end = lastIndex { !isTrimmed($0) }.map { index(after: $0) } ?? endIndex
    return start < end ? String(self[start..<end]) : ""
  }
}

@Suite struct PlannerScriptTests {
  @Test(arguments: try GoldenScript.all(in: "planner"))
  func `Queries are answered as the script says`(script: GoldenScript) async throws {
    var world = PlannerWorld()
    try await script.check { try await world.run($0) }
  }
}
