// What happened to a document, as listeners are told it.

/// A document that came, changed or left between a query's results.
public struct DocumentChange: Sendable, Hashable {
  /// What happened to the document.
  public enum Kind: Sendable, Hashable {
    /// It is in the result and was not.
    case added
    /// It is and was in the result, and is another one or stands elsewhere.
    case modified
    /// It was in the result and is not: it is gone, or meets the conditions no more, or others
    /// come before it within the limit.
    case removed
  }

  /// What happened.
  public let type: Kind
  /// The document as it is; as it was last in the result when it left.
  public let document: DocumentSnapshot
  /// Where it stood, all changes before this one applied; nil when it came.
  public let oldIndex: Int?
  /// Where it stands, this change and all before it applied; nil when it left.
  public let newIndex: Int?
}
