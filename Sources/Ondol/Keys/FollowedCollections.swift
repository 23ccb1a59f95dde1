// Which documents are kept equal to a server's, by their paths. A device asks this for each of its
// own writes, so it must cost next to nothing.

internal import OndolEngine

/// Which documents belong to collections that are followed.
package struct FollowedCollections: Sendable, Hashable {
  private var paths: Set<CollectionPath> = []
  /// Of collections wherever they are.
  private var ids: Set<ExactText> = []

  package init() {}

  package var isEmpty: Bool { paths.isEmpty && ids.isEmpty }

  /// Adds one collection.
  package mutating func add(_ path: CollectionPath) { paths.insert(path) }

  /// Adds all collections with an id.
  package mutating func add(group id: String) { ids.insert(ExactText(id)) }

  /// Whether all documents of a collection are among them.
  package func contains(_ path: CollectionPath) -> Bool {
    paths.contains(path) || ids.contains(ExactText(path.collectionID))
  }

  /// Whether all collections with an id are among them.
  package func contains(group id: String) -> Bool { ids.contains(ExactText(id)) }

  package func contains(_ path: DocumentPath) -> Bool {
    if !paths.isEmpty, paths.contains(path.collection) { return true }
    guard !ids.isEmpty, let id = path.segments.dropLast().last else { return false }
    return ids.contains(ExactText(id)) && !HiddenRows.isHidden(root: path.segments[0])
  }
}

extension FollowedCollections {
  /// Whether a collection below a root collection may be followed, or the root itself.
  func mayContain(root: String) -> Bool {
    !ids.isEmpty || paths.contains { isSame($0.segments[0], root) }
  }

  /// Whether any collection of a pattern is followed.
  func contains(anyOf pattern: CollectionPattern) -> Bool {
    if let last = pattern.collectionIDs.last, ids.contains(ExactText(last)),
      !HiddenRows.isHidden(root: pattern.root)
    {
      return true
    }
    return paths.contains { CollectionPattern($0) == pattern }
  }

  /// Adds the collections of a follow's row.
  package mutating func add(row fields: [String: Value]) {
    if case .string(let id)? = fields[SyncRows.Field.group] {
      add(group: id)
    } else if case .string(let text)? = fields[SyncRows.Field.collection],
      let path = try? CollectionPath(text)
    {
      add(path)
    }
  }
}
