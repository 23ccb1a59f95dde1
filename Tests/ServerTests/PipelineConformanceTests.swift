// Published pipelines with their answers: mapped from the protocol's JSON as a client's message
// would be, and executed on the published documents.

#if Server
  import Foundation
  import Ondol
  import OndolMapping
  import OndolWire
  import SwiftProtobuf
  import Testing

  @testable import OndolServer

  private let folder = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "../shared/conformance/pipelines")

  private let isPresent = FileManager.default.fileExists(atPath: folder.path)

  @Suite struct PipelineConformanceTests {
    private let mapping = PipelineMapping(
      values: ValueMapping(database: DatabaseName(project: "p", id: "(default)")))

    @Test(.enabled(if: isPresent, "the conformance data is not beside the project"))
    func `Published pipelines answer what they expect`() async throws {
      let database = try await Database.inMemory()
      try await fill(database)
      let text = try String(contentsOf: folder.appending(path: "cases.jsonl"), encoding: .utf8)
      var passed = 0
      let lines = text.split(separator: "\n")
      for line in lines {
        let test = try #require(
          try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        let problem = try await problem(of: test, in: database)
        passed += problem == nil ? 1 : 0
        if let problem { Issue.record("\(test["name"] ?? ""): \(problem)") }
      }
      print("Conformance, pipelines: \(passed) of \(lines.count)")
      #expect(lines.count == 45)
      try await database.close()
    }

    private func fill(_ database: Database) async throws {
      let data = try JSONSerialization.jsonObject(
        with: Data(contentsOf: folder.appending(path: "data.json")))
      for (collection, documents) in try #require(data as? [String: [String: [String: Any]]]) {
        for (id, fields) in documents {
          try await database.collection(collection).document(id)
            .setData(fields.mapValues { JSONForm.value($0) })
        }
      }
    }

    /// Nil when the case passes.
    private func problem(of test: [String: Any], in database: Database) async throws -> String? {
      let request = test["request"] as? [String: Any]
      let pipeline = JSONForm.pipeline(request?["pipeline"] as? [String: Any] ?? [:])
      let found: [[String: Value]]
      do {
        let stages = try mapping.stages(pipeline)
        found = try await Pipeline(database: database, stages: stages).execute()
          .map { $0.data() }
      } catch {
        guard let expected = test["assert_error"] as? String else { return "throws \(error)" }
        return "\(error)".contains(try Regex(expected)) ? nil : "throws \(error)"
      }
      if test["assert_error"] != nil { return "does not throw" }
      if let count = test["assert_count"] as? Int, count != found.count {
        return "\(found.count) results"
      }
      for name in ["assert_results", "assert_results_approximate"] {
        guard let results = test[name] as? [[String: Any]] else { continue }
        let expected = results.map { Value.map($0.mapValues { JSONForm.value($0) }) }
        let isEqual =
          found.count == expected.count
          && zip(found, expected).allSatisfy { JSONForm.isNear(.map($0), $1) }
        if !isEqual { return "answers \(found)" }
      }
      return nil
    }
  }

  /// JSON of the published files as values and messages.
  private enum JSONForm {
    static func pipeline(_ json: [String: Any]) -> WirePipeline {
      .with { pipeline in
        for case let stage as [String: Any] in json["stages"] as? [Any] ?? [] {
          pipeline.stages.append(
            .with {
              $0.name = stage["name"] as? String ?? ""
              $0.args = (stage["args"] as? [Any] ?? []).map(wire)
              $0.options = entries(stage["options"])
            })
        }
      }
    }

    private static func entries(_ json: Any?) -> [WireEntry] {
      (json as? [String: Any] ?? [:]).sorted { $0.key < $1.key }.map { key, value in
        .with {
          $0.key = key
          $0.value = wire(value)
        }
      }
    }

    private static func wire(_ json: Any) -> WireValue {
      var value = WireValue()
      guard let (kind, content) = (json as? [String: Any])?.first else { return value }
      switch kind {
      case "nullValue": value.nullValue = .nullValue
      case "booleanValue": value.booleanValue = content as? Bool ?? false
      case "integerValue": value.integerValue = Int64(content as? String ?? "") ?? 0
      case "doubleValue": value.doubleValue = content as? Double ?? .nan
      case "stringValue": value.stringValue = content as? String ?? ""
      case "referenceValue": value.referenceValue = content as? String ?? ""
      case "fieldReferenceValue": value.fieldReferenceValue = content as? String ?? ""
      case "timestampValue":
        value.timestampValue =
          (try? Google_Protobuf_Timestamp(jsonString: "\"\(content)\"")) ?? .init()
      case "arrayValue":
        let elements = (content as? [String: Any])?["values"] as? [Any] ?? []
        value.arrayValue.values = elements.map(wire)
      case "mapValue":
        value.mapValue.fields = entries((content as? [String: Any])?["fields"])
      case "pipelineValue": value.pipelineValue = pipeline(content as? [String: Any] ?? [:])
      default:
        let function = content as? [String: Any] ?? [:]
        value.functionValue.name = function["name"] as? String ?? ""
        value.functionValue.args = (function["args"] as? [Any] ?? []).map(wire)
      }
      return value
    }

    static func value(_ json: Any) -> Value {
      switch json {
      case let text as String:
        if text == "NaN" { return .double(.nan) }
        if text.hasSuffix("+00:00"),
          let time = try? Google_Protobuf_Timestamp(jsonString: "\"\(text)\""),
          let known = try? Timestamp(seconds: time.seconds, nanoseconds: time.nanos)
        {
          return .timestamp(known)
        }
        return .string(text)
      case let number as NSNumber:
        // JSON's numbers and booleans are one type to Foundation, told apart by their encoding.
        switch unsafe String(cString: number.objCType) {
        case "c", "B": return .boolean(number.boolValue)
        case "d", "f": return .double(number.doubleValue)
        default: return .integer(number.int64Value)
        }
      case let list as [Any]:
        let numbers = list.compactMap { ($0 as? NSNumber)?.doubleValue }
        return !list.isEmpty && numbers.count == list.count
          ? .vector(VectorValue(numbers)) : .array(list.map(value))
      case let map as [String: Any]: return .map(map.mapValues(value))
      default: return .null
      }
    }

    static func isNear(_ left: Value, _ right: Value) -> Bool {
      switch (left, right) {
      case (.map(let left), .map(let right)):
        return left.count == right.count
          && left.allSatisfy { name, value in right[name].map { isNear(value, $0) } ?? false }
      case (.array(let left), .vector(let right)):
        return isNear(.array(left), .array(right.components.map { .double($0) }))
      case (.array(let left), .array(let right)):
        return left.count == right.count && zip(left, right).allSatisfy(isNear)
      default:
        if let left = number(left), let right = number(right) { return abs(left - right) < 1e-4 }
        return left == right
      }
    }

    private static func number(_ value: Value) -> Double? {
      value.double ?? value.integer.map(Double.init)
    }
  }
#endif
