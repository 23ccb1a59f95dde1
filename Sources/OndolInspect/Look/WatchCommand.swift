// `ondol watch` and `ondol tail`: changes in a database that another process writes, as they
// happen: one object per line, each flushed at once. They end when they are interrupted, or when
// the output is no longer read.

import ArgumentParser
import Ondol

/// A token in the form that people enter.
private func token(_ text: String) throws(CommandFailure) -> ChangeToken {
  guard let token = ChangeToken(text) else {
    throw CommandFailure(.usage, "\(text) is not a token; watch and tail print tokens")
  }
  return token
}

struct WatchCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "watch", abstract: "Prints the changes of a query's result as they happen.",
    discussion: """
      Works beside the app that writes. Lines with the type added, modified or removed; a line \
      with the type current says that everything until then was told.
      """)

  @OptionGroup var database: DatabaseArgument
  @OptionGroup var documents: QueryOptions
  @OptionGroup var result: ResultOptions

  @Option(help: "Begin with the differences since this token.")
  var since: String?

  @Flag(help: "Begin with the whole result.")
  var snapshot = false

  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard since == nil || !snapshot else {
      throw ValidationError("--since and --snapshot exclude each other")
    }
  }

  func run(in database: Database) async throws {
    let query = try result.apply(to: try documents.source(in: database))
    var rows = RowWriter(
      globals.forEvents, .report(schema: "watch/1", columns: Self.columns))
    let updates = try since.map { query.snapshots(since: try token($0)) } ?? query.snapshots
    var isFirst = true
    for try await state in updates {
      if !isFirst || snapshot || since != nil {
        for change in state.documentChanges { try rows.write(Self.row(change)) }
      }
      isFirst = false
      var current: [Cell] = [("type", "current"), ("count", .integer(Int64(state.count)))]
      if let token = state.changeToken { current.append(("token", .string("\(token)"))) }
      try rows.write(current)
      try rows.flush()
    }
    try rows.finish()
  }

  private static let columns = [
    "type", "path", "version", "oldIndex", "newIndex", "fields", "count", "token",
  ]

  private static func row(_ change: DocumentChange) -> [Cell] {
    let type =
      switch change.type {
      case .added: "added"
      case .modified: "modified"
      case .removed: "removed"
      }
    let document = change.document
    var row: [Cell] = [
      ("type", .string(type)), ("path", .string(document.reference.path)),
      ("version", .integer(Int64(clamping: document.version.rawValue))),
    ]
    if let index = change.oldIndex { row.append(("oldIndex", .integer(Int64(index)))) }
    if let index = change.newIndex { row.append(("newIndex", .integer(Int64(index)))) }
    row.append(("fields", .map(document.data())))
    return row
  }
}

struct TailCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "tail", abstract: "Prints every change of every commit, as it happens.",
    discussion: """
      Needs a database whose app keeps changes (changeRetention). --since goes on behind a token \
      that an earlier run printed, and misses nothing.
      """)

  @OptionGroup var database: DatabaseArgument

  @Option(help: "Continue after this token.")
  var since: String?

  @Option(help: "Only documents of this collection, a path.")
  var coll: String?

  @OptionGroup var globals: GlobalOptions

  func run(in database: Database) async throws {
    var rows = RowWriter(globals.forEvents, .report(schema: "tail/1", columns: Self.columns))
    let start = try since.map(token) ?? database.changeToken()
    // Reports the point from which on no change is missed.
    try rows.write([("type", "begin"), ("token", .string("\(start)"))])
    try rows.flush()
    for try await commit in database.changes(since: start) {
      for row in self.rows(of: commit) {
        let place: [Cell] = [
          ("commit", .integer(Int64(clamping: commit.version.rawValue))),
          ("time", .timestamp(commit.time)), ("token", .string("\(commit.token)")),
        ]
        try rows.write(row + place)
      }
      try rows.flush()
    }
    try rows.finish()
  }

  private static let columns = ["type", "path", "fields", "before", "commit", "time", "token"]

  private func rows(of commit: DatabaseChange) -> [[Cell]] {
    var rows: [[Cell]] = []
    for document in commit.documents
    where coll == nil || document.reference.parent.path == coll {
      var row: [Cell] = [
        ("type", .string(document.before.exists ? "modified" : "added")),
        ("path", .string(document.reference.path)),
      ]
      if document.after.exists {
        row.append(("fields", .map(document.after.data())))
      } else {
        row[0] = ("type", "removed")
      }
      if document.before.exists { row.append(("before", .map(document.before.data()))) }
      rows.append(row)
    }
    guard coll == nil else { return rows }
    for object in commit.objects {
      let type = object.after == nil ? "objectRemoved" : "object"
      var row: [Cell] = [
        ("type", .string(type)), ("path", .string(object.reference.fullPath)),
      ]
      if let blob = object.after?.blob { row.append(("fields", .map(["blob": .blob(blob)]))) }
      rows.append(row)
    }
    if let dropped = commit.droppedCollection {
      rows.append([("type", "dropped"), ("path", .string(dropped))])
    }
    if let renamed = commit.renamedCollection {
      rows.append([
        ("type", "renamed"), ("path", .string(renamed.from)),
        ("fields", .map(["to": .string(renamed.to)])),
      ])
    }
    return rows
  }
}
