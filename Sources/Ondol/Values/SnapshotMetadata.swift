// What snapshots say of themselves beside their content: whether a server was away when they were
// made.

/// What is known of a snapshot beside its content.
public struct SnapshotMetadata: Sendable, Hashable {
  /// Whether the server could not be reached when the snapshot was made, so that others may have
  /// changed what it shows. Never so where the database is in a directory or in memory. A listener
  /// gets a snapshot when this begins, and another one when the server answers again and what
  /// others have done meanwhile is shown.
  public let isStale: Bool

  init(isStale: Bool) { self.isStale = isStale }
}
