// Reads the contents of a database, as of one moment and in an order that does not depend on its
// history: for dumps, which contain all of it, and for comparing databases. Restoration is the
// counterpart. It leaves out what belongs to the files and not to their contents: unused field
// names, leases, numbers of keyspaces. It also leaves out close operations, which belong to the
// process that has the database open.

internal import OndolEngine

/// Reads a database as of one moment.
package struct DumpReader: Sendable {
  private let database: Database
  private let snapshot: Snapshot
  private let moment: Int64

  /// Fixes the moment.
  package init(_ database: Database) throws(DatabaseError) {
    self.database = database
    snapshot = try database.engineSnapshot()
    moment = database.now()
  }

  private func read<R: Sendable>(
    _ body: @escaping @Sendable (Rows) throws(DatabaseError) -> R
  ) async throws(DatabaseError) -> R {
    try await database.read(snapshot, asOf: moment, body)
  }

  // MARK: - Declarations

  /// The collections at the top whose own keys are missing, in order: their contents are left out.
  package func lockedCollections() async throws(DatabaseError) -> [String] {
    try await read { (rows) throws(DatabaseError) in
      try rows.catalog.families(in: rows).filter { rows.catalog.keys.isLocked($0) }.map(\.root)
        .sorted { $0.compareBytes($1) < 0 }
    }
  }

  /// All patterns in order, including those without documents.
  package func collections() async throws(DatabaseError) -> [DumpedCollection] {
    try await read { (rows) throws(DatabaseError) in
      var found: [DumpedCollection] = []
      for family in try rows.catalog.families(in: rows) where !rows.catalog.keys.isLocked(family) {
        for (pattern, entry) in family.collections {
          var collection = DumpedCollection(pattern: pattern.collectionIDs)
          collection.hasOwnKey = family.hasOwnKey
          collection.indexes = entry.allIndexes.filter { !$0.kind.isOfEnds }
            .map { DumpedIndex($0.kind) }
            .sorted { $0.name.compareBytes($1.name) < 0 }
          collection.timeToLive = entry.timeToLive
          if entry.schema != SchemaHistory() { collection.schema = entry.schema.bytes.value }
          collection.entry = entry
          found.append(collection)
        }
      }
      return found.sorted { $0.comes(before: $1) }
    }
  }

  /// The declared indexes of collection groups, by the groups' ids, in order.
  package func groups() async throws(DatabaseError) -> [(id: String, indexes: [DumpedIndex])] {
    try await read { (rows) throws(DatabaseError) in
      let prefix = CatalogKey.group("")
      var ids: [String] = []
      try rows.forEachRow(in: KeyRange(lower: prefix, upper: prefix + [0xff])) {
        (key, _) throws(DatabaseError) in
        if let id = String(utf8: key.extracting(prefix.count...)) { ids.append(id) }
        return true
      }
      var groups: [(id: String, indexes: [DumpedIndex])] = []
      for id in ids {
        let indexes = try rows.groupIndexes(CatalogKey.group(id)).map { DumpedIndex($0) }
        guard !indexes.isEmpty else { continue }
        groups.append(
          (id, indexes.sorted { $0.name.compareBytes($1.name) < 0 }))
      }
      return groups
    }
  }

  // MARK: - Documents

  /// Some of a collection's documents, in the order of their ids, and where to continue; expired
  /// documents are left out, as in every read.
  package func documents(
    of collection: DumpedCollection, after: [UInt8]?, limit: Int = 512
  ) async throws(DatabaseError) -> (documents: [DumpedDocument], last: [UInt8]?) {
    guard let entry = collection.entry else { return ([], nil) }
    let pattern = CollectionPattern(collection.pattern)
    return try await read { (rows) throws(DatabaseError) in
      var documents: [DumpedDocument] = []
      var (last, count): ([UInt8]?, Int) = (nil, 0)
      var range = KeyRange(prefix: entry.keyspace.prefix)
      if let after { range.lower = after + [0] }
      try rows.forEachRow(in: range) { (key, row) throws(DatabaseError) in
        count += 1
        last = key.array
        let path = try pattern.document(inTail: key.array[entry.keyspace.prefix.count...])
        let contents: DocumentSnapshot.Contents
        do throws(MalformedBytes) {
          contents = try DocumentSnapshot.Contents(row: row.array, symbols: entry.symbols)
        } catch {
          throw DatabaseError(error, documentAt: path)
        }
        if entry.timeToLive == nil || !entry.isOver(contents, at: rows.moment) {
          var document = DumpedDocument(path, contents)
          document.order = Array(key.array.dropFirst(entry.keyspace.prefix.count))
          documents.append(document)
        }
        return count < limit
      }
      return (documents, count < limit ? nil : last)
    }
  }

  // MARK: - The tree

  /// Some of the tree's nodes, in its order, and where to continue.
  package func nodes(
    after: [UInt8]?, limit: Int = 512
  ) async throws(DatabaseError) -> (nodes: [DumpedNode], last: [UInt8]?) {
    try await read { (rows) throws(DatabaseError) in
      var nodes: [DumpedNode] = []
      var (last, count): ([UInt8]?, Int) = (nil, 0)
      let range = KeyRange(
        lower: after.map { $0 + [0] } ?? TreeKey.root, upper: TreeKey.root + [0xff])
      try rows.forEachRow(in: range) { (key, value) throws(DatabaseError) in
        count += 1
        last = key.array
        if TreeKey.isNode(key) { nodes.append(try Self.node(key, value)) }
        return count < limit
      }
      return (nodes, count < limit ? nil : last)
    }
  }

  private static func node(_ key: RawSpan, _ value: RawSpan) throws(DatabaseError) -> DumpedNode {
    do throws(MalformedBytes) {
      let row = try TreeRow(value)
      var node = DumpedNode(path: try TreeKey.path(of: key) ?? [])
      switch row.leaf {
      case .value(let value)?: node.value = value
      case .time(let moment)?: node.time = moment
      case .increment?: throw MalformedBytes(at: 0, "a number that was not added")
      case nil: break
      }
      node.priority = row.priority
      node.arrayLength = row.arrayLength
      return node
    } catch {
      throw DatabaseError(tree: error)
    }
  }

  /// The tree's indexes, in order.
  package func treeIndexes() async throws(DatabaseError) -> [DumpedTreeIndex] {
    try await read { (rows) throws(DatabaseError) in
      var found: [DumpedTreeIndex] = []
      for index in try TreeIndexDefinition.all(in: rows) {
        do throws(MalformedBytes) {
          let way = TreeKey.root + index.way
          found.append(
            DumpedTreeIndex(
              path: try TreeKey.path(of: index.node.bytes) ?? [],
              child: try TreeKey.path(of: way.bytes) ?? []))
        } catch {
          throw DatabaseError(tree: error)
        }
      }
      return found
    }
  }

  // MARK: - Contents

  /// Derived contents, in the order of the contents they were made from.
  package func derivations() async throws(DatabaseError) -> [DumpedDerivation] {
    try await read { (rows) throws(DatabaseError) in
      var found: [DumpedDerivation] = []
      try rows.forEachRow(in: ContentKey.all(DerivedRows.keyspace)) {
        (key, value) throws(DatabaseError) in
        let (parent, name) = try DerivedRows.parse(key)
        let child = try DerivedRows.child(value)
        found.append(DumpedDerivation(parent: parent, name: name, child: child))
        return true
      }
      return found
    }
  }

  /// How many bytes a content has that are elsewhere; nil when they are here.
  package func lengthAway(_ digest: BlobDigest) async throws(DatabaseError) -> UInt64? {
    guard let location = try await database.contents.location(of: digest), location.isAway else {
      return nil
    }
    return location.length
  }

  /// Shows the content stored under a digest, some bytes at a time; returns its length.
  package func content(
    _ digest: BlobDigest, _ show: ([UInt8]) throws -> Void
  ) async throws -> Int {
    try await Self.show(try await database.reader(of: digest, named: digest.hex), show)
  }

  /// Shows the bytes of a reference's content; returns their number.
  package func content(
    of blob: BlobReference, _ show: ([UInt8]) throws -> Void
  ) async throws -> Int {
    try await Self.show(try await database.reader(of: blob), show)
  }

  private static func show(
    _ reader: ContentReader, _ show: ([UInt8]) throws -> Void
  ) async throws -> Int {
    var start = 0
    while start < reader.length {
      let range = start..<min(reader.length, start + 1 << 18)
      try show(try await reader.read(range))
      start = range.upperBound
    }
    return reader.length
  }
}

/// Hashes the contents of a dump.
package struct DumpHasher {
  private var hasher = ContentHasher()

  package init() {}

  package mutating func update(_ bytes: [UInt8]) { hasher.update(bytes) }

  package func digest() -> BlobDigest { hasher.finalize() }
}

extension DumpedDocument {
  fileprivate init(_ path: DocumentPath, _ contents: DocumentSnapshot.Contents) {
    self.init(
      name: path.name, version: contents.stamps.version.rawValue,
      updated: contents.stamps.updateTime, created: contents.stamps.createTime,
      fields: contents.fields)
    self.contents = contents.fields.contents
  }
}
