// Published query cases for the system that has these semantics. Each is built with the public
// calls, and the resulting query is compared with the case's expected request.

import Foundation
import Testing

@testable import Ondol

private let folder = URL(filePath: #filePath)
  .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
  .deletingLastPathComponent().appending(path: "../shared/conformance/firestore")

private let isPresent = FileManager.default.fileExists(atPath: folder.path)

@Suite struct QueryConformanceTests {
  @Test(.enabled(if: isPresent, "the conformance data is not beside the project"))
  func `Published query cases build the expected requests`() async throws {
    let database = try await Database.underTest()
    var passed = 0
    var cases = 0
    for file in try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() {
      let data = try Data(contentsOf: folder.appending(path: file))
      let json = try JSONSerialization.jsonObject(with: data) as? [String: Any]
      let test = (json?["tests"] as? [[String: Any]])?.first ?? [:]
      guard let body = test["query"] as? [String: Any] else { continue }
      cases += 1
      let problem = QueryCase(database: database, body: body).problem()
      passed += problem == nil ? 1 : 0
      if let problem { Issue.record("\(file): \(problem)") }
    }
    print("Conformance, queries: \(passed) of \(cases)")
    #expect(cases == 42)
  }
}

private struct UnknownOperator: Error {}

/// A case, and its check.
private struct QueryCase {
  let database: Database
  let body: [String: Any]

  /// Nil if the case passes.
  func problem() -> String? {
    let isError = body["isError"] as? Bool ?? false
    let ours: String
    do {
      ours = try describe(build().shape.get())
    } catch {
      return isError ? nil : "throws \(error)"
    }
    guard !isError else { return "does not throw" }
    let theirs = describe(body["query"] as? [String: Any] ?? [:])
    return ours == theirs ? nil : "\(ours)\ninstead of\n\(theirs)"
  }

  // MARK: - Ondol's queries

  private func build() throws -> Query {
    var query = database.collection(relative(body["collPath"])).query
    for clause in body["clauses"] as? [[String: Any]] ?? [] {
      guard let (kind, value) = clause.first else { continue }
      let content = value as? [String: Any] ?? [:]
      switch kind {
      case "where": query = try filtered(query, content)
      case "orderBy":
        let isDescending = content["direction"] as? String == "desc"
        query = query.order(by: path(content["path"]), descending: isDescending)
      case "limit": query = query.limit(to: value as? Int ?? 0)
      case "offset": query = query.offset(value as? Int ?? 0)
      case "select": query = query.select((content["fields"] as? [Any] ?? []).map(path))
      default: query = try placed(query, kind, content)
      }
    }
    return query
  }

  private func filtered(_ query: Query, _ content: [String: Any]) throws -> Query {
    let field = path(content["path"])
    let value = try value(content["jsonValue"])
    switch content["op"] as? String {
    case "==": return query.whereField(field, isEqualTo: value)
    case ">": return query.whereField(field, isGreaterThan: value)
    case ">=": return query.whereField(field, isGreaterThanOrEqualTo: value)
    case "<": return query.whereField(field, isLessThan: value)
    case "<=": return query.whereField(field, isLessThanOrEqualTo: value)
    default: throw UnknownOperator()
    }
  }

  private func placed(
    _ query: Query, _ kind: String, _ content: [String: Any]
  ) throws -> Query {
    if let document = content["docSnapshot"] as? [String: Any] {
      let snapshot = try snapshot(document)
      switch kind {
      case "startAt": return query.start(atDocument: snapshot)
      case "startAfter": return query.start(afterDocument: snapshot)
      case "endAt": return query.end(atDocument: snapshot)
      default: return query.end(beforeDocument: snapshot)
      }
    }
    let values = try (content["jsonValues"] as? [String] ?? []).map(value)
    switch kind {
    case "startAt": return query.start(at: values)
    case "startAfter": return query.start(after: values)
    case "endAt": return query.end(at: values)
    default: return query.end(before: values)
    }
  }

  private func snapshot(_ json: [String: Any]) throws -> DocumentSnapshot {
    let text = json["jsonData"] as? String ?? "{}"
    let fields = try CaseJSON.parse(text).input().plainValue().map ?? [:]
    let stamps = DocumentStamps(
      version: Version(rawValue: 1), updateTime: .minimum, createTime: .minimum)
    return DocumentSnapshot(
      reference: database.document(relative(json["path"])),
      contents: .init(stamps: stamps, fields: fields))
  }

  private func path(_ json: Any?) -> FieldPath {
    FieldPath((json as? [String: Any])?["field"] as? [String] ?? [])
  }

  private func value(_ json: Any?) throws -> (any FieldContent)? {
    try CaseContent(CaseJSON.parse(json as? String ?? "null"))
  }

  private func relative(_ path: Any?) -> String {
    (path as? String ?? "").replacing("projects/projectID/databases/(default)/documents/", with: "")
  }

  /// As requested. The order is completed only if a document states where the result begins or
  /// ends.
  private func describe(_ shape: QueryShape) throws -> String {
    let query = try NormalQuery(shape)
    var hasDocument = false
    for place in [shape.start, shape.end] {
      if case .document = place?.position { hasDocument = true }
    }
    let orders = hasDocument ? query.orders : shape.orders
    let collection = shape.source.description
    func bound(_ bound: NormalQuery.Bound?, isBefore: Bool) -> String {
      guard let bound else { return "-" }
      let keys = zip(bound.keys, query.orders).map { key, order in
        let isName = order.field == .documentID
        return isName ? "\(collection)/\(key?.string ?? "")" : key.map { "\($0)" } ?? "missing"
      }
      return "\(keys) \(bound.isIncluded == isBefore ? "before" : "behind")"
    }
    let selection = shape.selection.map { $0.fields.map(WriteCompiler.describe) }
    return [
      "select \(selection.map { $0.isEmpty ? ["__name__"] : $0 } ?? [])",
      "where \(shape.filters.map(\.description))",
      "order \(orders.map { "\($0.field) \($0.descending)" })",
      "start \(bound(query.start, isBefore: true))", "end \(bound(query.end, isBefore: false))",
      "offset \(shape.offset) limit \(shape.limit ?? 0)",
    ].joined(separator: "\n")
  }

  // MARK: - Expected queries

  private func describe(_ json: [String: Any]) -> String {
    let selection = json["select"] as? [String: Any]
    let fields = selection?["fields"] as? [[String: Any]] ?? []
    let orders = (json["orderBy"] as? [[String: Any]] ?? []).map {
      "\(fieldPath($0)) \($0["direction"] as? String == "DESCENDING")"
    }
    return [
      "select \(fields.map { $0["fieldPath"] as? String ?? "" })",
      "where \(filters(json["where"] as? [String: Any]))", "order \(orders)",
      "start \(bound(json["startAt"]))", "end \(bound(json["endAt"]))",
      "offset \(json["offset"] as? Int ?? 0) limit \(json["limit"] as? Int ?? 0)",
    ].joined(separator: "\n")
  }

  private func fieldPath(_ json: [String: Any]) -> String {
    (json["field"] as? [String: Any])?["fieldPath"] as? String ?? ""
  }

  private func filters(_ json: [String: Any]?) -> [String] {
    guard let json else { return [] }
    if let composite = json["compositeFilter"] as? [String: Any] {
      return (composite["filters"] as? [[String: Any]] ?? []).flatMap(filters)
    }
    if let unary = json["unaryFilter"] as? [String: Any] {
      let isNull = unary["op"] as? String == "IS_NULL"
      return ["\(fieldPath(unary)) == \(isNull ? "null" : "nan")"]
    }
    let filter = json["fieldFilter"] as? [String: Any] ?? [:]
    let signs = [
      "EQUAL": "==", "GREATER_THAN": ">", "GREATER_THAN_OR_EQUAL": ">=", "LESS_THAN": "<",
      "LESS_THAN_OR_EQUAL": "<=",
    ]
    let sign = signs[filter["op"] as? String ?? ""] ?? "?"
    return ["\(fieldPath(filter)) \(sign) \(text(filter["value"]))"]
  }

  private func bound(_ json: Any?) -> String {
    guard let json = json as? [String: Any] else { return "-" }
    let values = (json["values"] as? [Any] ?? []).map(text)
    return "\(values) \(json["before"] as? Bool == true ? "before" : "behind")"
  }

  private func text(_ json: Any?) -> String {
    let value = json as? [String: Any] ?? [:]
    if let text = value["integerValue"] as? String { return text }
    if let text = value["stringValue"] as? String { return "\"\(text)\"" }
    if let path = value["referenceValue"] { return relative(path) }
    let fields = (value["mapValue"] as? [String: Any])?["fields"] as? [String: Any] ?? [:]
    let members = fields.sorted { $0.key < $1.key }.map { "\"\($0.key)\": \(text($0.value))" }
    return "{\(members.joined(separator: ", "))}"
  }
}
