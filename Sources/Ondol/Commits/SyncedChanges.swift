// What a commit means for synchronisation, read off the rows that synchronisation writes with the
// documents (SyncRows). The end of stage 2 does that, in a database that has a witness. It travels
// with the commit's note, and tells listeners which documents wait for the server, which follows
// are complete, and who made the commit.

internal import OndolEngine

/// What a commit changes of this state.
struct SyncedChanges: Sendable {
  /// Documents that begin to wait for the server, or have ceased to.
  var waiting: [DocumentPath: Bool] = [:]
  /// Follows by the ids of their rows; nil for one that has ended.
  var follows: [String: FollowFact?] = [:]
  var origin = ChangeOrigin.local

  /// Reads them off the rows that a commit writes; nil when it writes none of synchronisation.
  init?(_ documents: [WrittenDocument]) {
    var authorship = SyncRows.Authorship()
    for document in documents where document.isChanged {
      let segments = document.path.segments
      guard segments.count == 2, SyncRows.isRoot(segments[0]) else { continue }
      let (before, after) = (document.before?.fields, document.after?.all)
      authorship.note(rowIn: segments[0], isNew: before == nil)
      if isSame(segments[0], SyncRows.follows) {
        let fact = after.flatMap { FollowFact($0) }
        if fact != before.flatMap({ FollowFact($0) }) { follows[segments[1]] = .some(fact) }
      } else if isSame(segments[0], SyncRows.synced) {
        guard let path = SyncRows.document(after ?? before ?? [:]) else { continue }
        let isWaiting = SyncRows.isWaiting(after)
        if isWaiting != SyncRows.isWaiting(before) { waiting[path] = isWaiting }
      }
    }
    guard authorship.hasRows else { return nil }
    origin = authorship.origin
  }
}

/// What is known of a follow.
struct FollowFact: Sendable, Hashable {
  /// Nil for a follow that ends.
  var source: QueryShape.Source?
  var isComplete: Bool

  /// Nil for fields that are no follow's row.
  init?(_ fields: [String: Value]) {
    isComplete = fields[SyncRows.Field.isComplete] == .boolean(true)
    if fields[SyncRows.Field.isEnding] == .boolean(true) {
      source = nil
    } else if case .string(let id)? = fields[SyncRows.Field.group] {
      source = .group(ExactText(id))
    } else if case .string(let text)? = fields[SyncRows.Field.collection],
      let path = try? CollectionPath(text)
    {
      source = .collection(path)
    } else {
      return nil
    }
  }

  /// Whether documents of a collection or a group can be in the follow.
  func covers(_ other: QueryShape.Source) -> Bool {
    switch (source, other) {
    case (.collection(let path)?, .collection(let other)): path == other
    case (.collection(let path)?, .group(let id)): ExactText(path.collectionID) == id
    case (.group(let id)?, .collection(let other)): id == ExactText(other.collectionID)
    case (.group(let id)?, .group(let other)): id == other
    case (nil, _): false
    }
  }
}
