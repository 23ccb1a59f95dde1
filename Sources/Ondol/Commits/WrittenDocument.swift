// A document on its way through a commit: what the app writes, what is stored, and what the commit
// makes of it.

internal import OndolEngine

/// One write of a commit.
struct DocumentWrite: Sendable {
  var path: DocumentPath
  var intent: WriteIntent
}

/// A document that a commit writes: what is stored, and what the commit makes of it.
struct WrittenDocument: Sendable {
  var path: DocumentPath
  /// The collection's place among those that the commit writes to.
  var collection: Int
  /// The document's key; empty when its collection is new.
  var key: [UInt8] = []
  var before: DocumentSnapshot.Contents?
  /// The fields of the existing row: those of `before`, or of an expired document.
  var stored: WrittenFields?
  /// The stamps of `stored`.
  var storedStamps: DocumentStamps?
  /// The fields of `before`, which are the stored ones unless they were upgraded.
  var visible: WrittenFields?
  /// The fields as reads would show them if the document had not expired; nil when it is
  /// unreadable.
  var shown: WrittenFields?
  /// Why the document could not be upgraded, if so. It can be replaced and deleted, but not
  /// updated.
  var obstacle: DatabaseError?
  /// Whether the document has an earlier schema.
  var isOutdated = false
  /// With `Timestamp.pending` where the commit's time will be.
  var after: WrittenFields?
  /// Determined once all writes are applied. A write that changes nothing keeps the version.
  var isChanged = false

  /// Whether there is a row of an expired document.
  var isOver: Bool { before == nil && stored != nil }
  /// Whether there is a document that could not be upgraded.
  var isUnreadable: Bool { obstacle != nil }

  /// A document that reads have shown upgraded counts as changed even when it equals what is
  /// stored.
  mutating func findWhetherChanged() {
    isChanged =
      switch (stored, after) {
      case (nil, nil): false
      case (let stored?, let after?):
        !stored.isIdentical(to: after)
          || isOutdated && !isUntouched && !(shown?.isIdentical(to: after) ?? false)
      default: true
      }
  }

  /// Of the fields that an index uses, or more: the stored and the new ones; nil when none of them
  /// changes.
  func parts(
    of index: IndexDefinition
  ) -> (before: [String: Value]?, after: [String: Value]?)? {
    let fields = index.read
    guard case .row? = stored else {
      guard case .encoded? = after else { return (stored?.all, after?.all) }
      return (stored?.all, after?.part(fields))
    }
    if let after, !after.mayChange(fields) { return nil }
    return (stored?.part(fields), after?.part(fields))
  }

  /// Whether no write of the commit has changed the document yet.
  var isUntouched = true
}
