// What a listener of the tree is told. An event is about one child, or about the node
// as a whole; the order of events is that of TreeMember.

internal import OndolEngine

/// What can happen to a child of a node.
public enum ChildEventKind: Sendable, Hashable {
  /// It is among the children and was not.
  case childAdded
  /// It, or something below it, is another.
  case childChanged
  /// It is not among the children any more.
  case childRemoved
  /// What it is ordered by has changed, and it comes together with `childChanged`; or it was added
  /// behind a child that moves, in the same events, and is where it belongs only now.
  case childMoved
}

/// The one event about a node as a whole.
public enum ValueEventKind: Sendable, Hashable {
  /// The node, or something below it, is another.
  case value
}

/// Something that happened at a place of the tree.
public struct TreeEvent: Sendable, Hashable {
  /// What can happen, in the order in which events of one commit come: removed, added, moved,
  /// changed, value.
  public enum Kind: Int, Sendable, Hashable, CaseIterable, Comparable {
    /// A child is not among the children any more.
    case childRemoved
    /// A child is among the children and was not.
    case childAdded
    /// What a child is ordered by has changed, or it was added behind one of which that is so.
    case childMoved
    /// A child, or something below it, is another.
    case childChanged
    /// The node, or something below it, is another.
    case value

    /// The one that comes first.
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
  /// The child as it is, and as it was when it is gone; the node itself for `value`.
  public let snapshot: TreeSnapshot
  /// The key of the child that stands before it now; nil for the first, for a child that is gone,
  /// and for `value`.
  public let previousSiblingKey: String?
  /// What was listened to.
  public let query: TreeQuery
}
