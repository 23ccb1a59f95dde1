// `ondol pipe`: the answer of a pipeline, or how it is carried out.

import ArgumentParser
import Ondol
import OndolJSON

struct PipeCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "pipe", abstract: "Prints the rows that a pipeline makes of documents.",
    discussion: """
      A collection (or `group ID`, or * for all documents), then stages with | between: \
      where CONDITION, select COLUMNS, add COLUMNS, remove FIELDS, sort EXPRESSION desc, limit N, \
      offset N, aggregate n = count(), mean = average(price) by kind, distinct COLUMNS, \
      unnest tags as tag, union (PIPELINE), sample 10, sample 5 %, replace MAP, \
      search "words" in title, lookup REFERENCE as name, lookup in COLLECTION where FIELD = \
      EXPRESSION as name, window place = rank() by kind sort price desc. A column is a field or \
      NAME = EXPRESSION. Expressions have or, and, not, = != < <= > >=, in [...], has, like, \
      + - * / % and Firestore's functions, as in char_length(title).

      ondol pipe shop.ondol 'books | where rating > 4 and tags has "classic" \
      | aggregate n = count(), mean = average(rating) by genre | sort mean desc | limit 5'
      """)

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The pipeline.")
  var pipeline: String

  @Flag(help: "How the pipeline is carried out, instead of its rows.")
  var explain = false

  @Flag(help: "As --explain, with the rows of each stage: the pipeline is carried out.")
  var analyze = false

  @OptionGroup var globals: GlobalOptions

  func run(in database: Database) async throws {
    let pipeline = Pipeline(database: database, stages: try stages())
    if explain || analyze {
      var output = Output(.table)
      for line in try await pipeline.explain(analyze: analyze).lines { try output.print(line) }
      return try output.flush()
    }
    var rows = RowWriter(globals, .documents)
    for (place, result) in try await pipeline.execute().enumerated() {
      try rows.write(id: result.reference?.path ?? "\(place + 1)", result.data())
    }
    try rows.finish()
  }

  /// An invalid text is a usage error that names the position.
  private func stages() throws(CommandFailure) -> [PipelineStage] {
    do throws(PipelineTextError) {
      var text = try PipelineText(pipeline)
      return try text.stages()
    } catch {
      let start = String(pipeline.unicodeScalars.prefix(error.position).suffix(60))
      throw CommandFailure(
        .usage, lines: [error.message, "after: \(start.isEmpty ? "the beginning" : start)"])
    }
  }
}
