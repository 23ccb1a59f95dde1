// `ondol ls`: a collection's documents in the order of their ids; a table for a person, JSON Lines
// for a program.

import ArgumentParser
import Ondol
import OndolJSON

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
      var output = Output()
      let format = ids ? nil : format ?? (Output.isTerminal ? .table : .jsonl)
      var pages = Pages(database.collection(collection), offset: offset, limit: limit)
      switch format {
      case nil:
        while let page = try await pages.next() {
          for document in page { try output.print(document.documentID) }
        }
      case .jsonl:
        while let page = try await pages.next() {
          for document in page { try output.print(Self.json(document)) }
        }
      case .json:
        var separator = "["
        while let page = try await pages.next() {
          for document in page {
            try output.print(separator + Self.json(document))
            separator = ","
          }
        }
        try output.print(separator == "[" ? "[]" : "]")
      case .table:
        var documents: [DocumentSnapshot] = []
        while let page = try await pages.next() { documents += page }
        for line in Self.table(of: documents).lines { try output.print(line) }
      }
      try output.flush()
    }
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

/// A collection's documents, some at a time, so that a list may be longer than memory. A database
/// open for reading stays as it was when it was opened, so the pages fit together.
private struct Pages {
  private static let pageLength = 1_000

  private let collection: CollectionReference
  private var offset: Int
  private var rest: Int
  private var lastID: String?

  init(_ collection: CollectionReference, offset: Int, limit: Int?) {
    self.collection = collection
    self.offset = offset
    rest = limit ?? .max
  }

  /// The next documents, at least one; nil at the end.
  mutating func next() async throws(DatabaseError) -> [DocumentSnapshot]? {
    while rest > 0 {
      var query = collection.order(by: FieldPath.documentID()).limit(to: Self.pageLength)
      if let lastID { query = query.whereField(FieldPath.documentID(), isGreaterThan: lastID) }
      let page = try await query.getDocuments().documents
      guard let last = page.last else { return nil }
      lastID = last.documentID
      let shown = Array(page.dropFirst(offset).prefix(rest))
      offset -= min(offset, page.count)
      rest -= shown.count
      if !shown.isEmpty { return shown }
    }
    return nil
  }
}
