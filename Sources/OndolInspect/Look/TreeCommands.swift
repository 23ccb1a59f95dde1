// `ondol tree`: the realtime tree: a node's value, its children, and its changes.

import ArgumentParser
import Ondol
import OndolJSON

struct TreeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "tree", abstract: "Looks into the realtime tree.",
    subcommands: [TreeGetCommand.self, TreeListCommand.self, TreeWatchCommand.self])
}

struct TreeGetCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "get", abstract: "Prints the value at a path of the tree, as JSON.")

  @OptionGroup var place: NodeArgument

  @Flag(help: "Include priorities, as .priority and .value.")
  var priorities = false

  @OptionGroup var globals: GlobalOptions

  var database: DatabaseArgument { place.database }

  func run(in database: Database) async throws {
    let node = try await place.node(in: database).getData()
    guard node.exists else { throw CommandFailure(.notFound, "there is nothing at \(place.path)") }
    var output = Output()
    let value = priorities ? node.exportedValue : node.value
    try output.print(
      globals.format == .raw
        ? ValueText.plain(value, globals.ejson) : ValueText.json(value, globals.ejson))
    try output.flush()
  }
}

struct TreeListCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls", abstract: "Lists the children of a node of the tree.")

  @OptionGroup var place: NodeArgument

  @Option(help: "The largest number of children.", transform: wholeNumber)
  var limit: Int?

  @OptionGroup var globals: GlobalOptions

  var database: DatabaseArgument { place.database }

  func run(in database: Database) async throws {
    let columns = ["key", "kind", "children", "value", "priority"]
    try await globals.report("tree-ls/1", columns) { rows in
      var count = 0
      for try await child in place.node(in: database).treeQuery.children {
        if count == limit ?? .max { break }
        count += 1
        var row: [Cell] = [
          ("key", .string(child.key ?? "")), ("kind", .string(ValueText.kind(child.value))),
          ("children", .number(child.childrenCount)),
        ]
        if !child.hasChildren { row.append(("value", child.value)) }
        if let priority = child.priority { row.append(("priority", priority)) }
        try rows.write(row)
      }
    }
  }
}

struct TreeWatchCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "watch", abstract: "Prints the changes of a node and its children.",
    discussion: "Begins with the existing children, as added.")

  @OptionGroup var place: NodeArgument

  @OptionGroup var globals: GlobalOptions

  var database: DatabaseArgument { place.database }

  func run(in database: Database) async throws {
    let columns = ["type", "path", "value", "previous"]
    try await globals.forEvents.report("tree-watch/1", columns) { rows in
      let kinds = Set(TreeEvent.Kind.allCases)
      for try await event in place.node(in: database).observe(kinds) {
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
    }
  }
}

/// A node of the tree.
struct NodeArgument: ParsableArguments {
  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The path, such as scores/kim; by default the root.")
  var path = "/"

  /// The node. Slashes at the ends of its path are ignored.
  func node(in database: Database) -> TreeReference {
    let path = path.split(separator: "/").joined(separator: "/")
    return path.isEmpty ? database.tree : database.tree.child(path)
  }
}
