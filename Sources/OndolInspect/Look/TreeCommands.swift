// `ondol tree`: the realtime tree: a node's value, its children, and what happens to it.

import ArgumentParser
import Ondol
import OndolJSON

struct TreeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "tree", abstract: "Looks into the realtime tree.",
    subcommands: [TreeGetCommand.self, TreeListCommand.self, TreeWatchCommand.self])
}

struct TreeGetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "get", abstract: "Prints what is at a path of the tree, as JSON.")

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The path, as scores/kim; / is the root.")
  var path: String

  @Flag(help: "With priorities, as .priority and .value.")
  var priorities = false

  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    try await database.withDatabase { database in
      let node = try await TreeCommand.reference(path, database).getData()
      guard node.exists else { throw CommandFailure(.notFound, "there is nothing at \(path)") }
      var output = Output()
      let value = priorities ? node.exportedValue : node.value
      try output.print(
        globals.format == .raw
          ? ValueText.plain(value, globals.ejson) : ValueText.json(value, globals.ejson))
      try output.flush()
    }
  }
}

struct TreeListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls", abstract: "Lists the children of a node of the tree.")

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The path, as scores; the root when not given.")
  var path = "/"

  @Option(help: "At most so many children.")
  var limit: Int?

  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard limit ?? 0 >= 0 else { throw ValidationError("--limit must not be negative") }
  }

  func run() async throws {
    try await database.withDatabase { database in
      let columns = ["key", "kind", "children", "value", "priority"]
      var rows = RowWriter(globals, .report(schema: "tree-ls/1", columns: columns))
      var count = 0
      for try await child in TreeCommand.reference(path, database).treeQuery.children {
        if count == limit ?? .max { break }
        count += 1
        var row: [Cell] = [
          ("key", .string(child.key ?? "")), ("kind", .string(ValueText.kind(child.value))),
          ("children", .integer(Int64(child.childrenCount))),
        ]
        if !child.hasChildren { row.append(("value", child.value)) }
        if let priority = child.priority { row.append(("priority", priority)) }
        try rows.write(row)
      }
      try rows.finish()
    }
  }
}

struct TreeWatchCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "watch", abstract: "Prints what happens to a node and its children.",
    discussion: "Begins with the children that are there, as added.")

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The path, as scores; the root when not given.")
  var path = "/"

  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    try await database.withDatabase { database in
      var globals = globals
      if globals.chosenFormat == .table || globals.chosenFormat == .json {
        globals.format = .jsonl
      }
      let columns = ["type", "path", "value", "previous"]
      var rows = RowWriter(globals, .report(schema: "tree-watch/1", columns: columns))
      let kinds = Set(TreeEvent.Kind.allCases)
      for try await event in TreeCommand.reference(path, database).observe(kinds) {
        var row: [Cell] = [
          ("type", .string("\(event.kind)")), ("path", .string(event.snapshot.reference.path)),
          ("value", event.snapshot.value),
        ]
        if let previous = event.previousSiblingKey {
          row.append(("previous", .string(previous)))
        }
        try rows.write(row)
        try rows.flush()
      }
      try rows.finish()
    }
  }
}

extension TreeCommand {
  /// The node at a path; slashes at its ends count for nothing.
  static func reference(_ path: String, _ database: Database) -> TreeReference {
    let path = path.split(separator: "/").joined(separator: "/")
    return path.isEmpty ? database.tree : database.tree.child(path)
  }
}
