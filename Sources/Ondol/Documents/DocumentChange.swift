// What happened to a document, as listeners receive it.

/// A document that entered a query's results, changed in them or left them.
public struct DocumentChange: Sendable, Hashable {
  /// What happened to the document.
  public enum Kind: Sendable, Hashable {
    /// The document is in the results and was not before.
    case added
    /// The document was and is in the results, and has changed or has another position.
    case modified
    /// The document was in the results and is not any more: it was deleted, no longer meets the
    /// conditions, or other documents fill the limit before it.
    case removed
  }

  /// What happened.
  public let type: Kind
  /// The document as it is now; for a removed one, as it last was in the results.
  public let document: DocumentSnapshot
  /// Its position with all earlier changes applied; nil when it was added.
  public let oldIndex: Int?
  /// Its position with this and all earlier changes applied; nil when it was removed.
  public let newIndex: Int?
  /// Who made the change: `.server` when synchronisation brought it. When a listener was so far
  /// behind that its query ran again, `.server` for each document of a followed collection that
  /// has no waiting writes.
  public let origin: ChangeOrigin

  init(
    type: Kind, document: DocumentSnapshot, oldIndex: Int?, newIndex: Int?,
    origin: ChangeOrigin? = nil
  ) {
    self.type = type
    self.document = document
    self.oldIndex = oldIndex
    self.newIndex = newIndex
    self.origin = origin ?? document.origin
  }

  /// Whether both are the same change of the same document, by any origin.
  public static func == (left: DocumentChange, right: DocumentChange) -> Bool {
    left.type == right.type && left.document == right.document && left.oldIndex == right.oldIndex
      && left.newIndex == right.newIndex
  }

  /// Hashes all but who made it.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(type)
    hasher.combine(document)
    hasher.combine(oldIndex)
    hasher.combine(newIndex)
  }
}
