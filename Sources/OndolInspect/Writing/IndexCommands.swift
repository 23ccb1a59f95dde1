// `ondol mkindex`, `ondol mkindexes`, `ondol rmindex` and `ondol reindex`: the declarations for
// collections.

import ArgumentParser
import Foundation
import Ondol
import OndolJSON

struct MakeIndexCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "mkindex",
    abstract: "Makes an index, or names the field by which documents expire.",
    discussion: """
      An index of users/alice/posts serves the posts of all users. Status 9 when two \
      documents agree in what --unique says they may not.
      """)

  @OptionGroup var place: IndexedCollection

  @Argument(
    help: """
      Fields, such as 'status, workDate desc'; tags[] for the elements of an array, name folded \
      for texts compared without case and accents.
      """)
  var fields: String?

  @Flag(help: "Allow no two documents of a collection with the same values in all fields.")
  var unique = false

  @Flag(help: "With --unique: null is a value, which only one document may have.")
  var nullsNotDistinct = false

  @Flag(help: "Index the elements of the field, which is an array.")
  var array = false

  @Flag(help: "Index the words in the fields' texts, for `ondol search`.")
  var search = false

  @Flag(help: "With --search: index the stems of English words, so that lamp finds lamps.")
  var english = false

  @Option(name: .customLong("where"), help: "Only documents that meet this, such as 'price >= 10'.")
  var condition: String?

  @Option(help: "The field with the time at which a document expires.")
  var ttl: String?

  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard (fields == nil) == (ttl != nil) else {
      throw ValidationError("say which fields, or --ttl FIELD, which makes no index")
    }
    if array, unique { throw ValidationError("--array and --unique exclude each other") }
    if nullsNotDistinct, !unique { throw ValidationError("--nulls-not-distinct needs --unique") }
    if english, !search { throw ValidationError("--english needs --search") }
    if search, unique || array || ttl != nil || condition != nil {
      throw ValidationError("--search excludes --unique, --array, --where and --ttl")
    }
    if place.group, unique || ttl != nil {
      throw ValidationError("--group excludes --unique and --ttl")
    }
  }

  func run() async throws {
    let condition = try condition.map { try QueryOptions.filter($0) }
    let fields = try fieldNames()
    try await place.database.withDatabase(writing: true) { database in
      if let ttl {
        return try await database.collection(place.collection)
          .setTimeToLive(field: FieldPath(ttl))
      }
      let name = try await globals.showing(.things("documents")) { bar in
        let progress = { (progress: IndexProgress) in bar.show(progress.documents) }
        if search, place.group {
          let group = database.collectionGroup(place.collection)
          return try await group.createSearchIndex(
            on: fields, tokenization: english ? .english : .plain, progress: progress)
        }
        if search {
          return try await database.collection(place.collection)
            .createSearchIndex(
              on: fields, tokenization: english ? .english : .plain, progress: progress)
        }
        if place.group {
          let group = database.collectionGroup(place.collection)
          return try await group.createIndex(on: fields, where: condition, progress: progress)
        }
        return try await database.collection(place.collection).createIndex(
          on: fields, unique: unique, nullsDistinct: !nullsNotDistinct, where: condition,
          progress: progress)
      }
      try report("mkindex/1", [name], place.collection, globals)
    }
  }

  /// The fields in the library's form, with a leading - for descending ones.
  private func fieldNames() throws(CommandFailure) -> [String] {
    guard let fields else { return [] }
    let texts = try QueryOptions.read { () throws(WhereError) in
      try WhereParser.indexFields(fields)
    }
    guard array else { return texts }
    guard texts.count == 1, let text = texts.first else {
      throw CommandFailure(.usage, "--array takes one field; in several write one as tags[]")
    }
    return [text.hasSuffix("[]") ? text : text + "[]"]
  }
}

struct MakeIndexesCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "mkindexes",
    abstract: "Creates the indexes that a firestore.indexes.json declares.",
    discussion: """
      An index of the scope COLLECTION is made for every collection there is with its id, or for \
      the one at the top when there is none; one of the scope COLLECTION_GROUP for all, also \
      those that are made later. What Ondol does not have is reported, and the status is then 1.
      """)

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The file, as `firebase firestore:indexes` writes it.", completion: .file())
  var file: String

  @OptionGroup var globals: GlobalOptions

  var isWriting: Bool { true }

  func run(in database: Database) async throws {
    guard let bytes = FileManager.default.contents(atPath: file) else {
      throw CommandFailure(.notFound, "\(file) cannot be read")
    }
    let declared: FirestoreIndexes
    do throws(FirestoreIndexes.Problem) {
      declared = try FirestoreIndexes([UInt8](bytes))
    } catch {
      throw CommandFailure(.usage, "\(file): \(error.reason)")
    }
    var made: [(collection: String, index: String)] = []
    for index in declared.indexes {
      try Interruption.check()
      try await globals.showing(.things("documents")) { bar in
        let progress = { (progress: IndexProgress) in bar.show(progress.documents) }
        if index.isOfGroup {
          let name = try await database.collectionGroup(index.collectionID).createIndex(
            on: index.fields, progress: progress)
          made.append((index.collectionID, name))
          return
        }
        for collection in try await database.collections(called: index.collectionID) {
          let name = try await collection.createIndex(on: index.fields, progress: progress)
          made.append((collection.path, name))
        }
      }
    }
    for (collectionID, field) in declared.timeToLive {
      for collection in try await database.collections(called: collectionID) {
        try await collection.setTimeToLive(field: FieldPath(field))
        made.append((collection.path, "ttl \(field)"))
      }
    }
    if !globals.quiet {
      try globals.report(
        "mkindexes/1", ["collection", "index"],
        made.map { [("collection", .string($0.collection)), ("index", .string($0.index))] })
    }
    guard declared.others.isEmpty else {
      throw CommandFailure(.failed, lines: declared.others)
    }
  }
}

struct RemoveIndexCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "rmindex",
    abstract: "Removes indexes, by the names that `ondol indexes` prints.",
    discussion: "The status is 3 if there is none of that name.")

  @OptionGroup var place: IndexedCollection

  @Argument(help: "The indexes' names; after -- if one begins with -.")
  var names: [String] = []

  @Flag(help: "Documents no longer expire.")
  var ttl = false

  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard !names.isEmpty || ttl else { throw ValidationError("say which index") }
  }

  var database: DatabaseArgument { place.database }
  var isWriting: Bool { true }

  func run(in database: Database) async throws {
    let collection = database.collection(place.collection)
    let group = database.collectionGroup(place.collection)
    if ttl { try await collection.setTimeToLive(field: nil) }
    for name in names {
      try Interruption.check()
      let listed =
        place.group ? try await group.listIndexes() : try await collection.listIndexes()
      guard listed.contains(where: { $0.name == name }) else {
        throw CommandFailure(.notFound, "there is no index \(name) of \(place.collection)")
      }
      if place.group {
        try await group.dropIndex(named: name)
      } else {
        try await collection.dropIndex(named: name)
      }
    }
  }
}

struct ReindexCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "reindex",
    abstract: "Rebuilds indexes from the documents.",
    discussion: "Queries do not use an index while it is being built.")

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The collection, a path such as upload.")
  var collection: String

  @Argument(help: "The indexes' names; by default all.")
  var names: [String] = []

  @OptionGroup var globals: GlobalOptions

  var isWriting: Bool { true }

  func run(in database: Database) async throws {
    let built = try await globals.showing(.things("documents")) { bar in
      try await database.rebuildIndexes(
        of: try CollectionPath(collection), named: names.isEmpty ? nil : names
      ) { bar.show($0.documents) }
    }
    for name in names where !built.contains(name) {
      throw CommandFailure(.notFound, "there is no index \(name) of \(collection)")
    }
    try report("reindex/1", built, collection, globals)
  }
}

/// The collection that indexes are declared for.
struct IndexedCollection: ParsableArguments {
  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The collection, a path such as upload; with --group a collection id.")
  var collection: String

  @Flag(help: "Over all collections with this id, wherever they are.")
  var group = false
}

/// Reports which indexes were built.
private func report(
  _ schema: String, _ names: [String], _ collection: String, _ globals: GlobalOptions
) throws(CommandFailure) {
  if globals.quiet { return }
  try globals.report(
    schema, ["collection", "index"],
    names.map { [("collection", .string(collection)), ("index", .string($0))] })
}
