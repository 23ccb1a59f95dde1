// `ondol colls`, `ondol indexes` and `ondol index dump`: what the database knows of its
// collections.

import ArgumentParser
import Ondol
import OndolJSON

struct CollectionsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "colls", abstract: "Prints the collections and how much is in each.",
    discussion: "users/posts stands for the collections posts of all users.")

  @OptionGroup var database: DatabaseArgument
  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    try await database.withDatabase { database in
      let columns = ["collection", "documents", "bytes", "indexes"]
      var rows = RowWriter(globals, .report(schema: "colls/1", columns: columns))
      for collection in try await database.contents().collections {
        try rows.write([
          ("collection", .string(collection.pattern)),
          ("documents", .integer(Int64(collection.documents))),
          ("bytes", .integer(Int64(collection.bytes))),
          ("indexes", .integer(Int64(collection.indexes.count))),
        ])
      }
      try rows.finish()
    }
  }
}

struct IndexesCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "indexes", abstract: "Prints the indexes of a collection, or of all.")

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The collection, as colls prints it.")
  var collection: String?

  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    try await database.withDatabase { database in
      let columns = ["collection", "index", "state", "entries", "bytes"]
      var rows = RowWriter(globals, .report(schema: "indexes/1", columns: columns))
      let all = try await database.contents().collections
      let found = collection.map { name in all.filter { $0.pattern == name } } ?? all
      if let collection, found.isEmpty {
        throw CommandFailure(.notFound, "there is no collection \(collection)")
      }
      for entry in found {
        for index in entry.indexes {
          try rows.write([
            ("collection", .string(entry.pattern)), ("index", .string(index.name)),
            ("state", .string(index.isReady ? "ready" : "building")),
            ("entries", .integer(Int64(index.entries))), ("bytes", .integer(Int64(index.bytes))),
          ])
        }
      }
      try rows.finish()
    }
  }
}

struct IndexCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "index", abstract: "Looks into an index.", subcommands: [IndexDumpCommand.self])
}

struct IndexDumpCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "dump", abstract: "Prints the rows of an index, in its order.",
    discussion: """
      Values are as the index has them: 3.0 is 3, and of one too long for a key only that it was \
      cut is known. Bounds are looked at row by row. A name that begins with - stands behind --.
      """)

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The collection, as colls prints it.")
  var collection: String

  @Argument(help: "The index, as indexes prints it.")
  var index: String

  @Option(help: "Only rows whose first value is this or comes behind it, in JSON.")
  var from: String?

  @Option(help: "Only rows whose first value is this or comes before it, in JSON.")
  var to: String?

  @Option(help: "At most so many rows.")
  var limit = Int.max

  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    let bounds = (least: try from.map(Self.value), greatest: try to.map(Self.value))
    try await database.withDatabase { database in
      var rows = RowWriter(
        globals, .report(schema: "index-dump/1", columns: Self.columns))
      var left = limit
      var next: [UInt8]?
      repeat {
        try Interruption.check()
        guard
          let page = try await database.listIndex(
            index, of: collection, bounds: bounds, from: next, limit: 500)
        else { throw CommandFailure(.notFound, "\(collection) has no index '\(index)'") }
        for row in page.rows.prefix(left) {
          try rows.write(Self.cells(of: row, page.fields))
        }
        left -= min(left, page.rows.count)
        next = left > 0 ? page.next : nil
      } while next != nil
      try rows.finish()
    }
  }

  private static func value(_ text: String) throws(CommandFailure) -> Value {
    do throws(JSONError) {
      return try JSONReader.read(Array(text.utf8))
    } catch {
      throw CommandFailure(.usage, "\(text) is no value: \(error.reason)")
    }
  }

  private static let columns = ["values", "missing", "cut", "document"]

  private static func cells(of row: ListedIndexRow, _ fields: [String]) -> [Cell] {
    var values: [Value] = []
    var missing: [Value] = []
    var cut: [Value] = []
    for (component, field) in zip(row.components, fields) {
      switch component {
      case .value(let value): values.append(value)
      case .missing:
        values.append(.null)
        missing.append(.string(field))
      case .cut:
        values.append(.null)
        cut.append(.string(field))
      }
    }
    return [
      ("values", .array(values)), ("missing", .array(missing)), ("cut", .array(cut)),
      ("document", .string(row.document)),
    ]
  }
}
