// Published write cases for the system that has these semantics. The compiler's intent is compared
// with the case's expected request, and then both are applied to the same documents.

import Foundation
import OndolEngine
import Testing

@testable import Ondol

private let folder = URL(filePath: #filePath)
  .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
  .deletingLastPathComponent().appending(path: "../shared/conformance/firestore")

private let isPresent = FileManager.default.fileExists(atPath: folder.path)

@Suite struct ConformanceTests {
  @Test(.enabled(if: isPresent, "the conformance data is not beside the project"))
  func `Published write cases compile to the expected requests`() throws {
    var passed = 0
    var cases: [(name: String, problem: String?)] = []
    for file in try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() {
      guard let test = try WriteCase(contentsOf: folder.appending(path: file)) else { continue }
      let problem = test.problem()
      cases.append((file, problem))
      passed += problem == nil ? 1 : 0
    }
    print("Conformance, writes: \(passed) of \(cases.count)")
    for (name, problem) in cases {
      if let problem { Issue.record("\(name): \(problem)") }
    }
    #expect(cases.count == 171)
  }
}

/// A case, and its check.
private struct WriteCase {
  let kind: String
  let body: [String: Any]

  init?(contentsOf url: URL) throws {
    let json = try JSONSerialization.jsonObject(with: Data(contentsOf: url)) as? [String: Any]
    let test = (json?["tests"] as? [[String: Any]])?.first ?? [:]
    for kind in ["create", "set", "update", "updatePaths", "delete"] {
      guard let body = test[kind] as? [String: Any] else { continue }
      self.kind = kind
      self.body = body
      return
    }
    return nil
  }

  /// Nil if the case passes.
  func problem() -> String? {
    let isError = body["isError"] as? Bool ?? false
    let intent: WriteIntent
    do {
      intent = try compile()
    } catch {
      return isError ? nil : "throws \(error)"
    }
    guard !isError else { return "does not throw" }
    let expected: WriteIntent
    do {
      expected = try expectedIntent()
    } catch {
      return "the case itself cannot be read: \(error)"
    }
    if let difference = difference(intent, expected) { return difference }
    return bases.firstNonNil { base in
      let ours = (try? intent.apply(to: base))?.map { Value.map($0) }
      let theirs = (try? expected.apply(to: base))?.map { Value.map($0) }
      return ours == theirs
        ? nil
        : "on \(base.map { "\(Value.map($0))" } ?? "nothing"): \(ours as Any), not \(theirs as Any)"
    }
  }

  /// The documents that both intents are applied to.
  private var bases: [[String: Value]?] {
    [nil, [:], ["a": ["b": 1]], ["a": 1], ["a": [1, 2], "b": ["c": 3], "h": ["z": 1]]]
  }

  private func difference(_ ours: WriteIntent, _ theirs: WriteIntent) -> String? {
    let left = (Self.parts(ours), Self.parts(theirs))
    return left.0 == left.1 ? nil : "\(left.0) instead of \(left.1)"
  }

  private static func parts(_ intent: WriteIntent) -> [String] {
    var parts: [String] = []
    switch intent.change {
    case .replace(let fields): parts.append("fields \(Value.map(fields)) no mask")
    case .put(let encoded): parts.append("fields \(Value.map(encoded.row.fields)) no mask")
    case .patch(let fields, let mask):
      parts.append("fields \(Value.map(fields)) mask \(mask.map(WriteCompiler.describe).sorted())")
    case .delete: parts.append("delete")
    case .keep: parts.append("keep")
    }
    parts += intent.transforms.map { "\(WriteCompiler.describe($0.path)) \($0.operation)" }.sorted()
    return parts + ["\(intent.precondition)"]
  }

  // MARK: - Ondol's intents

  private func compile() throws -> WriteIntent {
    switch kind {
    case "create": return try WriteCompiler.create(data())
    case "set":
      guard let option = body["option"] as? [String: Any] else {
        return try WriteCompiler.set(data())
      }
      guard let fields = option["fields"] as? [[String: Any]] else {
        return try WriteCompiler.merge(data())
      }
      return try WriteCompiler.merge(data(), only: fields.map(path))
    case "update":
      return try WriteCompiler.update(
        data().map { (FieldPath($0.key), $0.value) }, precondition: precondition() ?? .exists(true))
    case "updatePaths":
      let paths = (body["fieldPaths"] as? [[String: Any]] ?? []).map(path)
      let values = try (body["jsonValues"] as? [String] ?? []).map {
        try CaseJSON.parse($0).input()
      }
      return try WriteCompiler.update(
        Array(zip(paths, values)).map { (path: $0.0, input: $0.1) },
        precondition: precondition() ?? .exists(true))
    default: return WriteCompiler.delete(precondition: try precondition() ?? .none)
    }
  }

  private func data() throws -> [String: FieldInput] {
    guard case .object(let fields) = try CaseJSON.parse(body["jsonData"] as? String ?? "{}") else {
      return [:]
    }
    return try fields.mapValues { try $0.input() }
  }

  private func path(_ field: [String: Any]) -> FieldPath {
    FieldPath(field["field"] as? [String] ?? [])
  }

  private func precondition() throws -> Precondition? {
    try Self.precondition(body["precondition"] as? [String: Any])
  }

  private static func precondition(_ json: [String: Any]?) throws -> Precondition? {
    if let exists = json?["exists"] as? Bool { return .exists(exists) }
    guard let text = json?["updateTime"] as? String else { return nil }
    return .updateTime(try Timestamp(date: try Date(text, strategy: .iso8601)))
  }

  // MARK: - Expected intents

  private func expectedIntent() throws -> WriteIntent {
    let request = body["request"] as? [String: Any]
    let write = (request?["writes"] as? [[String: Any]])?.first ?? [:]
    let precondition =
      try Self.precondition(write["currentDocument"] as? [String: Any]) ?? .none
    guard let update = write["update"] as? [String: Any] else {
      return WriteIntent(change: .delete, precondition: precondition)
    }
    let fields = try (update["fields"] as? [String: Any] ?? [:]).mapValues { try Self.value($0) }
    var change = WriteIntent.Change.replace(fields: fields)
    if let mask = write["updateMask"] as? [String: Any] {
      let paths = mask["fieldPaths"] as? [String] ?? []
      change = .patch(fields: fields, mask: try paths.map { try FieldPath($0).names() })
    }
    let transforms = try (write["updateTransforms"] as? [[String: Any]] ?? []).map(Self.transform)
    return WriteIntent(change: change, transforms: transforms, precondition: precondition)
  }

  private static func transform(_ json: [String: Any]) throws -> FieldTransform {
    let path = try FieldPath(json["fieldPath"] as? String ?? "").names()
    func elements(_ key: String) throws -> [Value]? {
      guard let list = json[key] as? [String: Any] else { return nil }
      return try (list["values"] as? [Any] ?? []).map { try value($0) }
    }
    if let added = try elements("appendMissingElements") {
      return FieldTransform(path: path, operation: .arrayUnion(added))
    }
    if let removed = try elements("removeAllFromArray") {
      return FieldTransform(path: path, operation: .arrayRemove(removed))
    }
    return FieldTransform(path: path, operation: .serverTimestamp)
  }

  private static func value(_ json: Any) throws -> Value {
    let object = json as? [String: Any] ?? [:]
    if let text = object["integerValue"] as? String { return .integer(try #require(Int64(text))) }
    if let number = object["doubleValue"] as? Double { return .double(number) }
    if let text = object["stringValue"] as? String { return .string(text) }
    if let flag = object["booleanValue"] as? Bool { return .boolean(flag) }
    if let map = object["mapValue"] as? [String: Any] {
      return .map(try (map["fields"] as? [String: Any] ?? [:]).mapValues { try value($0) })
    }
    if let array = object["arrayValue"] as? [String: Any] {
      return .array(try (array["values"] as? [Any] ?? []).map { try value($0) })
    }
    return .null
  }
}

/// JSON with distinct integers and doubles, and the cases' names for instructions.
enum CaseJSON: Decodable {
  case null
  case flag(Bool)
  case integer(Int64)
  case double(Double)
  case text(String)
  case list([CaseJSON])
  case object([String: CaseJSON])

  static func parse(_ text: String) throws -> CaseJSON {
    try JSONDecoder().decode(CaseJSON.self, from: Data(text.utf8))
  }

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let flag = try? container.decode(Bool.self) {
      self = .flag(flag)
    } else if let number = try? container.decode(Int64.self) {
      self = .integer(number)
    } else if let number = try? container.decode(Double.self) {
      self = .double(number)
    } else if let text = try? container.decode(String.self) {
      self = .text(text)
    } else if let list = try? container.decode([CaseJSON].self) {
      self = .list(list)
    } else {
      self = .object(try container.decode([String: CaseJSON].self))
    }
  }

  func input() throws -> FieldInput {
    switch self {
    case .null: return FieldInput(.null)
    case .flag(let flag): return FieldInput(.boolean(flag))
    case .integer(let number): return FieldInput(.integer(number))
    case .double(let number): return FieldInput(.double(number))
    case .text("ServerTimestamp"): return try FieldValue.serverTimestamp().encodeField()
    case .text("Delete"): return try FieldValue.delete().encodeField()
    case .text("NaN"): return FieldInput(.double(.nan))
    case .text(let text): return FieldInput(.string(text))
    case .list(let elements): return try list(elements)
    case .object(let fields): return .map(try fields.mapValues { try $0.input() })
    }
  }

  private func list(_ elements: [CaseJSON]) throws -> FieldInput {
    func operands() -> [(any FieldContent)?] { elements.dropFirst().map(CaseContent.init) }
    switch elements.first {
    case .text("ArrayUnion"): return try FieldValue.arrayUnion(operands()).encodeField()
    case .text("ArrayRemove"): return try FieldValue.arrayRemove(operands()).encodeField()
    default: return try elements.map(CaseContent.init).encodeField()
    }
  }
}

struct CaseContent: FieldContent {
  let json: CaseJSON

  init(_ json: CaseJSON) {
    self.json = json
  }

  func encodeField() throws(DatabaseError) -> FieldInput {
    do {
      return try json.input()
    } catch {
      throw error as? DatabaseError ?? DatabaseError(.unknown, "\(error)")
    }
  }
}

extension Sequence {
  fileprivate func firstNonNil<Result>(_ body: (Element) -> Result?) -> Result? {
    for element in self {
      if let result = body(element) { return result }
    }
    return nil
  }
}
