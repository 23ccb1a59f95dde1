// Fields whose texts are storage paths that the document keeps alive. A link is kept like an index:
// declared in the catalog, built over existing documents, maintained by every write, and checked
// and salvaged with the rest. Its rows begin with the path, so that the rows of one path show which
// documents link it:
//
//   keyspace ++ storage path, a text that is never cut ++ ids of the ancestors ++ id
//
// The field is a list of lists of names: between two of them, and at the end, each element of an
// array counts. `photos[].file` is [["photos"], ["file"]], and `imagePath` may hold a path or an
// array of paths. Texts that are not paths below the link's folder are ignored.

internal import OndolEngine

extension IndexKind {
  /// Parses a link as an app writes it: `imagePath`, or `photos[].file`.
  ///
  /// Throws `.invalidArgument` when the field is not a valid path, or the folder is invalid.
  init(linking field: String, under folder: String) throws(DatabaseError) {
    var fields: [IndexField] = []
    var rest = field[...]
    while !rest.isEmpty {
      let mark = rest.firstRange(of: "[]")
      let part = rest[..<(mark?.lowerBound ?? rest.endIndex)]
      fields.append(IndexField(try FieldPath(String(part)).names()))
      guard let mark else { break }
      rest = rest[mark.upperBound...]
      if rest.isEmpty { break }
      guard rest.first == ".", rest.count > 1 else {
        throw DatabaseError(
          .invalidArgument, "\"\(field)\" is not a field; after \"[]\" comes \".\" and a name")
      }
      rest = rest.dropFirst()
    }
    guard !fields.isEmpty else {
      throw DatabaseError(.invalidArgument, "a link needs the field with the paths")
    }
    let normal = StoragePath.normal(folder)
    if !normal.isEmpty, let problem = StoragePath.problem(with: normal) {
      throw DatabaseError(.invalidArgument, "\"\(folder)\" is not a folder: \(problem)")
    }
    self.init(fields)
    linkedFolder = normal
  }

  /// Whether this storage path may be linked.
  func mayLink(_ path: String) -> Bool {
    guard let linkedFolder else { return false }
    return path.utf8.starts(with: StoragePath.prefix(ofFolder: linkedFolder).utf8)
  }
}

extension IndexDefinition {
  /// The prefix of the rows of a storage path.
  func linkPrefix(of path: String) -> [UInt8] {
    var writer = KeyWriter(keyspace.prefix)
    writer.append(id: path)
    return writer.bytes
  }

  /// The storage paths in the link's field, each once.
  func linkedPaths(in fields: [String: Value]) -> [String] {
    guard let first = self.fields.first, let value = lookUp(first.names[...], in: fields) else {
      return []
    }
    var paths: [String] = []
    var known: Set<ExactText> = []
    collect(value, behind: 0) { path in
      if known.insert(ExactText(path)).inserted { paths.append(path) }
    }
    return paths
  }

  /// - Parameter step: the index of the names that led to the value.
  private func collect(_ value: Value, behind step: Int, _ visit: (String) -> Void) {
    if let elements = value.array {
      for element in elements { collect(element, behind: step, visit) }
    } else if step + 1 < fields.count {
      guard let map = value.map, let next = lookUp(fields[step + 1].names[...], in: map) else {
        return
      }
      collect(next, behind: step + 1, visit)
    } else if let text = value.string {
      let path = StoragePath.normal(text)
      if kind.mayLink(path), StoragePath.problem(with: path) == nil { visit(path) }
    }
  }
}

/// A link and the collections that it applies to.
struct DeclaredLink: Sendable {
  var pattern: CollectionPattern
  var link: IndexDefinition
  /// Whether its rows are unreadable, because the collection's own key is missing.
  var isLocked: Bool
}

extension Rows {
  /// All links, with the patterns they belong to.
  func links() throws(DatabaseError) -> [DeclaredLink] {
    var links: [DeclaredLink] = []
    for root in try catalog.directory.linkingRoots(in: self) {
      guard let family = try catalog.listedFamily(root.text, in: self) else { continue }
      let isLocked = catalog.keys.isLocked(family)
      for (pattern, entry) in family.collections {
        for link in entry.links {
          links.append(DeclaredLink(pattern: pattern, link: link, isLocked: isLocked))
        }
      }
    }
    return links
  }

  /// The key of the row of a storage path; nil while there has never been one.
  func objectKey(_ path: String) throws(DatabaseError) -> [UInt8]? {
    let family = try catalog.family(StorageRows.root, in: self)
    guard let entry = family?.collections[StorageRows.pattern] else { return nil }
    return DocumentKey.key(entry.keyspace, StorageRows.document(at: path))
  }

  /// Throws `.failedPrecondition` unless there is an object at every path that the document links,
  /// and makes the batch fail when one is removed.
  func requireObjects(
    linkedBy link: IndexDefinition, _ fields: [String: Value], at document: DocumentPath,
    in batch: inout Batch
  ) throws(DatabaseError) {
    for path in link.linkedPaths(in: fields) {
      try requireObject(path, linkedBy: document, in: &batch)
    }
  }

  /// Throws `.failedPrecondition` unless there is an object at the path, and makes the batch fail
  /// when it is removed.
  func requireObject(
    _ path: String, linkedBy document: DocumentPath, in batch: inout Batch
  ) throws(DatabaseError) {
    guard let key = try objectKey(path), try row(key) != nil else {
      throw DatabaseError(
        .failedPrecondition,
        "the document links the storage path '\(path)', where there is no object; put it first, or"
          + " in the same transaction", path: document.name)
    }
    batch.guardUnchanged(key.bytes)
  }
}

extension DatabaseError {
  /// Whether the content of a document prevents an index.
  var isOfDocument: Bool {
    code == .alreadyExists || code == .failedPrecondition && path != nil
  }
}
