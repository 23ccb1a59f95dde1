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

  package func contains(_ path: DocumentPath) -> Bool {
    if !paths.isEmpty, paths.contains(path.collection) { return true }
    guard !ids.isEmpty, let id = path.segments.dropLast().last else { return false }
    return ids.contains(ExactText(id)) && !HiddenRows.isHidden(root: path.segments[0])
  }
}

extension FollowedCollections {
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
