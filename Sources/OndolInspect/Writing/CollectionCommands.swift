// `ondol mkcoll` and `ondol rmcoll`: creates a collection with its own key, and removes a
// collection with everything in it. Other collections exist as long as they have documents, and
// need no creation.

import ArgumentParser
import Ondol

struct MakeCollectionCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "mkcoll",
    abstract: "Makes a collection with a key of its own in an encrypted database.",
    discussion: """
      The keys are in the file KEYS, which backups leave out: `ondol rmcoll` erases the key, and \
      so the collection in all copies made without it. Status 9 when there is such a collection. \
      One without a key of its own needs no making: it is there while it has documents.
      """)

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The collection, one at the top such as upload.")
  var collection: String

  @Flag(help: "With a key of its own; there is no other way to make one.")
  var ownKey = false

  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard ownKey else {
      throw ValidationError("say --own-key; a document's first write creates any other collection")
    }
  }

  var isWriting: Bool { true }

  func run(in database: Database) async throws {
    try await database.collection(collection).createWithOwnKey()
    globals.say("Made \(collection), with a key of its own.")
  }
}

struct RemoveCollectionCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "rmcoll",
    abstract: "Removes a collection with everything in it and below it, and its own key.",
    discussion: """
      What is declared of it stays, such as its indexes, unless --declarations is given. It is \
      asked for, or needs --yes. Status 3 when there is no such collection.
      """)

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The collection, a path such as upload.")
  var collection: String

  @Flag(help: "Also its declarations; only for a collection at the top.")
  var declarations = false

  @Flag(help: "Do not ask.")
  var yes = false

  @OptionGroup var globals: GlobalOptions

  var isWriting: Bool { true }

  func run(in database: Database) async throws {
    let path = try CollectionPath(collection)
    let known = try await database.collectionPatterns()
    let ids = path.segments.enumerated().filter { $0.offset.isMultiple(of: 2) }.map(\.element)
    guard known.contains(ids.joined(separator: "/")) else {
      throw CommandFailure(.notFound, "there is no collection \(collection)")
    }
    try Confirmation.ask(
      "Remove \(collection) and everything in it?", yes: yes, otherwise: "nothing was removed")
    try await database.collection(collection).drop(includingDeclarations: declarations)
    globals.say("Removed \(collection).")
  }
}
