// `ondol ls`: the collections, or a collection's documents in id order; a table for a person, JSON
// Lines for a program.

import ArgumentParser
import Ondol
import OndolJSON

struct ListCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls", abstract: "Lists a collection's documents in the order of their ids.",
    discussion: """
      Without a collection, lists the collections at the top; ownKey says of those with a key of \
      their own whether it is here: present or missing.
      """)

  @OptionGroup var place: CollectionArgument
  @OptionGroup var part: PartOptions

  @Option(help: "Only ids with this beginning.")
  var prefix: String?

  @Flag(help: "From the last id to the first.")
  var desc = false

  @Flag(help: "Only the documents' ids.")
  var ids = false

  @Flag(name: .shortAndLong, help: "Versions and times instead of fields.")
  var long = false

  @OptionGroup var globals: GlobalOptions

  var database: DatabaseArgument { place.database }

  func validate() throws {
    guard !(ids && long) else { throw ValidationError("--ids and --long exclude each other") }
  }

  func run(in database: Database) async throws {
    guard let collection = place.collection else { return try await listCollections(of: database) }
    var pages = Pages(
      database.collection(collection), prefix: prefix, isDescending: desc,
      offset: part.offset, limit: part.limit)
    if ids {
      try await listIDs(&pages)
      return try await refuseUnknown(collection, pages, in: database)
    }
    var rows = RowWriter(globals, long ? Self.longKind : .documents)
    while let page = try await pages.next() {
      for document in page {
        try long ? rows.write(Self.longRow(document)) : rows.write(document)
      }
    }
    try rows.finish()
    try await refuseUnknown(collection, pages, in: database)
  }

  /// Throws status 3 if nothing was listed because the collection does not exist.
  private func refuseUnknown(
    _ collection: String, _ pages: Pages, in database: Database
  ) async throws {
    guard !pages.hasShown else { return }
    try await UnknownNames(
      documents: database.collection(collection).query, collection: collection
    ).refuse(fields: [])
  }

  /// Ids alone are lines of text, unless a format was requested.
  private func listIDs(_ pages: inout Pages) async throws {
    var rows = RowWriter(globals.forPlainText, .report(schema: "ls/1", columns: ["id"]))
    while let page = try await pages.next() {
      for document in page { try rows.write([("id", .string(document.documentID))]) }
    }
    try rows.finish()
  }

  private func listCollections(of database: Database) async throws {
    let collections = try await database.collectionInformation()
    let haveKeys = collections.contains(where: \.hasOwnKey)
    try globals.report(
      "ls/1", ["collection"] + (haveKeys ? ["ownKey"] : []),
      collections.map { collection -> [Cell] in
        let key: Value = collection.hasOwnKey ? collection.isLocked ? "missing" : "present" : .null
        return [("collection", .string(collection.reference.path))]
          + (haveKeys ? [("ownKey", key)] : [])
      })
  }

  private static let longKind = RowWriter.Kind.report(
    schema: "ls/1", columns: ["id", "version", "updated", "created", "fields", "bytes"])

  private static func longRow(_ document: DocumentSnapshot) -> [Cell] {
    let fields = document.data()
    let bytes = JSONWriter.line(.map(fields)).utf8.count
    return [
      ("id", .string(document.documentID)),
      ("version", .number(document.version.rawValue)),
      ("updated", document.updateTime.map { .timestamp($0) } ?? .null),
      ("created", document.createTime.map { .timestamp($0) } ?? .null),
      ("fields", .number(fields.count)), ("bytes", .number(bytes)),
    ]
  }
}
