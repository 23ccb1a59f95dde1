// Information about snapshots apart from their content: whether a server could be reached when they
// were made, and what synchronisation has still to do for them.

/// Information about a snapshot apart from its content.
public struct SnapshotMetadata: Sendable, Hashable {
  /// Whether the server could not be reached when the snapshot was made, so that other processes
  /// may have changed the data since. Always false for a database in a directory or in memory. A
  /// listener receives a snapshot when an outage begins, and another one when the server answers
  /// again and the changes made meanwhile are shown.
  public let isStale: Bool
  /// Whether the snapshot shows writes of this device that the server does not have, or that have
  /// not come back from it. Always false in a database that `OndolSync` does not synchronise, and
  /// before its `Sync` was made. In the result of a query, whether that is so of one of the
  /// documents.
  public let hasPendingWrites: Bool
  /// Whether this device has had all documents that it follows in the snapshot's collection. Always
  /// true for collections that are not followed.
  public let isComplete: Bool

  init(isStale: Bool, hasPendingWrites: Bool = false, isComplete: Bool = true) {
    self.isStale = isStale
    self.hasPendingWrites = hasPendingWrites
    self.isComplete = isComplete
  }
}

/// Who made a commit.
public enum ChangeOrigin: Sendable, Hashable {
  /// The app, or another program with this database.
  case local
  /// Synchronisation: the commit brought what the server has, or took back what it refused.
  case server
}
