// `ondol get`: documents by their paths. Status 3 tells a script that one is missing.

import ArgumentParser
import Ondol
import OndolJSON

struct GetCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "get", abstract: "Prints the fields of documents.",
    discussion: """
      One document is its fields and nothing else; several have their ids in front. Status 3 when \
      one is not there; the others are printed all the same.
      """)

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The documents' paths, such as upload/lamp.")
  var paths: [String]

  @Option(help: "Only this field, such as size.width; repeat it for several.")
  var field: [String] = []

  @Flag(help: "Also each document's version, and the times of its creation and last change.")
  var rev = false

  @OptionGroup var globals: GlobalOptions

  func run(in database: Database) async throws {
    var missing: [String] = []
    var rows = RowWriter(globals, .documents)
    for path in paths {
      let document = try await database.document(DocumentPath(path)).getDocument()
      guard document.exists else {
        missing.append("there is no document at \(path)")
        continue
      }
      if !field.isEmpty {
        let cells = field.compactMap { name in
          document.get(FieldPath(name)).map { Cell(name, $0) }
        }
        for name in field where !cells.contains(where: { $0.name == name }) {
          missing.append("there is no field \(name) at \(path)")
        }
        try rows.write(revision(of: document) + cells)
      } else if globals.chosenFormat == .table {
        // A person reads one document from top to bottom.
        for (name, value) in revision(of: document) + Self.sorted(document.data()) {
          let kind = Value.string(ValueText.kind(value))
          let cells = [Cell("field", .string(name)), Cell("kind", kind), Cell("value", value)]
          try rows.write(paths.count > 1 ? [Cell("document", .string(path))] + cells : cells)
        }
      } else if paths.count > 1 {
        let id = Cell(JSONWriter.documentIDName, .string(document.documentID))
        try rows.write([id] + revision(of: document) + Self.sorted(document.data()))
      } else {
        try rows.write(revision(of: document) + Self.sorted(document.data()))
      }
    }
    try rows.finish()
    guard missing.isEmpty else {
      throw CommandFailure(
        .notFound, lines: missing.enumerated().map { $0 == 0 ? $1 : "ondol: \($1)" })
    }
  }

  /// With `--rev`, the database's information about a document besides its fields.
  private func revision(of document: DocumentSnapshot) -> [Cell] {
    guard rev else { return [] }
    return [
      (Dump.Member.version, .number(document.version.rawValue)),
      (Dump.Member.created, document.createTime.map { .timestamp($0) } ?? .null),
      (Dump.Member.updated, document.updateTime.map { .timestamp($0) } ?? .null),
    ]
  }

  private static func sorted(_ fields: [String: Value]) -> [Cell] {
    fields.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
      .map { ($0.key, $0.value) }
  }
}
