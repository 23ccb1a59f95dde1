// What a commit tells its listeners. The note travels with the batch. Once the commit is visible,
// it is turned into changes for listeners, see ObservedChange.

internal import OndolEngine

/// The note of a commit.
final class CommitNote: Sendable {
  enum Content: Sendable {
    case documents([WrittenDocument])
    /// A root collection was dropped with everything below it, or its documents are read in another
    /// way from now on.
    case readAnew(root: String)
    /// A collection was renamed.
    case renamed(CollectionRenaming)
  }

  let content: Content
  /// The rows of the tree that it changed.
  let tree: [TreeRowChange]
  /// What it changed for synchronisation; nil when it wrote nothing of it.
  let synced: SyncedChanges?

  init(_ content: Content, tree: [TreeRowChange] = [], synced: SyncedChanges? = nil) {
    self.content = content
    self.tree = tree
    self.synced = synced
  }
}
