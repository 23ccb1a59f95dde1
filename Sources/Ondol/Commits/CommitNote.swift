// What a commit says of itself to whoever is told of commits. The note travels with the batch; what
// it means to listeners is made of it once the commit is visible, see ObservedChange.

internal import OndolEngine

/// The note of a commit.
final class CommitNote: Sendable {
  enum Content: Sendable {
    case documents([WrittenDocument])
    /// A root collection was dropped with all that was below it, or its documents are read in
    /// another way from now on.
    case readAnew(root: String)
    /// A collection has another name.
    case renamed(CollectionRenaming)
  }

  let content: Content
  /// Rows of the tree that it changed.
  let tree: [TreeRowChange]

  init(_ content: Content, tree: [TreeRowChange] = []) {
    self.content = content
    self.tree = tree
  }
}
