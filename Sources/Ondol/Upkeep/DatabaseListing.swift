// The collections and declarations of a database, for pages that show all of them: collections with
// their approximate sizes, indexes of all collections, and how documents expire and keep files.

internal import OndolEngine

/// A collection and its size.
public struct CollectionInformation: Sendable, Hashable, Identifiable {
  /// The collection.
  public let reference: CollectionReference
  /// Its documents, without those below them: counted up to a thousand, then estimated.
  public let count: Int
  /// Whether `count` was counted.
  public let isExact: Bool
  /// Whether it, or the root collection that it is below, has a key of its own.
  public let hasOwnKey: Bool
  /// Whether that key is missing, so that nothing is known of its documents.
  public let isLocked: Bool

  /// The collection's path.
  public var id: String { reference.path }
}

/// The declarations for all collections.
package struct Declarations: Sendable {
  package struct DeclaredIndex: Sendable {
    /// A pattern; for a group, the collections' id.
    package var collection: String
    package var isOfGroup: Bool
    package var isOfElements: Bool
    package var condition: String?
    package var information: IndexInformation
    /// Queries that used it since the database was opened.
    package var uses: Int
  }

  package var indexes: [DeclaredIndex] = []
  package var timeToLive: [(collection: String, field: String)] = []
  package var links: [(collection: String, field: String, folder: String)] = []
}

extension Database {
  /// The collections at the top, or those directly below a document, with the approximate number of
  /// documents in each, in the order of their ids. A collection exists while a document is in it or
  /// below it. One whose own key is missing exists until it is dropped.
  ///
  /// - Parameter document: the document whose collections to list; nil for the top.
  /// - Throws: as `listCollections()`.
  /// - Complexity: O(collections ever written there), and for each at most a thousand counted rows.
  public func collectionInformation(
    below document: DocumentReference? = nil
  ) async throws(DatabaseError) -> [CollectionInformation] {
    let parent = try document?.place.get()
    let references =
      if let document { try await document.listCollections() } else { try await listCollections() }
    let paths = references.compactMap { try? $0.place.get() }
    let found = try await read(try engineSnapshot()) {
      (rows) throws(DatabaseError) -> [(count: Int, hasOwnKey: Bool, isLocked: Bool)] in
      var found: [(count: Int, hasOwnKey: Bool, isLocked: Bool)] = []
      for path in paths {
        let family = try rows.catalog.listedFamily(path.segments[0], in: rows)
        let isLocked = family.map { rows.catalog.keys.isLocked($0) } ?? false
        let count = isLocked ? 0 : try rows.documentCount(in: path, below: parent)
        found.append((count, family?.hasOwnKey ?? false, isLocked))
      }
      return found
    }
    return zip(references, found).map { reference, found in
      CollectionInformation(
        reference: reference, count: found.count, isExact: found.count < 1_000 && !found.isLocked,
        hasOwnKey: found.hasOwnKey, isLocked: found.isLocked)
    }
  }

  /// All declarations except those of collections whose own keys are missing.
  package func declarations() async throws(DatabaseError) -> Declarations {
    try await read(try engineSnapshot()) { [builds, feedback] (rows) throws(DatabaseError) in
      var declarations = Declarations()
      for family in try rows.catalog.families(in: rows)
      where !HiddenRows.isHidden(root: family.root) && !rows.catalog.keys.isLocked(family) {
        for (pattern, entry) in family.collections {
          let name = pattern.description
          for index in entry.indexes + entry.searches {
            try declarations.add(
              index, of: pattern, rows.size(of: KeyRange(prefix: index.keyspace.prefix)),
              builds.all[index.keyspace], feedback.uses.withLock { $0[index.keyspace] ?? 0 })
          }
          if let field = entry.timeToLive {
            declarations.timeToLive.append((name, "\(FieldPath(field))"))
          }
          for link in entry.links {
            let field = link.fields.map { "\(FieldPath($0.names))" }.joined(separator: "[].")
            declarations.links.append((name, field, link.kind.linkedFolder ?? ""))
          }
        }
      }
      declarations.sort()
      return declarations
    }
  }
}

extension Rows {
  fileprivate func documentCount(
    in path: CollectionPath, below parent: DocumentPath?
  ) throws(DatabaseError) -> Int {
    let pattern = CollectionPattern(path)
    guard let entry = try entry(of: pattern) else {
      return 0
    }
    let ids = parent.map { $0.collection.ancestorIDs + [$0.documentID] } ?? []
    let prefix = DocumentKey.prefix(entry.keyspace, ancestors: ids)
    return try count(of: KeyRange(lower: prefix, upper: prefix + [KeyCoding.afterAll]))
  }
}

extension Declarations {
  fileprivate mutating func add(
    _ index: IndexDefinition, of pattern: CollectionPattern, _ size: RangeSize,
    _ progress: IndexProgress?, _ uses: Int
  ) {
    let isOfGroup = index.kind.isOfGroup
    let collection = isOfGroup ? pattern.collectionID.text : pattern.description
    let known = indexes.firstIndex {
      $0.isOfGroup && isOfGroup && ExactText($0.collection) == ExactText(collection)
        && ExactText($0.information.name) == ExactText(index.name)
    }
    let information = IndexInformation(
      index, size, progress, added: known.map { indexes[$0].information })
    let entry = DeclaredIndex(
      collection: collection, isOfGroup: isOfGroup, isOfElements: index.kind.isOfElements,
      condition: index.kind.condition.map { "\($0)" }, information: information,
      uses: uses + (known.map { indexes[$0].uses } ?? 0))
    if let known { indexes[known] = entry } else { indexes.append(entry) }
  }

  fileprivate mutating func sort() {
    indexes.sort { ($0.collection, $0.information.name) < ($1.collection, $1.information.name) }
    timeToLive.sort { $0.collection < $1.collection }
    links.sort { ($0.collection, $0.field) < ($1.collection, $1.field) }
  }
}
