// What a client may send instead of a pipeline: stages with wrong arguments, expressions without an
// end. All of it is refused before it reaches the database.

#if Server
  import Ondol
  import OndolMapping
  import OndolTestKit
  import OndolWire
  import SwiftProtobuf
  import Testing

  @testable import OndolServer

  @Suite struct PipelineMappingTests {
    private let mapping = PipelineMapping(
      values: ValueMapping(database: DatabaseName(project: "p", id: "(default)")))

    private func stage(_ name: String, _ arguments: WireValue...) -> WirePipeline {
      .with {
        $0.stages = [
          .with {
            $0.name = name
            $0.args = arguments
          }
        ]
      }
    }

    private func text(_ text: String) -> WireValue { .with { $0.stringValue = text } }

    @Test func `Stages with wrong arguments are refused`() {
      let number = WireValue.with { $0.integerValue = 1 }
      let wrong = [
        stage(""), stage("no_such_stage"), stage("collection"), stage("collection", text("a")),
        stage("collection", .with { $0.referenceValue = "a/b" }), stage("collection_group", number),
        stage("documents", .with { $0.referenceValue = "a" }), stage("where"), stage("select"),
        stage("select", number), stage("remove_fields", number), stage("sort", number),
        stage("sort", .with { $0.mapValue = .init() }), stage("limit", text("1")), stage("offset"),
        stage("aggregate", number), stage("union", number), stage("sample", number),
        stage("sample", number, text("x")),
        stage("find_nearest", number, number, text("manhattan")),
        stage("find_nearest", number, number, text("cosine")), stage("unnest", number, number),
        stage("replace_with", number, text("x")), stage("search"), stage("let", number),
      ]
      for pipeline in wrong {
        let error = #expect(throws: DatabaseError.self, "\(pipeline)") {
          try mapping.stages(pipeline)
        }
        #expect(error?.code == .invalidArgument, "\(pipeline)")
      }
    }

    @Test func `Expressions and pipelines nested without end are refused before they are followed`()
    {
      var value = text("a")
      var pipeline = stage("database")
      for _ in 0..<300 {
        value = .with { outer in
          outer.functionValue.name = "not"
          outer.functionValue.args = [value]
        }
        pipeline = stage("union", .with { $0.pipelineValue = pipeline })
      }
      for pipeline in [stage("where", value), pipeline] {
        let error = #expect(throws: DatabaseError.self) { try mapping.stages(pipeline) }
        #expect(error?.code == .invalidArgument)
      }
    }

    @Test(arguments: Seeds.first(20))
    func `Random messages are mapped or refused, and what is mapped is executed or refused`(
      seed: UInt64
    ) async throws {
      var random = SeededRandom(seed: seed)
      let database = try await Database.inMemory()
      try await database.document("c/a").setData(["a": 1, "b": ["x"]])
      for _ in 0..<200 {
        let pipeline = WirePipeline.with { pipeline in
          pipeline.stages = (0..<(1 + random.below(4))).map { _ in Self.stage(&random) }
        }
        do throws(DatabaseError) {
          let stages = try mapping.stages(pipeline)
          _ = try await Pipeline(database: database, stages: stages).execute()
        } catch {
          let expected: [DatabaseError.Code] = [
            .invalidArgument, .unimplemented, .failedPrecondition,
          ]
          #expect(expected.contains(error.code), "seed \(seed): \(error)")
        }
      }
      try await database.close()
    }

    private static func stage(_ random: inout SeededRandom) -> WirePipeline.Stage {
      let names = [
        "collection", "database", "documents", "literals", "where", "select", "add_fields", "sort",
        "limit", "offset", "aggregate", "distinct", "unnest", "union", "sample", "find_nearest",
        "replace_with", "remove_fields", "search", "collection_group",
      ]
      let name =
        random.chance(1, in: 3) ? random.pick(["collection", "database"]) : random.pick(names)
      return .with {
        $0.name = name
        $0.args =
          name == "collection" && random.chance(2, in: 3)
          ? [.with { $0.referenceValue = "/c" }]
          : (0..<random.below(4)).map { _ in value(&random, 3) }
      }
    }

    private static func value(_ random: inout SeededRandom, _ depth: Int) -> WireValue {
      var value = WireValue()
      switch random.below(depth > 0 ? 9 : 5) {
      case 0: value.integerValue = Int64(random.below(4)) - 1
      case 1:
        value.stringValue = random.pick(["a", "documents", "percent", "cosine", "first", "("])
      case 2: value.fieldReferenceValue = random.pick(["a", "b", "__name__", "a..", "x.y"])
      case 3: value.doubleValue = random.pick([0.5, .nan, -1])
      case 4: value.booleanValue = true
      case 5:
        value.arrayValue.values = (0..<random.below(3)).map { _ in self.value(&random, depth - 1) }
      case 6:
        value.mapValue.fields = (0..<random.below(3)).map { place in
          .with {
            $0.key = random.pick(["expression", "direction", "n\(place)"])
            $0.value = self.value(&random, depth - 1)
          }
        }
      default:
        value.functionValue.name = random.pick([
          "equal", "add", "count", "sum", "array", "map", "regex_match", "conditional",
          "array_filter", "substring", "no_such_function",
        ])
        value.functionValue.args = (0..<random.below(4)).map { _ in self.value(&random, depth - 1) }
      }
      return value
    }
  }
#endif
