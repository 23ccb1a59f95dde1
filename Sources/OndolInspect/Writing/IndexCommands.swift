// `ondol mkindex`, `ondol rmindex` and `ondol reindex`: what is declared for a collection.

import ArgumentParser
import Ondol
import OndolJSON

struct MakeIndexCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "mkindex",
    abstract: "Makes an index, or says which field tells when documents end.",
    discussion: """
      An index of users/alice/posts serves the posts of all users. Status 9 when it is to be \
      unique and two documents agree.
      """)

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The collection, a path as upload; with --group a collection id.")
  var collection: String

  @Argument(help: "Fields, as 'status, workDate desc'.")
  var fields: String?

  @Flag(help: "No two documents of a collection may agree in all fields.")
  var unique = false

  @Flag(help: "On the elements of the field, which is an array.")
  var array = false

  @Flag(help: "Over all collections with this id, wherever they are.")
  var group = false

  @Option(name: .customLong("where"), help: "Only documents that meet this, as 'price >= 10'.")
  var condition: String?

  @Option(help: "The field with the moment from which on a document is no more.")
  var ttl: String?

  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard (fields == nil) == (ttl != nil) else {
      throw ValidationError("say which fields, or --ttl FIELD, which makes no index")
    }
    if array, unique { throw ValidationError("--array and --unique exclude each other") }
    if group, unique || ttl != nil {
      throw ValidationError("--group excludes --unique and --ttl")
    }
  }

  func run() async throws {
    let condition = try condition.map { text in
      try QueryOptions.read { () throws(WhereError) in try WhereExpression(text) }.filter
    }
    let fields = try fieldNames()
    try await Interruption.whileWriting {
      try await database.withDatabase(writing: true) { database in
        let bar = SharedProgressBar(.things("documents"), globals)
        let progress = { (progress: IndexProgress) in bar.show(Int64(progress.documents)) }
        var name: String?
        if let ttl {
          try await database.collection(collection).setTimeToLive(field: FieldPath(ttl))
        } else if group {
          let group = database.collectionGroup(collection)
          name =
            array
            ? try await group.createIndex(
              onArray: fields[0], where: condition, progress: progress)
            : try await group.createIndex(on: fields, where: condition, progress: progress)
        } else {
          let collection = database.collection(collection)
          name =
            array
            ? try await collection.createIndex(
              onArray: fields[0], where: condition, progress: progress)
            : try await collection.createIndex(
              on: fields, unique: unique, where: condition, progress: progress)
        }
        bar.clear()
        if let name { try IndexReport.write([name], collection, "mkindex/1", globals) }
      }
    }
  }

  /// The fields as the library has them, - in front of those that descend.
  private func fieldNames() throws(CommandFailure) -> [String] {
    guard let fields else { return [] }
    let orders = try QueryOptions.read { () throws(WhereError) in try WhereParser.orders(fields) }
    guard !array || orders.count == 1 else {
      throw CommandFailure(.usage, "--array takes one field")
    }
    return orders.map { ($0.isDescending ? "-" : "") + $0.field.description }
  }
}

struct RemoveIndexCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rmindex",
    abstract: "Removes indexes, by the names that `ondol indexes` prints.",
    discussion: "Status 3 when there is none of that name.")

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The collection, a path as upload; with --group a collection id.")
  var collection: String

  @Argument(help: "The indexes' names; behind -- when one begins with -.")
  var names: [String] = []

  @Flag(help: "Indexes over all collections with this id.")
  var group = false

  @Flag(help: "Documents do not end by themselves any more.")
  var ttl = false

  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard !names.isEmpty || ttl else { throw ValidationError("say which index") }
  }

  func run() async throws {
    try await Interruption.whileWriting {
      try await database.withDatabase(writing: true) { database in
        if ttl { try await database.collection(collection).setTimeToLive(field: nil) }
        for name in names {
          try Interruption.check()
          let listed =
            group
            ? try await database.collectionGroup(collection).listIndexes()
            : try await database.collection(collection).listIndexes()
          guard listed.contains(where: { $0.name == name }) else {
            throw CommandFailure(.notFound, "there is no index \(name) of \(collection)")
          }
          if group {
            try await database.collectionGroup(collection).dropIndex(named: name)
          } else {
            try await database.collection(collection).dropIndex(named: name)
          }
        }
      }
    }
  }
}

struct ReindexCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reindex",
    abstract: "Builds indexes anew from the documents.",
    discussion: "Queries do without an index while it is being built.")

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The collection, a path as upload.")
  var collection: String

  @Argument(help: "The indexes' names; all when none is given.")
  var names: [String] = []

  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    try await Interruption.whileWriting {
      try await database.withDatabase(writing: true) { database in
        let bar = SharedProgressBar(.things("documents"), globals)
        let built = try await database.rebuildIndexes(
          of: try CollectionPath(collection), named: names.isEmpty ? nil : names
        ) { bar.show(Int64($0.documents)) }
        bar.clear()
        for name in names where !built.contains(name) {
          throw CommandFailure(.notFound, "there is no index \(name) of \(collection)")
        }
        try IndexReport.write(built, collection, "reindex/1", globals)
      }
    }
  }
}

/// Indexes that were made.
private enum IndexReport {
  static func write(
    _ names: [String], _ collection: String, _ schema: String, _ globals: GlobalOptions
  ) throws(CommandFailure) {
    if globals.quiet { return }
    var rows = RowWriter(globals, .report(schema: schema, columns: ["collection", "index"]))
    for name in names {
      try rows.write([Cell("collection", .string(collection)), Cell("index", .string(name))])
    }
    try rows.finish()
  }
}
