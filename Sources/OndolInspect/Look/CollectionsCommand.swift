// `ondol colls`, `ondol indexes` and `ondol index dump`: what the database knows of its
// collections.

import ArgumentParser
import Ondol

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
      for entry in try await database.contents().collections
      where collection == nil || entry.pattern == collection {
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
