// `ondol query`: the documents that satisfy conditions, or how the database finds them.

import ArgumentParser
import Ondol
import OndolJSON

struct QueryCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "query", abstract: "Prints the documents that meet conditions.",
    discussion: """
      Conditions: FIELD = VALUE, also != < <= > >=, in [...], not in [...], array-contains VALUE, \
      array-contains-any [...], starts-with "...", contains "...", equals-nocase, \
      starts-with-nocase, contains-nocase, combined with and, or, not and parentheses. A \
      value is JSON, a field a path such as size.width, with other characters in `backquotes`. \
      Behind a field, folded, caseInsensitive and natural say how its texts are compared.
      """)

  @OptionGroup var database: DatabaseArgument
  @OptionGroup var documents: QueryOptions
  @OptionGroup var result: ResultOptions

  @Flag(help: "Print how the documents are found, instead of the documents.")
  var explain = false

  @Flag(help: "Like --explain, with the cost of running the query.")
  var analyze = false

  @OptionGroup var globals: GlobalOptions

  func run(in database: Database) async throws {
    let query = try result.apply(to: try documents.source(in: database))
    if explain || analyze {
      return try print(try await query.explain(analyze: analyze))
    }
    var rows = RowWriter(globals, .documents)
    var isEmpty = true
    var unseen = try result.selected() ?? []
    for try await document in query.documents {
      // The id alone does not identify a document of a collection group.
      try rows.write(
        id: documents.group ? document.reference.path : document.documentID, document.data())
      isEmpty = false
      unseen.removeAll { document.get($0) != nil }
    }
    try rows.finish()
    // An empty result because of an offset past the last document, or of a limit of 0, does not
    // mean that the names are unknown.
    guard isEmpty || !unseen.isEmpty, result.part.limit != 0 else { return }
    let orders = isEmpty ? try result.orders().map(\.field) : []
    try await documents.refuseUnknownNames(in: database, and: orders + unseen)
  }

  private func print(_ explanation: QueryExplanation) throws {
    if globals.chosenFormat == .table {
      var output = Output(.table)
      for line in explanation.lines { try output.print(line) }
      return try output.flush()
    }
    let names = [
      "query", "access", "sorts", "index", "needsNoDocuments", "suggestedIndex",
      "entriesVisited", "documentsExamined", "documentsReturned", "microseconds",
    ]
    var row: [Cell] = [
      ("query", .string(explanation.query)), ("access", .string(Self.access(explanation))),
      ("sorts", .boolean(explanation.sorts)),
      ("needsNoDocuments", .boolean(explanation.needsNoDocuments)),
    ]
    if let index = explanation.indexName { row.append(("index", .string(index))) }
    if let fields = explanation.suggestedIndex {
      row.append(("suggestedIndex", .strings(fields)))
    }
    let counts = [
      ("entriesVisited", explanation.entriesVisited),
      ("documentsExamined", explanation.documentsExamined),
      ("documentsReturned", explanation.documentsReturned),
      ("microseconds", explanation.duration.map { Int($0 / .microseconds(1)) }),
    ]
    row += counts.compactMap { name, count in count.map { (name, .integer(Int64($0))) } }
    try globals.report("query/1", names, [row])
  }
}

extension QueryCommand {
  /// The access path in words: the second line for a person.
  private static func access(_ explanation: QueryExplanation) -> String {
    explanation.lines.dropFirst().first.map { String($0.trimmingPrefix("  ")) } ?? ""
  }
}

/// `ondol count`: how many documents satisfy conditions.
struct CountCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "count", abstract: "Prints how many documents meet conditions.")

  @OptionGroup var database: DatabaseArgument
  @OptionGroup var documents: QueryOptions
  @OptionGroup var globals: GlobalOptions

  func run(in database: Database) async throws {
    let query = try documents.source(in: database)
    let count = try await query.count.getAggregation().count
    // Only a number, so that a script need not parse anything.
    try globals.forPlainText.report("count/1", [("count", .number(count))])
    if count == 0 { try await documents.refuseUnknownNames(in: database) }
  }
}

/// `ondol agg`: sums and other aggregates, of all documents or of each group.
struct AggregateCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "agg", abstract: "Prints counts, sums, averages, least and greatest values.")

  @OptionGroup var database: DatabaseArgument
  @OptionGroup var documents: QueryOptions

  @Option(help: "Sum of this field; repeat it for several.")
  var sum: [String] = []

  @Option(help: "Average of this field.")
  var avg: [String] = []

  @Option(help: "Least value of this field.")
  var min: [String] = []

  @Option(help: "Greatest value of this field.")
  var max: [String] = []

  @Option(help: "A row for each value of this field; repeat it for several.")
  var groupBy: [String] = []

  @OptionGroup var globals: GlobalOptions

  func run(in database: Database) async throws {
    let wanted: [(name: String, source: String, field: AggregateField)] =
      sum.map { ("sum(\($0))", $0, .sum(FieldPath($0))) }
      + avg.map { ("avg(\($0))", $0, .average(FieldPath($0))) }
      + min.map { ("min(\($0))", $0, .minimum(FieldPath($0))) }
      + max.map { ("max(\($0))", $0, .maximum(FieldPath($0))) }
    let query = try documents.source(in: database).aggregate(
      [.count()] + wanted.map(\.field))
    var rows = RowWriter(
      globals, .report(schema: "agg/1", columns: groupBy + ["count"] + wanted.map(\.name)))
    // Sources without a value in any row, because no document has them or their aggregate is empty.
    var untold = Set(wanted.map(\.source) + groupBy)
    func write(_ result: AggregateQuerySnapshot, of key: [Cell] = []) throws {
      let cells = wanted.map { ($0.name, result[$0.field] ?? .null) }
      try rows.write(key + [("count", .integer(Int64(result.count)))] + cells)
      for (wanted, cell) in zip(wanted, cells) where ![.null, .integer(0)].contains(cell.1) {
        untold.remove(wanted.source)
      }
    }
    var isEmpty = false
    if groupBy.isEmpty {
      let result = try await query.getAggregation()
      isEmpty = result.count == 0
      try write(result)
    } else {
      let groups = try await query.group(by: groupBy.map { FieldPath($0) }).getAggregation()
      isEmpty = groups.isEmpty
      if !isEmpty { untold.subtract(groupBy) }
      for group in groups {
        try write(group.aggregation, of: zip(groupBy, group.key).map { ($0, $1) })
      }
    }
    try rows.finish()
    guard isEmpty || !untold.isEmpty else { return }
    try await documents.refuseUnknownNames(
      in: database, and: untold.sorted().map { FieldPath($0) })
  }
}
