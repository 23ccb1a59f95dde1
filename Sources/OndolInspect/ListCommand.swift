// `ondol ls`: a collection's documents in the order of their ids; a table for a person, JSON Lines
// for a program.

import ArgumentParser
import Ondol

struct ListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls", abstract: "Lists a collection's documents in the order of their ids.")

  /// How documents are printed.
  enum Format: String, ExpressibleByArgument, CaseIterable {
    case table, jsonl, json
  }

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The collection, a path as upload or users/alice/posts.")
  var collection: String

  @Option(help: "At most so many documents.")
  var limit: Int?

  @Option(help: "Leave out so many documents first.")
  var offset = 0

  @Flag(help: "The documents' ids only.")
  var ids = false

  @Option(help: "table, jsonl or json; a table on a terminal and jsonl in a pipe when not given.")
  var format: Format?

  func validate() throws {
    guard offset >= 0 else { throw ValidationError("--offset must not be negative") }
    guard limit ?? 0 >= 0 else { throw ValidationError("--limit must not be negative") }
  }

  func run() async throws {
    try await database.withDatabase { database in
      let documents = try await documents(in: database)
      var output = Output()
      if ids {
        for document in documents { try output.print(document.documentID) }
      } else {
        switch format ?? (Output.isTerminal ? .table : .jsonl) {
        case .table:
          for line in Self.table(of: documents).lines { try output.print(line) }
        case .jsonl:
          for document in documents { try output.print(Self.json(document)) }
        case .json:
          try output.print("[")
          for (index, document) in documents.enumerated() {
            try output.print("  " + Self.json(document) + (index + 1 < documents.count ? "," : ""))
          }
          try output.print("]")
        }
      }
      try output.flush()
    }
  }

  private func documents(in database: Database) async throws -> [DocumentSnapshot] {
    let collection = database.collection(collection)
    guard limit != 0 else { return [] }
    var query = collection.order(by: FieldPath.documentID())
    if let limit {
      // What is left out counts towards what is read.
      query = query.limit(to: offset.addingReportingOverflow(limit).partialValue)
    }
    return Array(try await query.getDocuments().documents.dropFirst(offset))
  }

  private static func json(_ document: DocumentSnapshot) -> String {
    JSONWriter.line(id: document.documentID, document.data())
  }

  private static func table(of documents: [DocumentSnapshot]) -> TextTable {
    let rows = documents.map { ($0.documentID, $0.data()) }
    let names = Set(rows.flatMap(\.1.keys)).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    var table = TextTable(columns: [JSONWriter.documentIDName] + names)
    table.numericColumns = Set(
      names.filter { name in
        rows.allSatisfy { _, fields in fields[name].map(isNumber) ?? true }
      })
    for (id, fields) in rows {
      table.add([id] + names.map { fields[$0].map(cell) ?? "" })
    }
    return table
  }

  private static func isNumber(_ value: Value) -> Bool {
    value.integer != nil || value.double != nil
  }

  /// Texts without their quotes; everything else as in JSON.
  private static func cell(_ value: Value) -> String {
    value.string ?? value.timestamp.map(JSONWriter.dateText) ?? JSONWriter.line(value)
  }
}
