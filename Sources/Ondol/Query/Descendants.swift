// The documents below a document, and the collections of a database. A collection is not stored as
// such: it exists while a document is in it or below it, so these functions walk over keys. The
// catalog lists the patterns that there have ever been.

internal import OndolEngine

/// The documents of one pattern below a document, or of a whole pattern.
struct DocumentRange {
  var pattern: CollectionPattern
  var range: KeyRange
}

extension Rows {
  /// All collections at any depth below a document that the catalog knows. They may be empty.
  func collections(below path: DocumentPath) throws(DatabaseError) -> [DocumentRange] {
    let own = CollectionPattern(path.collection).collectionIDs
    let family = try catalog.family(path.segments[0], in: self)
    let ids = path.collection.ancestorIDs + [path.documentID]
    var found: [DocumentRange] = []
    for (pattern, entry) in family?.collections ?? [:] {
      let theirs = pattern.collectionIDs
      guard theirs.count > own.count,
        ValueOrder.compareSegments(own, Array(theirs.prefix(own.count))) == 0
      else { continue }
      let prefix = DocumentKey.prefix(entry.keyspace, ancestors: ids)
      let range = KeyRange(lower: prefix, upper: prefix + [KeyCoding.afterAll])
      found.append(DocumentRange(pattern: pattern, range: range))
    }
    return found
  }

  /// The paths of the documents in the range.
  func documents(in range: DocumentRange) throws(DatabaseError) -> [DocumentPath] {
    var paths: [DocumentPath] = []
    var walk = RangeWalk(self, [range.range])
    while try walk.next() {
      let ids = try DocumentKey.ids(
        in: walk.cursor.key, ancestorCount: range.pattern.ancestorCount)
      let segments = zip(range.pattern.collectionIDs, ids).flatMap { [$0, $1] }
      paths.append(DocumentPath(unchecked: segments))
    }
    return paths
  }

  /// The paths of the documents in the ranges.
  func documents(in ranges: [DocumentRange]) throws(DatabaseError) -> [DocumentPath] {
    var paths: [DocumentPath] = []
    for range in ranges { paths += try documents(in: range) }
    return paths
  }

  /// Whether there is a document in the range.
  func hasDocument(in range: DocumentRange) throws(DatabaseError) -> Bool {
    var walk = RangeWalk(self, [range.range])
    return try walk.next()
  }
}

extension Rows {
  /// The ids of the collections directly below a document, in their order.
  func collectionIDs(below path: DocumentPath) throws(DatabaseError) -> [String] {
    var names: Set<ExactText> = []
    let depth = CollectionPattern(path.collection).collectionIDs.count
    for range in try collections(below: path) where try hasDocument(in: range) {
      names.insert(ExactText(range.pattern.collectionIDs[depth]))
    }
    return names.map(\.text).sorted { ValueOrder.compare($0, $1) < 0 }
  }

  /// The ids of the collections at the top, in their order.
  func collectionIDs() throws(DatabaseError) -> [String] {
    var names: [String] = []
    for family in try catalog.families(in: self) where !HiddenRows.isHidden(root: family.root) {
      guard !catalog.keys.isLocked(family) else {
        names.append(family.root)
        continue
      }
      for (pattern, entry) in family.collections {
        let range = KeyRange(prefix: entry.keyspace.prefix)
        if try hasDocument(in: DocumentRange(pattern: pattern, range: range)) {
          names.append(family.root)
          break
        }
      }
    }
    return names.sorted { ValueOrder.compare($0, $1) < 0 }
  }

  /// The ids that collections have at any depth, as far as the catalog knows them, in their order.
  func collectionGroupIDs() throws(DatabaseError) -> [String] {
    var names: Set<ExactText> = []
    for family in try catalog.families(in: self) where !HiddenRows.isHidden(root: family.root) {
      for pattern in family.collections.keys {
        if let last = pattern.collectionIDs.last { names.insert(ExactText(last)) }
      }
    }
    return names.map(\.text).sorted { ValueOrder.compare($0, $1) < 0 }
  }

  /// The ids of the documents of a collection, in their order. Includes the ids of documents that
  /// do not exist but have others below them.
  ///
  /// - Complexity: one lookup for each id and for each collection below such documents.
  func documentIDs(
    in collection: CollectionPath, after last: String?, atMost count: Int
  ) throws(DatabaseError) -> [String] {
    let (own, ancestors) = (CollectionPattern(collection), collection.ancestorIDs)
    let family = try catalog.family(own.root, in: self)
    var heads: [DocumentIDs] = []
    for (pattern, entry) in family?.collections ?? [:] {
      let ids = pattern.collectionIDs
      guard ids.count >= own.collectionIDs.count,
        ValueOrder.compareSegments(
          own.collectionIDs, Array(ids.prefix(own.collectionIDs.count))) == 0
      else { continue }
      var head = DocumentIDs(entry.keyspace, ancestors)
      try head.advance(past: last, in: self)
      heads.append(head)
    }
    var found: [String] = []
    while found.count < count {
      let next = heads.compactMap(\.first).min { ValueOrder.compare($0, $1) < 0 }
      guard let next else { break }
      found.append(next)
      for index in heads.indices where heads[index].first.map({ isSame($0, next) }) ?? false {
        try heads[index].advance(past: next, in: self)
      }
    }
    return found
  }
}

/// The ids in the keys of one keyspace, below some ancestors.
private struct DocumentIDs {
  private let keyspace: Keyspace
  private let ancestors: [String]
  /// The next id; nil at the end.
  private(set) var first: String?

  init(_ keyspace: Keyspace, _ ancestors: [String]) {
    self.keyspace = keyspace
    self.ancestors = ancestors
  }

  /// Moves to the first id after another one, or to the first of all.
  mutating func advance(past last: String?, in rows: Rows) throws(DatabaseError) {
    let prefix = DocumentKey.prefix(keyspace, ancestors: ancestors)
    var range = KeyRange(prefix: prefix)
    if let last {
      range.lower = DocumentKey.key(prefix: prefix, id: last) + [KeyCoding.afterAll]
    }
    var walk = RangeWalk(rows, [range])
    first =
      try walk.next()
      ? try DocumentKey.ids(in: walk.cursor.key, ancestorCount: ancestors.count).last : nil
  }
}

extension DocumentReference {
  /// The collections directly below this document that have documents, or documents further down,
  /// in the order of their ids. This document itself need not exist. Firestore has this in its
  /// server libraries only.
  ///
  /// - Throws: as `getDocument()`.
  /// - Complexity: one lookup for each collection that was ever written below documents like this.
  public func listCollections() async throws(DatabaseError) -> [CollectionReference] {
    let path = try place.get()
    let names = try await database.read(try database.engineSnapshot()) {
      (rows) throws(DatabaseError) in try rows.collectionIDs(below: path)
    }
    return names.map { name in
      CollectionReference(
        database: database,
        place: .success(CollectionPath(unchecked: path.segments + [name])))
    }
  }
}

extension Database {
  /// The collections at the top that have documents, or documents further down, in the order of
  /// their ids. A collection with a key of its own that is missing is always included.
  ///
  /// - Throws: `.failedPrecondition` when the database is closed, `.dataLoss` when stored bytes are
  ///   damaged.
  /// - Complexity: one lookup for each collection that was ever written.
  public func listCollections() async throws(DatabaseError) -> [CollectionReference] {
    let names = try await read(try engineSnapshot()) { (rows) throws(DatabaseError) in
      try rows.collectionIDs()
    }
    return names.map { name in
      CollectionReference(database: self, place: .success(CollectionPath(unchecked: [name])))
    }
  }
}
