// Reports: pipelines in their text form. An answer has the rows of a table, how the pipeline is
// carried out, and which columns a chart shows.

import Ondol
import OndolJSON

extension ConsoleHandler {
  /// The address of the page of reports, a document of its own.
  static let reportsPath = "/reports"
  /// The files of the page, beside those that it shares with the console's.
  static let reportPages: Set = ["reports.html", "reports.js", "reports.css"]
  /// The most rows of an answer.
  static let mostReportRows = 1_000
  /// The longest pipeline, in bytes.
  private static let longestPipeline = 32 << 10

  /// Runs a pipeline with a time limit, unless only its plan is asked for.
  func report(_ body: [UInt8]) async throws -> JSON {
    let members = try Members(body, known: ["pipeline", "explain"])
    let explain = try members.text("explain")
    guard explain == nil || explain == "plan" || explain == "analyze" else {
      throw ConsoleFailure.wrong("\"explain\" is plan or analyze")
    }
    let stages = try Self.stages(of: try members.needed("pipeline"))
    let pipeline = Pipeline(database: database, stages: stages)
    var answer: [(name: String, value: JSON?)] = []
    if explain != "plan" {
      // One row more tells whether there are more.
      let first = Pipeline(
        database: database, stages: stages + [.limit(Self.mostReportRows + 1)])
      answer = Self.table(try await first.execute(), stages)
    }
    let explanation = try await pipeline.explain(analyze: explain == "analyze")
    answer.append(("explanation", .texts(explanation.description.lines)))
    answer.append(("follows", .boolean(pipeline.followsChanges)))
    return .object(answer)
  }

  private static func stages(of text: String) throws -> [PipelineStage] {
    guard text.utf8.count <= longestPipeline else {
      throw ConsoleFailure.wrong("a pipeline has 32 KiB at most")
    }
    do throws(PipelineTextError) {
      var reader = try PipelineText(text)
      return try reader.stages()
    } catch {
      var failure = ConsoleFailure.wrong(error.message)
      failure.offset = String(text.unicodeScalars.prefix(error.position)).utf8.count
      throw failure
    }
  }

  private static func table(
    _ results: [PipelineResult], _ stages: [PipelineStage]
  ) -> [(name: String, value: JSON?)] {
    var rows: [JSON] = []
    var names: Set<String> = []
    var size = 0
    for result in results.prefix(mostReportRows) {
      let fields = result.data()
      let row: JSON = [
        "path": result.reference.map { .text($0.path) }, "fields": .fields(fields),
      ]
      let written = row.bytes
      size += written.count
      if size > AskedQuery.largestAnswer, !rows.isEmpty { break }
      rows.append(.written(written))
      names.formUnion(fields.keys)
    }
    let first = stages.columns.filter { names.contains($0) }
    let others = names.subtracting(first).sorted()
    return [
      ("rows", .list(rows)), ("columns", .texts(first + others)),
      ("more", .boolean(rows.count < results.count)),
      (
        "chart",
        stages.chart.map { ["label": .text($0.label), "value": .text($0.value)] }
      ),
    ]
  }
}

extension String {
  fileprivate var lines: [String] {
    split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
  }
}

extension [PipelineStage] {
  /// The names of the last stage that names its columns, in its order.
  fileprivate var columns: [String] {
    for stage in reversed() {
      switch stage {
      case .select(let columns), .distinct(let columns): return columns.map(\.name)
      case .aggregate(let aggregates, let groups):
        return groups.map(\.name) + aggregates.map(\.name)
      default: continue
      }
    }
    return []
  }

  /// The columns of a chart: groups by one value, each with one number.
  fileprivate var chart: (label: String, value: String)? {
    for stage in reversed() {
      switch stage {
      case .filter, .sort, .offset, .limit: continue
      case .aggregate(let aggregates, let groups) where aggregates.count == 1 && groups.count == 1:
        return (groups[0].name, aggregates[0].name)
      default: return nil
      }
    }
    return nil
  }
}
