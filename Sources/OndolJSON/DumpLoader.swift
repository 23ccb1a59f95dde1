// Makes a database from a dump. It refuses anything that a dump cannot contain, with the file, the
// line and the reason, and then removes the database.

import Foundation
package import Ondol

/// Reads a dump and makes a Restoration create a database from it.
package struct DumpLoader {
  private let source: any DumpSource
  private let restoration: Restoration
  private let progress: (DumpProgress) throws -> Void
  private var done = DumpProgress()
  private var lines: [String: Int] = [:]

  /// Loads a dump into a new database in the directory at `path`, which must be new or empty.
  package static func load(
    _ source: any DumpSource, into restoration: Restoration,
    progress: @escaping (DumpProgress) throws -> Void = { _ in }
  ) async throws -> DumpProgress {
    var loader = DumpLoader(source, restoration, progress)
    do {
      try await loader.load()
      return loader.done
    } catch {
      await restoration.abandon()
      throw loader.located(error)
    }
  }

  private init(
    _ source: any DumpSource, _ restoration: Restoration,
    _ progress: @escaping (DumpProgress) throws -> Void
  ) {
    self.source = source
    self.restoration = restoration
    self.progress = progress
  }

  /// Returns the error with the source's place.
  private func located(_ error: any Error) -> any Error {
    switch error {
    case let error as DatabaseError
    where [.invalidArgument, .failedPrecondition, .outOfRange].contains(error.code)
      || error.code == .resourceExhausted && error.field != nil:
      let field = error.field.map { "\($0): " } ?? ""
      return DumpError(field + error.message, file: source.file, line: place)
    case let error as DumpError where error.file == nil && error.line == nil:
      return DumpError(error.reason, file: source.file, line: place)
    case let error as JSONError:
      return DumpError(
        "column \(error.column): \(error.reason)", file: source.file, line: place)
    default: return error
    }
  }

  private var place: Int? { source.line > 0 ? source.line : nil }

  private mutating func load() async throws {
    let files = try await loadDeclarations()
    if try source.open(Dump.tree) { try await loadTree() }
    for index in treeIndexes { try await restoration.add(index) }
    for (number, file) in files.enumerated() {
      guard try source.open(file) else { throw DumpError("\(file) is missing") }
      try restoration.begin(number)
      try await loadDocuments()
    }
    try await restoration.open()
    try await loadContents()
    if try source.open(Dump.away) { try await loadContentsAway() }
    if try source.open(Dump.derived) { try await loadDerivations() }
    try checkManifest()
    try await restoration.finish()
  }

  private var treeIndexes: [DumpedTreeIndex] = []

  // MARK: - Lines

  /// Returns the fields of the next line; nil at the end of the file.
  private mutating func next() throws -> [String: Value]? {
    guard let line = try source.nextLine() else { return nil }
    lines[source.file ?? "", default: 0] += 1
    return try JSONReader.readDocument(line)
  }

  private func refuse(_ reason: String) -> DumpError { DumpError(reason) }

  private func texts(_ value: Value?) throws -> [String]? {
    guard let value else { return nil }
    guard let elements = value.array else { throw refuse("a list of texts is something else") }
    let texts = elements.compactMap(\.string)
    guard texts.count == elements.count else { throw refuse("a list of texts is something else") }
    return texts
  }

  private func indexes(_ value: Value?) throws -> [DumpedIndex] {
    guard let value else { return [] }
    return try (value.array ?? [.null]).map { index in
      guard let name = index["name"]?.string, let definition = index["definition"]?.bytes else {
        throw refuse("an index has no name or no definition")
      }
      return DumpedIndex(name: name, definition: definition)
    }
  }

  // MARK: - Parts

  /// Returns the files of the collections.
  private mutating func loadDeclarations() async throws -> [String] {
    guard try source.open(Dump.indexes) else { throw refuse("this is not a dump") }
    var files: [String] = []
    while let fields = try next() {
      if let pattern = try texts(fields["collection"]) {
        guard let file = fields["file"]?.string else { throw refuse("a collection has no file") }
        var collection = DumpedCollection(pattern: pattern)
        collection.indexes = try indexes(fields["indexes"])
        collection.timeToLive = try texts(fields["timeToLive"])
        collection.schema = fields["schema"]?.bytes
        collection.hasOwnKey = fields["ownKey"]?.boolean ?? false
        let hasOwnKey = try restoration.declare(collection)
        if collection.hasOwnKey, !hasOwnKey, pattern.count == 1 { done.lostKeys += pattern }
        files.append(file)
      } else if let group = fields["group"]?.string {
        try restoration.declareGroup(group, try indexes(fields["indexes"]))
      } else if let path = try texts(fields["tree"]), let child = try texts(fields["child"]) {
        treeIndexes.append(DumpedTreeIndex(path: path, child: child))
      } else {
        throw refuse("this declares nothing")
      }
    }
    return files
  }

  private mutating func loadTree() async throws {
    while let fields = try next() {
      guard let path = try texts(fields["path"]) else { throw refuse("a node has no path") }
      var node = DumpedNode(path: path)
      node.value = fields["value"]
      node.time = fields["time"]?.integer
      node.priority = fields["priority"]
      node.arrayLength = try fields["array"].map { value in
        guard let length = value.integer, 0...(1 << 20) ~= length else {
          throw refuse("an array cannot have that many elements")
        }
        return Int(length)
      }
      try await restoration.add(node)
    }
  }

  private mutating func loadDocuments() async throws {
    while var fields = try next() {
      guard let name = fields.removeValue(forKey: JSONWriter.documentIDName)?.string,
        let version = fields.removeValue(forKey: Dump.Member.version)?.integer, version > 0,
        let created = fields.removeValue(forKey: Dump.Member.created)?.timestamp,
        let updated = fields.removeValue(forKey: Dump.Member.updated)?.timestamp
      else { throw refuse("a document lacks its name, its version or its times") }
      try await restoration.add(
        DumpedDocument(
          name: name, version: UInt64(version), updated: updated, created: created,
          fields: fields))
      done.documents += 1
      if done.documents.isMultiple(of: 512) { try progress(done) }
    }
  }

  private mutating func loadContents() async throws {
    while let digest = try source.openContent() {
      var bytes = 0
      let source = source
      try await restoration.add(digest) {
        let piece = try source.nextBytes()
        bytes += piece?.count ?? 0
        return piece
      }
      done.contents += 1
      done.contentBytes += bytes
      try progress(done)
    }
  }

  private mutating func loadContentsAway() async throws {
    while let fields = try next() {
      guard let digest = fields["sha256"]?.string.flatMap(BlobDigest.init(hex:)),
        let length = fields["length"]?.integer
      else { throw refuse("this is not a content whose bytes are elsewhere") }
      try await restoration.add(away: digest, length: length)
    }
  }

  private mutating func loadDerivations() async throws {
    while let fields = try next() {
      guard let parent = fields["parent"]?.string.flatMap(BlobDigest.init(hex:)),
        let name = fields["name"]?.string, let child = fields["child"]?.blob
      else { throw refuse("this is not a content derived from another") }
      try await restoration.add(DumpedDerivation(parent: parent, name: name, child: child))
    }
  }

  /// Throws unless the dump is complete.
  private mutating func checkManifest() throws {
    guard try source.open(Dump.manifest), let line = try source.nextLine() else {
      throw refuse("there is no \(Dump.manifest): the end of the dump is missing")
    }
    let fields = try JSONReader.readDocument(line)
    guard fields["schema"] == .string(Dump.schema) else {
      throw refuse("this dump has another form than \(Dump.schema)")
    }
    for file in fields["files"]?.array ?? [] {
      guard let name = file["file"]?.string, let count = file["lines"]?.integer else {
        throw refuse("a file has no name or no count of lines")
      }
      guard Int64(lines[name] ?? 0) == count else {
        throw refuse("\(name) has \(lines[name] ?? 0) lines, and had \(count)")
      }
    }
    guard fields["documents"]?.integer == Int64(done.documents),
      fields["contents"]?.integer == Int64(done.contents)
    else { throw refuse("documents or contents are missing, or there are too many") }
  }
}
