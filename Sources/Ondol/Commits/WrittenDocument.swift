// A document on its way through a commit: what the app wants, what is stored, and what the commit
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
  /// The collection's place among those the commit writes to.
  var collection: Int
  /// The document's key; empty where its collection is new.
  var key: [UInt8] = []
  var before: DocumentSnapshot.Contents?
  /// The fields of the row that is there: those of `before`, or of a document whose time is over.
  var stored: WrittenFields?
  /// What is beside `stored`.
  var storedStamps: DocumentStamps?
  /// The fields of `before`, which are those stored unless they were upgraded.
  var visible: WrittenFields?
  /// The fields as reads would show them were the document's time not over; nil when it is
  /// unreadable.
  var shown: WrittenFields?
  /// Why the document could not be upgraded, if so: it can be replaced and deleted, and not be
  /// changed.
  var obstacle: DatabaseError?
  /// Whether the document has an earlier schema.
  var isOutdated = false
  /// With `Timestamp.pending` where the commit's time will be.
  var after: WrittenFields?
  /// Found out once all writes are applied. A write that changes nothing leaves the version as it
  /// is.
  var isChanged = false

  /// Whether there is a row of a document whose time is over.
  var isOver: Bool { before == nil && stored != nil }
  /// Whether there is a document that could not be upgraded.
  var isUnreadable: Bool { obstacle != nil }

  /// What is the same as stored is changed all the same where reads have shown it upgraded.
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

  /// Of the fields that an index has rows of what is stored and what will be, or more; nil when
  /// none of them changes.
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

  /// Whether no write of the commit has come to the document yet.
  var isUntouched = true
}
