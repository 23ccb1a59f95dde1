// `ondol diff` and `ondol digest`: whether two databases have the same contents, and the
// differences. Both compare contents only: names and fields of documents, storage paths, the tree
// and declarations. Versions, times and files may differ.

import ArgumentParser
import Foundation
import Ondol
import OndolJSON
import OndolTerminal

struct DigestCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "digest",
    abstract: "Prints the SHA-256 of the contents of a database or of some collections.",
    discussion: """
      The same for the same contents, whatever the files, versions and times are like. Without \
      collections: all documents, storage paths, indexes, the tree, in one sum.
      """)

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "Collections, such as upload or users/posts for every user's.")
  var collections: [String] = []

  @OptionGroup var globals: GlobalOptions

  func run(in database: Database) async throws {
    let reader = try DumpReader(database)
    if collections.isEmpty { try await reader.refuseLocked() }
    let all = try await reader.collections()
    try await globals.report("digest/1", ["name", "documents", "sha256"]) { rows in
      if collections.isEmpty {
        let sum = try await ContentSum(of: all, rest: true, reader)
        try rows.write(sum.row(named: self.database.name))
      }
      for name in collections {
        let collection = try all.collection(named: name)
        let sum = try await ContentSum(of: [collection], rest: false, reader)
        try rows.write(sum.row(named: name))
      }
    }
  }
}

extension DumpReader {
  /// Throws if a collection cannot be read, because the comparison must be complete.
  fileprivate func refuseLocked() async throws {
    guard let name = try await lockedCollections().first else { return }
    throw CommandFailure(
      .failed, "\(name) has a key of its own, which is not here (the file KEYS)")
  }
}

extension [DumpedCollection] {
  /// The collection with the name that a person uses for it.
  func collection(named name: String) throws(CommandFailure) -> DumpedCollection {
    guard let found = first(where: { $0.pattern.joined(separator: "/") == name }) else {
      throw CommandFailure(.notFound, "there is no collection \(name)")
    }
    return found
  }
}

/// Computes a digest of contents.
private struct ContentSum {
  private var hasher = DumpHasher()
  private var documents = 0
  private var writer = JSONWriter(.canonical)

  /// - Parameter rest: whether to include everything outside of collections.
  init(of collections: [DumpedCollection], rest: Bool, _ reader: DumpReader) async throws {
    for collection in collections { try await add(collection, reader) }
    if rest { try await addRest(reader) }
  }

  private mutating func add(_ collection: DumpedCollection, _ reader: DumpReader) async throws {
    var last: [UInt8]?
    repeat {
      let part = try await reader.documents(of: collection, after: last)
      last = part.last
      try Interruption.check()
      for document in part.documents {
        writer.write(
          fields: document.fields, behind: [(JSONWriter.documentIDName, .string(document.name))])
        endLine()
      }
      documents += part.documents.count
    } while last != nil
    for index in collection.indexes {
      addLine([collection.pattern.joined(separator: "/"), index.name])
    }
    if let names = collection.timeToLive { addLine(collection.pattern + ["ends"] + names) }
  }

  /// Everything outside of collections.
  private mutating func addRest(_ reader: DumpReader) async throws {
    for group in try await reader.groups() {
      for index in group.indexes { addLine(["group", group.id, index.name]) }
    }
    for index in try await reader.treeIndexes() {
      addLine(["tree"] + index.path + ["by"] + index.child)
    }
    var last: [UInt8]?
    repeat {
      let part = try await reader.nodes(after: last)
      last = part.last
      for node in part.nodes {
        let time = node.time.map { Value.integer($0 / 1_000) }
        writer.write(
          .array([
            .array(node.path.map { .string($0) }), node.value ?? time ?? .null,
            node.priority ?? .null,
          ]))
        endLine()
      }
    } while last != nil
  }

  private mutating func addLine(_ texts: [String]) {
    writer.write(.array(texts.map { .string($0) }))
    endLine()
  }

  private mutating func endLine() {
    writer.endLine()
    hasher.update(writer.bytes)
    writer.removeAll()
  }

  func row(named name: String) -> [Cell] {
    [
      Cell("name", .string(name)), Cell("documents", .number(documents)),
      Cell("sha256", .string(hasher.digest().hex)),
    ]
  }
}

struct DiffCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "diff",
    abstract: "Prints the documents that differ between two databases.",
    discussion: """
      One line for each document that only one of them has, or that has other fields: added (only \
      in OTHER), removed, changed. Status 0 when there is none, 1 otherwise.
      """)

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "The other database's directory or address.", completion: .directory)
  var other: String

  @Flag(help: "Also compare versions and times.")
  var versions = false

  @OptionGroup var globals: GlobalOptions

  func run(in database: Database) async throws {
    try await DatabaseArgument(at: other).withDatabase { other in
      var count = 0
      try await globals.report("diff/1", ["change", "document", "fields"]) { rows in
        count = try await compare(database, other, &rows)
      }
      guard count == 0 else {
        throw CommandFailure(.failed, counted(count, "document differs", "documents differ"))
      }
    }
  }

  private func compare(
    _ left: Database, _ right: Database, _ rows: inout RowWriter
  ) async throws -> Int {
    let (left, right) = (try DumpReader(left), try DumpReader(right))
    try await left.refuseLocked()
    try await right.refuseLocked()
    let lefts = try await left.collections()
    let rights = try await right.collections()
    var count = 0
    let known = Set(lefts.map(\.pattern))
    let all = lefts + rights.filter { !known.contains($0.pattern) }
    for collection in all.sorted(by: { $0.pattern.lexicographicallyPrecedes($1.pattern) }) {
      var a = DocumentWalk(left, lefts.first { $0.pattern == collection.pattern })
      var b = DocumentWalk(right, rights.first { $0.pattern == collection.pattern })
      try await a.advance()
      try await b.advance()
      while a.current != nil || b.current != nil {
        try Interruption.check()
        if let row = try await Self.step(&a, &b, versions: versions) {
          count += 1
          try rows.write(row)
        }
      }
    }
    return count
  }

  /// Advances one or both iterations by one document.
  private static func step(
    _ left: inout DocumentWalk, _ right: inout DocumentWalk, versions: Bool
  ) async throws -> [Cell]? {
    guard let new = right.current else {
      let gone = left.current.map { Self.row("removed", $0.name, []) }
      try await left.advance()
      return gone
    }
    guard let old = left.current, !new.order.lexicographicallyPrecedes(old.order) else {
      try await right.advance()
      return row("added", new.name, [])
    }
    try await left.advance()
    guard old.order == new.order else { return row("removed", old.name, []) }
    try await right.advance()
    var fields = Set(old.fields.keys).union(new.fields.keys).filter { name in
      text(old.fields[name]) != text(new.fields[name])
    }
    if versions {
      if old.version != new.version { fields.insert("__version__") }
      if old.created != new.created { fields.insert("__created__") }
      if old.updated != new.updated { fields.insert("__updated__") }
    }
    return fields.isEmpty ? nil : row("changed", new.name, fields.sorted())
  }

  /// Values are equal if their text forms are equal, to the last bit.
  private static func text(_ value: Value?) -> String? {
    value.map { JSONWriter.line($0, .canonical) }
  }

  private static func row(_ change: String, _ name: String, _ fields: [String]) -> [Cell] {
    [
      Cell("change", .string(change)), Cell("document", .string(name)),
      Cell("fields", .strings(fields)),
    ]
  }
}

/// Iterates over a collection's documents.
private struct DocumentWalk {
  private let reader: DumpReader
  private let collection: DumpedCollection?
  private var page: ArraySlice<DumpedDocument> = []
  private var last: [UInt8]?
  private var isAtEnd = false
  private(set) var current: DumpedDocument?

  init(_ reader: DumpReader, _ collection: DumpedCollection?) {
    self.reader = reader
    self.collection = collection
    isAtEnd = collection == nil
  }

  mutating func advance() async throws {
    while page.isEmpty, !isAtEnd, let collection {
      let part = try await reader.documents(of: collection, after: last)
      page = part.documents[...]
      last = part.last
      isAtEnd = last == nil
    }
    current = page.popFirst()
  }
}
