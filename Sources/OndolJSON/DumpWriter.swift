// Writes a dump part by part. It keeps some hundred documents in memory at a time.

import Foundation
package import Ondol
import OndolEngine

/// Receives the files of a dump, one after another.
package protocol DumpSink: AnyObject {
  /// Ends the previous file and begins another.
  func begin(_ file: String) throws
  /// Writes whole lines.
  func write(lines: [UInt8]) throws
  /// Writes bytes of a content.
  func write(content: [UInt8]) throws
  /// Ends the last file.
  func finish() throws
}

/// Writes the whole database that a reader shows.
package struct DumpWriter {
  private let reader: DumpReader
  private let sink: any DumpSink
  private let progress: (DumpProgress) throws -> Void
  private var done = DumpProgress()
  /// The numbers of lines in the files written so far.
  private var lines: [(file: String, count: Int)] = []
  private var writer = JSONWriter()
  /// The contents that documents refer to.
  private var contents: Set<BlobDigest> = []

  package init(
    _ reader: DumpReader, to sink: any DumpSink,
    progress: @escaping (DumpProgress) throws -> Void = { _ in }
  ) {
    self.reader = reader
    self.sink = sink
    self.progress = progress
  }

  /// Writes the dump.
  package mutating func write() async throws {
    var collections: [(collection: DumpedCollection, file: String)] = []
    var names = DumpFileNames()
    for collection in try await reader.collections() {
      let (documents, _) = try await reader.documents(of: collection, after: nil, limit: 1)
      guard collection.isDeclared || !documents.isEmpty else { continue }
      collections.append(
        (collection, collection.isStorage ? Dump.storage : names.file(of: collection.pattern)))
    }
    try await writeDeclarations(collections)
    try await writeTree()
    for (collection, file) in collections { try await writeDocuments(of: collection, to: file) }
    try await writeContents()
    try writeManifest()
    try sink.finish()
  }

  // MARK: - Files

  private mutating func begin(_ file: String) throws {
    try sink.begin(file)
    lines.append((file, 0))
  }

  /// Ends a line. Lines are gathered into larger writes.
  private mutating func endLine(counting: Bool = true) throws {
    writer.endLine()
    if counting { lines[lines.count - 1].count += 1 }
    if writer.bytes.count >= 1 << 16 { try flush() }
  }

  private mutating func flush() throws {
    if !writer.bytes.isEmpty { try sink.write(lines: writer.bytes) }
    writer.removeAll()
  }

  private mutating func write(_ fields: [(String, Value)]) throws {
    writer.write(fields: [:], behind: fields)
    try endLine()
  }

  // MARK: - Parts

  private mutating func writeDeclarations(
    _ collections: [(collection: DumpedCollection, file: String)]
  ) async throws {
    var declarations: [[(String, Value)]] = []
    for (collection, file) in collections {
      var fields: [(String, Value)] = [
        ("collection", .texts(collection.pattern)), ("file", .string(file)),
      ]
      if !collection.indexes.isEmpty { fields.append(("indexes", Self.value(collection.indexes))) }
      if let names = collection.timeToLive { fields.append(("timeToLive", .texts(names))) }
      if let schema = collection.schema { fields.append(("schema", .bytes(schema))) }
      if collection.hasOwnKey { fields.append(("ownKey", .boolean(true))) }
      declarations.append(fields)
    }
    for group in try await reader.groups() {
      declarations.append([("group", .string(group.id)), ("indexes", Self.value(group.indexes))])
    }
    for index in try await reader.treeIndexes() {
      declarations.append([("tree", .texts(index.path)), ("child", .texts(index.child))])
    }
    try begin(Dump.indexes)
    for fields in declarations { try write(fields) }
    try flush()
  }

  private static func value(_ indexes: [DumpedIndex]) -> Value {
    .array(
      indexes.map { index in
        .map(["name": .string(index.name), "definition": .bytes(index.definition)])
      })
  }

  private mutating func writeTree() async throws {
    var last: [UInt8]?
    var hasBegun = false
    repeat {
      let part = try await reader.nodes(after: last)
      last = part.last
      for node in part.nodes {
        if !hasBegun { try begin(Dump.tree) }
        hasBegun = true
        var fields: [(String, Value)] = [("path", .texts(node.path))]
        if let value = node.value { fields.append(("value", value)) }
        if let time = node.time { fields.append(("time", .integer(time))) }
        if let priority = node.priority { fields.append(("priority", priority)) }
        if let length = node.arrayLength { fields.append(("array", .integer(Int64(length)))) }
        try write(fields)
      }
    } while last != nil
    try flush()
  }

  private mutating func writeDocuments(of collection: DumpedCollection, to file: String)
    async throws
  {
    try begin(file)
    var last: [UInt8]?
    repeat {
      let part = try await reader.documents(of: collection, after: last)
      last = part.last
      for document in part.documents {
        writer.write(
          fields: document.fields,
          behind: [
            (JSONWriter.documentIDName, .string(document.name)),
            (Dump.Member.version, .integer(Int64(clamping: document.version))),
            (Dump.Member.created, .timestamp(document.created)),
            (Dump.Member.updated, .timestamp(document.updated)),
          ])
        try endLine()
        contents.formUnion(document.contents)
      }
      done.documents += part.documents.count
      try progress(done)
    } while last != nil
    try flush()
  }

  /// Writes the contents that documents refer to, and those made from them.
  private mutating func writeContents() async throws {
    let derivations = try await reader.derivations()
    let byParent = Dictionary(grouping: derivations, by: \.parent)
    var open = Array(contents)
    while let parent = open.popLast() {
      for derivation in byParent[parent] ?? []
      where contents.insert(derivation.child.digest).inserted {
        open.append(derivation.child.digest)
      }
    }
    var away: [(BlobDigest, UInt64)] = []
    for digest in contents.sorted() {
      if let length = try await reader.lengthAway(digest) {
        away.append((digest, length))
        continue
      }
      try sink.begin(Dump.file(ofContent: digest))
      let sink = sink
      done.contentBytes += try await reader.content(digest) { try sink.write(content: $0) }
      done.contents += 1
      try progress(done)
    }
    if !away.isEmpty {
      try begin(Dump.away)
      for (digest, length) in away {
        try write([
          ("sha256", .string(digest.hex)), ("length", .integer(Int64(clamping: length))),
        ])
      }
      try flush()
    }
    let kept = derivations.filter { contents.contains($0.parent) }
    guard !kept.isEmpty else { return }
    try begin(Dump.derived)
    for derivation in kept {
      try write([
        ("parent", .string(derivation.parent.hex)), ("name", .string(derivation.name)),
        ("child", .blob(derivation.child)),
      ])
    }
    try flush()
  }

  private mutating func writeManifest() throws {
    let files = lines.map { file, count in
      Value.map(["file": .string(file), "lines": .integer(Int64(count))])
    }
    try sink.begin(Dump.manifest)
    writer.write(
      fields: [:],
      behind: [
        ("schema", .string(Dump.schema)), ("documents", .integer(Int64(done.documents))),
        ("contents", .integer(Int64(done.contents))),
        ("contentBytes", .integer(Int64(done.contentBytes))), ("files", .array(files)),
      ])
    try endLine(counting: false)
    try flush()
  }
}

/// Gives each collection a file of its own, even if names are very long, or differ only in ways
/// that some file systems ignore.
struct DumpFileNames {
  private static let maximumLength = 180
  private var taken: Set<String> = []

  mutating func file(of pattern: [String]) -> String {
    let name = String(
      FileNaming.encoded(pattern.joined(separator: "/")).prefix(Self.maximumLength))
    var unique = name
    var number = 2
    while !taken.insert(unique.lowercased()).inserted {
      unique = "\(name)~\(number)"
      number += 1
    }
    return Dump.collections + unique + ".jsonl"
  }
}

extension Value {
  static func texts(_ texts: [String]) -> Value { .array(texts.map { .string($0) }) }
}
