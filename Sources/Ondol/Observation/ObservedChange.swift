// What listeners receive of a commit: the documents it changed, each before and after. Made in
// stage 6 of the write path, when the commit is visible and its sequence and time are known.

internal import OndolEngine

/// A document that a commit changed.
struct ObservedChange: Sendable {
  let path: DocumentPath
  /// The fields it had, as reads showed them; nil when there was no document, or it was unreadable.
  let before: [String: Value]?
  /// The fields it has, with the commit's time wherever a write asked for it; nil when it was
  /// deleted.
  let after: [String: Value]?
  let stamps: DocumentStamps
  /// Approximate memory of `before` and `after` in bytes; 0 until a listener stores the change.
  private(set) var bytes = (before: 0, after: 0)

  /// Its approximate memory in bytes.
  var memoryBytes: Int { bytes.before + bytes.after + 2 * Value.inlineBytes }

  /// Measures its memory.
  mutating func measure() {
    bytes = (before?.memoryBytes ?? 0, after?.memoryBytes ?? 0)
  }
  /// Whether results had listed it as one that could not be upgraded.
  var wasUnreadable = false
  /// Whether the document now has writes that the server lacks.
  var isWaiting = false
  /// Who made the commit.
  var origin = ChangeOrigin.local

  /// The document, or its absence, as of the commit.
  func snapshot(in database: Database, _ fields: [String: Value]?) -> DocumentSnapshot {
    DocumentSnapshot(
      reference: DocumentReference(database: database, place: .success(path)),
      contents: fields.map { DocumentSnapshot.Contents(stamps: stamps, fields: $0) }
    ).marked(hasPendingWrites: isWaiting, origin)
  }

  /// Merges this change with a later one to the same document.
  func followed(by later: ObservedChange) -> ObservedChange {
    // Of the same version, the later one only says whether the document waits.
    let origin = later.stamps.version == stamps.version ? origin : later.origin
    var change = ObservedChange(
      path: path, before: before, after: later.after, stamps: later.stamps,
      wasUnreadable: wasUnreadable, isWaiting: later.isWaiting, origin: origin)
    change.bytes = (bytes.before, later.bytes.after)
    return change
  }
}

extension ObservedChange {
  init(
    path: DocumentPath, before: [String: Value]?, after: [String: Value]?, stamps: DocumentStamps
  ) {
    self.path = path
    self.before = before
    self.after = after
    self.stamps = stamps
  }

  /// - Parameter synced: what the commit did for synchronisation, and what is known of it now.
  init(
    _ document: WrittenDocument, _ announcement: Announcement,
    _ synced: (changes: SyncedChanges, state: SyncedState)? = nil
  ) {
    if let synced {
      isWaiting = synced.state.isWaiting(document.path, asOf: announcement.sequence)
      origin = synced.changes.origin
    }
    guard document.isChanged else {
      // Only whether it waits has changed.
      path = document.path
      before = document.shown?.all
      after = before
      stamps = document.before?.stamps ?? .unread
      return
    }
    let time = Timestamp(unchecked: announcement.time)
    path = document.path
    // An expired document may still be in a result until it is removed.
    before = document.shown?.all
    wasUnreadable = document.isUnreadable
    after = document.after?.all.mapValues { $0.resolvingPending(with: time) }
    stamps = DocumentStamps(
      version: Version(rawValue: announcement.sequence.rawValue), updateTime: time,
      createTime: document.before?.stamps.createTime ?? time)
  }
}

extension DocumentStamps {
  /// The commit that made the state.
  var point: CommitPoint {
    CommitPoint(
      sequence: SequenceNumber(rawValue: version.rawValue), time: updateTime.microsecondsSince1970)
  }
}
