// The events for listeners to the tree. An event concerns one child, or the node as a whole.
// TreeMember determines the order of events.

internal import OndolEngine

/// What can happen to a child of a node.
public enum ChildEventKind: Sendable, Hashable {
  /// The child is among the children and was not before.
  case childAdded
  /// The child, or something below it, has changed.
  case childChanged
  /// The child is no longer among the children.
  case childRemoved
  /// The value that orders the child has changed, and the event comes together with `childChanged`.
  /// Or the child was added after one that moves in the same events, and only now is in its place.
  case childMoved
}

/// The only event that concerns a node as a whole.
public enum ValueEventKind: Sendable, Hashable {
  /// The node, or something below it, has changed.
  case value
}

/// An event at a place of the tree.
public struct TreeEvent: Sendable, Hashable {
  /// What can happen, in the order in which the events of one commit come: removed, added, moved,
  /// changed, value.
  public enum Kind: Int, Sendable, Hashable, CaseIterable, Comparable {
    /// A child is no longer among the children.
    case childRemoved
    /// A child is among the children and was not before.
    case childAdded
    /// The value that orders a child has changed, or the child was added after one that moves.
    case childMoved
    /// A child, or something below it, has changed.
    case childChanged
    /// The node, or something below it, has changed.
    case value

    /// Compares by the order in which events come.
    public static func < (left: Kind, right: Kind) -> Bool { left.rawValue < right.rawValue }

    init(_ kind: ChildEventKind) {
      switch kind {
      case .childAdded: self = .childAdded
      case .childChanged: self = .childChanged
      case .childRemoved: self = .childRemoved
      case .childMoved: self = .childMoved
      }
    }
  }

  /// What happened.
  public let kind: Kind
  /// The child in its new state, or in its last one after a removal; the node itself for `value`.
  public let snapshot: TreeSnapshot
  /// The key of the child directly before it now; nil for the first child, for a removed child, and
  /// for `value`.
  public let previousSiblingKey: String?
  /// The query that was listened to.
  public let query: TreeQuery
}
