// A commit's changes of holders, beside the documents themselves: stage 2 of the write path. There
// are three kinds of holders:
//
//   a blob reference in a document   holds the content: a row beside the content's others, written
//                                    by ContentHolding
//   a storage path                   is a document with a blob reference (StorageRows), so the same
//   a linked field of a document     holds a storage path: a row of the link (BlobLink)
//
// A document's previous state has its previous links and contents, so the changes of both kinds of
// rows are a difference, made in the commit that changes the document. This file enforces these
// rules:
//
// - a linked path has an object, before and after every commit;
// - a path that documents link is removed in the commit that removes the last link, unless that
//   commit puts it again;
// - everything that was checked is guarded, so that of two commits that would break a rule together
//   one is refused and derived again.
//
// Linkers and deleters of a path meet at the path's own row; unlinkers meet at the link's rows of
// the path. A link may be declared at any time, so code that checks all links guards the catalog's
// families.

internal import OndolEngine

/// The holder changes of one commit.
struct HolderChanges {
  private(set) var holding = ContentHolding()
  /// Whether a holder releases a content.
  private(set) var releasesContents = false
  /// For each content that gets a holder, one of its new documents.
  private var takers: [BlobDigest: DocumentPath] = [:]
  /// For each path that gets a link, one of the documents.
  private var linkers: [ExactText: DocumentPath] = [:]
  /// The paths that lose a link, or that are removed if nothing links them.
  private var unlinked: Set<ExactText> = []
  /// The rows of links that this commit removes.
  private var deletedRows: Set<[UInt8]> = []
  /// The rows of links that it writes.
  private var putRows: Set<[UInt8]> = []

  /// Removes a path in this commit if nothing links it.
  mutating func release(path: String) {
    unlinked.insert(ExactText(path))
  }

  /// Records that contents become stored with this commit.
  mutating func bring(_ contents: [StagedContent]) {
    for content in contents { holding.bring(content) }
  }

  /// Records that contents may become stored with this commit though their bytes are elsewhere.
  mutating func expect(_ contents: [ExchangedContent]) {
    for content in contents { holding.expect(content) }
  }

  /// Records a document's contents before and after.
  mutating func change(
    from before: Set<BlobDigest>, to after: Set<BlobDigest>, of document: DocumentPath,
    at row: [UInt8]
  ) {
    for digest in before.subtracting(after) {
      holding.remove(digest, holder: row)
      releasesContents = true
    }
    for digest in after.subtracting(before) {
      holding.add(digest, holder: row)
      takers[digest] = document
    }
  }

  /// Adds the changes of a link's rows to the batch.
  mutating func change(
    _ link: IndexDefinition, from before: [String: Value]?, to after: [String: Value]?,
    of document: DocumentPath, ancestors: [String], in batch: inout Batch
  ) {
    let changes = link.changes(
      from: before, to: after, ancestors: ancestors, id: document.documentID)
    for key in changes.deleted { batch.delete(key.bytes) }
    for row in changes.put { batch.put(row) }
    deletedRows.formUnion(changes.deleted)
    putRows.formUnion(changes.put.map(\.key))
    if !changes.deleted.isEmpty, let before {
      unlinked.formUnion(link.linkedPaths(in: before).map { ExactText($0) })
    }
    if !changes.put.isEmpty, let after {
      for path in link.linkedPaths(in: after) { linkers[ExactText(path)] = document }
    }
  }

  /// Checks the paths that this commit links, deletes and unlinks, and determines which of them it
  /// removes.
  ///
  /// - Parameter object: what the commit itself makes of the object at a path: `.none` when it does
  ///   not write there.
  ///
  /// Throws `.failedPrecondition`, naming the document that links a path without an object.
  func settlePaths(
    _ rows: Rows, deleted: [String], in batch: inout Batch, object: (String) -> ObjectOutcome
  ) throws(DatabaseError) -> [String] {
    for (path, document) in linkers {
      switch object(path.text) {
      case .put: break
      case .untouched: try rows.requireObject(path.text, linkedBy: document, in: &batch)
      case .deleted: throw Self.linked(path.text, by: document)
      }
    }
    guard !deleted.isEmpty || !unlinked.isEmpty else { return [] }
    let links = try rows.links()
    batch.guardUnchanged(prefix: CatalogKey.families)
    for path in deleted {
      let found = try linker(of: path, among: links, rows, &batch)
      if let document = found.document { throw Self.linked(path, by: document) }
      if let locked = found.locked { throw .locked(locked) }
    }
    var gone: [String] = []
    for path in unlinked where linkers[path] == nil && object(path.text) == .untouched {
      let found = try linker(of: path.text, among: links, rows, &batch)
      if found.document == nil, !found.isUnknown { gone.append(path.text) }
    }
    return gone.sorted { ValueOrder.compare($0, $1) < 0 }
  }

  /// A document that still links the path after this commit. Unknown when none is found, and a link
  /// is not built yet, or belongs to a collection whose key is missing.
  private func linker(
    of path: String, among links: [DeclaredLink], _ rows: Rows, _ batch: inout Batch
  ) throws(DatabaseError) -> (document: DocumentPath?, isUnknown: Bool, locked: String?) {
    if let document = linkers[ExactText(path)] { return (document, false, nil) }
    var isUnknown = false
    var locked: String?
    for declared in links where declared.link.kind.mayLink(path) {
      let (pattern, link) = (declared.pattern, declared.link)
      if link.state != .ready { isUnknown = true }
      guard !declared.isLocked else {
        (isUnknown, locked) = (true, pattern.root)
        continue
      }
      let prefix = link.linkPrefix(of: path)
      batch.guardUnchanged(prefix: prefix)
      var walk = RangeWalk(rows, [KeyRange(prefix: prefix)])
      while try walk.next() {
        let key = walk.cursor.key.array
        if deletedRows.contains(key), !putRows.contains(key) { continue }
        return (try pattern.document(inTail: key[prefix.count...]), false, nil)
      }
    }
    return (nil, isUnknown, locked)
  }

  private static func linked(_ path: String, by document: DocumentPath) -> DatabaseError {
    DatabaseError(
      .failedPrecondition,
      "the document \(document) links the storage path '\(path)'; change the document, and the path"
        + " goes with its last link", path: path)
  }

  /// Adds the rows of contents to the batch.
  ///
  /// Throws `.failedPrecondition`, naming a document that refers to a content that is not stored.
  func settleContents(_ rows: Rows, in batch: inout Batch) throws(DatabaseError) {
    if holding.isEmpty { return }
    do throws(DatabaseError) {
      try holding.settle(into: &batch, rows)
    } catch {
      guard error.code == .failedPrecondition, error.path == nil else { throw error }
      let taker = takers.first { error.message.contains($0.key.hex) }
      throw error.at(path: taker?.value.name ?? "")
    }
  }
}

/// What a commit makes of the object at a path.
enum ObjectOutcome {
  case untouched
  case put
  case deleted
}

extension Batch {
  /// Makes the commit fail with `.stale` when a row that begins with `prefix` was added, changed or
  /// removed after the basis.
  mutating func guardUnchanged(prefix: [UInt8]) {
    let range = KeyRange(prefix: prefix)
    guardUnchanged(from: range.lower.bytes, to: range.upper.bytes)
  }
}

extension CollectionPattern {
  /// The document whose ids are these bytes of a key, the ancestors' first.
  func document(inTail tail: ArraySlice<UInt8>) throws(DatabaseError) -> DocumentPath {
    let key = Keyspace.catalog.prefix + tail
    let ids = try DocumentKey.ids(in: key.bytes, ancestorCount: ancestorCount)
    return DocumentPath(unchecked: zip(collectionIDs, ids).flatMap { [$0, $1] })
  }
}

extension Value {
  /// Calls `body` with each reference to a content in the value, at any depth.
  func forEachBlob(_ body: (BlobReference) -> Void) {
    switch self {
    case .blob(let blob): body(blob)
    case .array(let elements): for element in elements { element.forEachBlob(body) }
    case .map(let fields): fields.forEachBlob(body)
    default: break
    }
  }
}

extension [String: Value] {
  /// The contents that the fields refer to.
  ///
  /// - Complexity: O(values), without an allocation when there are none.
  package var contents: Set<BlobDigest> {
    var digests: Set<BlobDigest> = []
    forEachBlob { digests.insert($0.digest) }
    return digests
  }

  /// Calls `body` with each reference to a content in the fields, at any depth.
  func forEachBlob(_ body: (BlobReference) -> Void) {
    for value in values { value.forEachBlob(body) }
  }
}
