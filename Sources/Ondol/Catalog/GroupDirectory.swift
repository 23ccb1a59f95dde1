// Finds the root collections that have collections with a given id below them, and those in which
// documents may link storage paths. So a query of a collection group, and the removal of a storage
// path, look only at these and not at every root collection. Part of the catalog in memory.
//
// The directory only gives hints: its callers read the named families in their own snapshots. So it
// may name too many, but never too few. A collection is entered before the commit that makes it,
// and the rows of the catalog are walked once for all older ones. Snapshots that are older than
// that walk, and databases that another process writes, do not use it.

internal import OndolEngine

/// Root collections by the ids of the collections in and below them.
final class GroupDirectory: Sendable {
  fileprivate struct State: Sendable {
    var roots: [ExactText: Set<ExactText>] = [:]
    /// Those in which documents may link storage paths.
    var linking: Set<ExactText> = []
    /// The commit from which on it is complete; nil until the catalog was walked.
    var completeSince: SequenceNumber?
  }

  private let state = Guarded(State())
  /// Whether all code that makes collections enters them here.
  private let isKept: Bool

  init(isKept: Bool) {
    self.isKept = isKept
  }

  /// Enters a collection that a commit is about to make.
  func enter(_ pattern: CollectionPattern) {
    guard isKept else { return }
    state.withLock { $0.enter(pattern) }
  }

  /// Enters a root collection in which a commit is about to link storage paths.
  func enterLinks(in root: String) {
    guard isKept else { return }
    state.withLock { _ = $0.linking.insert(ExactText(root)) }
  }

  /// The root collections in which documents may link storage paths; some of them may no longer do
  /// so.
  ///
  /// - Complexity: O(roots found); O(rows of the catalog) the first time.
  func linkingRoots(in rows: Rows) throws(DatabaseError) -> Set<ExactText> {
    try answer(in: rows) { $0.linking }
  }

  /// The root collections that may have collections with this id; some of them may no longer do so.
  ///
  /// - Complexity: O(roots found); O(rows of the catalog) the first time.
  func roots(of id: ExactText, in rows: Rows) throws(DatabaseError) -> Set<ExactText> {
    try answer(in: rows) { $0.roots[id] ?? [] }
  }

  private func answer(
    in rows: Rows, _ read: (State) -> Set<ExactText>
  ) throws(DatabaseError) -> Set<ExactText> {
    let sequence = rows.snapshot.sequence
    let known = state.withLock { state -> Set<ExactText>? in
      guard let since = state.completeSince, since <= sequence else { return nil }
      return read(state)
    }
    if let known { return known }
    let found = try rows.walkDirectory()
    if isKept {
      state.withLock { state in
        guard state.completeSince == nil else { return }
        state.roots.merge(found.roots) { $0.union($1) }
        state.linking.formUnion(found.linking)
        state.completeSince = sequence
      }
    }
    return read(found)
  }
}

extension GroupDirectory.State {
  fileprivate mutating func enter(_ pattern: CollectionPattern) {
    roots[pattern.collectionID, default: []].insert(ExactText(pattern.root))
  }
}

extension Catalog {
  /// The families with collections of this id, as they were when `rows` were taken.
  ///
  /// Throws `.permissionDenied` when the key of one is missing.
  ///
  /// - Complexity: one lookup for each; the first time, O(rows of the catalog).
  func families(
    withCollections id: ExactText, in rows: Rows
  ) throws(DatabaseError) -> [Family] {
    var families: [Family] = []
    for root in try directory.roots(of: id, in: rows) {
      guard let family = try listedFamily(root.text, in: rows) else { continue }
      if keys.isLocked(family) {
        guard family.collections.keys.contains(where: { $0.collectionID == id }) else { continue }
        throw .locked(family.root)
      }
      families.append(family)
    }
    return families
  }
}

extension Rows {
  /// Reads the directory from the catalog's rows.
  fileprivate func walkDirectory() throws(DatabaseError) -> GroupDirectory.State {
    var found = GroupDirectory.State()
    var roots: [UInt32: ExactText] = [:]
    var linking: Set<UInt32> = []
    var walk = RangeWalk(self, [KeyRange(prefix: CatalogKey.keyspaces)])
    while try walk.next() {
      let value = try walk.value
      let key = walk.cursor.key
      do throws(MalformedBytes) {
        guard let keyspace = try CatalogKey.keyspace(of: CatalogKey.kindMark, key) else { continue }
        if let pattern = try KeyspaceRow.pattern(key: key, value) {
          found.enter(pattern)
          roots[keyspace.family] = ExactText(pattern.root)
        } else if KeyspaceRow.mayLink(value, of: keyspace) {
          linking.insert(keyspace.family)
        }
      } catch {
        throw DatabaseError(catalog: error)
      }
    }
    found.linking = Set(linking.compactMap { roots[$0] })
    return found
  }

  /// The pattern of the collection whose documents are in a keyspace; nil when there is none.
  func pattern(of keyspace: Keyspace) throws(DatabaseError) -> CollectionPattern? {
    let key = CatalogKey.keyspace(keyspace)
    guard let value = try row(key) else { return nil }
    do throws(MalformedBytes) {
      return try KeyspaceRow.pattern(key: key.bytes, value.bytes)
    } catch {
      throw DatabaseError(catalog: error)
    }
  }
}
