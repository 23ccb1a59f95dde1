// The whole contents of a database as lines of text, the form of the golden databases' expected
// contents. The independent reader prints the same lines, so they have no more than the description
// of the format: an index is the bytes that define it, and has no name.

import OndolEngine
import OndolJSON

@testable import Ondol

/// Makes the lines.
struct GoldenContent {
  private let storage: Storage
  private let reader: DumpReader
  private var lines: [String] = []
  /// The contents that documents refer to.
  private var contents: Set<BlobDigest> = []
  /// References with the keys to contents.
  private var sealed: [BlobDigest: BlobReference] = [:]

  static func lines(of database: Database) async throws -> [String] {
    var content = GoldenContent(database, try DumpReader(database))
    try await content.addCollections()
    try await content.addTree()
    try await content.addContents()
    return content.lines
  }

  private init(_ database: Database, _ reader: DumpReader) {
    storage = database.storage
    self.reader = reader
  }

  private mutating func add(_ members: [(String, Value)]) {
    var writer = JSONWriter()
    writer.write(fields: [:], behind: members)
    lines.append(writer.text)
  }

  private static func value(_ indexes: [DumpedIndex]) -> Value {
    let definitions = indexes.map(\.definition).sorted { $0.bytes.compare($1.bytes) < 0 }
    return .array(definitions.map { .bytes($0) })
  }

  private mutating func addCollections() async throws {
    for collection in try await reader.collections() {
      let documents = try await documents(of: collection)
      guard collection.isDeclared || !documents.isEmpty else { continue }
      var members: [(String, Value)] = [("collection", .texts(collection.pattern))]
      if !collection.indexes.isEmpty { members.append(("indexes", Self.value(collection.indexes))) }
      if let names = collection.timeToLive { members.append(("timeToLive", .texts(names))) }
      if let schema = collection.schema { members.append(("schema", .bytes(schema))) }
      add(members)
      for document in documents {
        add([
          ("document", .string(document.name)), ("version", .integer(Int64(document.version))),
          ("created", .timestamp(document.created)), ("updated", .timestamp(document.updated)),
          ("fields", .map(document.fields)),
        ])
        contents.formUnion(document.contents)
        document.fields.forEachBlob { blob in
          if blob.isSealed { sealed[blob.digest] = blob }
        }
      }
    }
    for group in try await reader.groups() {
      add([("group", .string(group.id)), ("indexes", Self.value(group.indexes))])
    }
  }

  private func documents(of collection: DumpedCollection) async throws -> [DumpedDocument] {
    var documents: [DumpedDocument] = []
    var last: [UInt8]?
    repeat {
      let part = try await reader.documents(of: collection, after: last)
      documents += part.documents
      last = part.last
    } while last != nil
    return documents
  }

  private mutating func addTree() async throws {
    var last: [UInt8]?
    repeat {
      let part = try await reader.nodes(after: last)
      last = part.last
      for node in part.nodes {
        var members: [(String, Value)] = [("node", .texts(node.path))]
        if let value = node.value { members.append(("value", value)) }
        if let time = node.time { members.append(("time", .integer(time))) }
        if let priority = node.priority { members.append(("priority", priority)) }
        if let length = node.arrayLength { members.append(("array", .integer(Int64(length)))) }
        add(members)
      }
    } while last != nil
    for index in try await reader.treeIndexes() {
      add([("treeIndex", .texts(index.path)), ("child", .texts(index.child))])
    }
  }

  /// Contents by the digests of the bytes that were read.
  private mutating func addContents() async throws {
    let derivations = try await reader.derivations()
    for derivation in derivations {
      contents.insert(derivation.parent)
      contents.insert(derivation.child.digest)
    }
    for digest in contents.sorted() {
      var hasher = DumpHasher()
      let length = try await reader.content(digest) { hasher.update($0) }
      add([("content", .string(hasher.digest().hex)), ("length", .integer(Int64(length)))])
      guard let blob = sealed[digest] else { continue }
      let opened = try await storage.data(of: blob)
      let name = ContentHasher.digest(of: Array(opened)).hex
      add([("opened", .string(name)), ("length", .integer(Int64(opened.count)))])
    }
    for derivation in derivations {
      add([
        ("derivedFrom", .string(derivation.parent.hex)), ("name", .string(derivation.name)),
        ("content", .blob(derivation.child)),
      ])
    }
  }
}

extension Value {
  fileprivate static func texts(_ texts: [String]) -> Value { .array(texts.map { .string($0) }) }
}
