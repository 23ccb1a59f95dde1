// `ondol colls`, `ondol indexes` and `ondol index dump`: the database's information about its
// collections.

import ArgumentParser
import Ondol
import OndolJSON

struct CollectionsCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "colls", abstract: "Prints the collections and their sizes.",
    discussion: """
      users/posts stands for the collections posts of all users. ownKey says of a collection with \
      a key of its own whether that is here: present, or missing, and then nothing was counted.
      """)

  @OptionGroup var database: DatabaseArgument
  @OptionGroup var globals: GlobalOptions

  func run(in database: Database) async throws {
    let collections = try await database.contents().collections
    let haveKeys = collections.contains { $0.ownKey != nil }
    let rows = collections.map { collection -> [Cell] in
      let cells: [Cell] = [
        ("collection", .string(collection.pattern)),
        ("documents", .number(collection.documents)), ("bytes", .number(collection.bytes)),
        ("indexes", .number(collection.indexes.count)),
      ]
      return haveKeys ? cells + [("ownKey", collection.ownKey.text)] : cells
    }
    let columns = ["collection", "documents", "bytes", "indexes"]
    try globals.report("colls/1", columns + (haveKeys ? ["ownKey"] : []), rows)
  }
}

extension DatabaseContents.OwnKey? {
  /// The state of a collection's own key in reports; null if it has none.
  var text: Value { map { .string($0.rawValue) } ?? .null }
}

struct IndexesCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "indexes", abstract: "Prints the indexes of a collection, or of all.")

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The collection, as colls prints it.")
  var collection: String?

  @OptionGroup var globals: GlobalOptions

  func run(in database: Database) async throws {
    let all = try await database.contents().collections
    let found = collection.map { name in all.filter { $0.pattern == name } } ?? all
    if let collection, found.isEmpty {
      throw CommandFailure(.notFound, "there is no collection \(collection)")
    }
    let rows = found.flatMap { entry in
      entry.indexes.map { index in
        [
          Cell("collection", .string(entry.pattern)), Cell("index", .string(index.name)),
          Cell("state", .string(index.isReady ? "ready" : "building")),
          Cell("entries", .number(index.entries)), Cell("bytes", .number(index.bytes)),
        ]
      }
    }
    try globals.report("indexes/1", ["collection", "index", "state", "entries", "bytes"], rows)
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

  @Option(help: "Only rows whose first value is this or comes after it, in JSON.")
  var from: String?

  @Option(help: "Only rows whose first value is this or comes before it, in JSON.")
  var to: String?

  @Option(help: "The largest number of rows.")
  var limit = Int.max

  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    let bounds = (least: try from.map(Self.value), greatest: try to.map(Self.value))
    try await database.withDatabase { database in
      try await globals.report("index-dump/1", ["values", "missing", "cut", "document"]) { rows in
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
      }
    }
  }

  private static func value(_ text: String) throws(CommandFailure) -> Value {
    do throws(JSONError) {
      return try JSONReader.read(Array(text.utf8))
    } catch {
      throw CommandFailure(.usage, "\(text) is not a value: \(error.reason)")
    }
  }

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
