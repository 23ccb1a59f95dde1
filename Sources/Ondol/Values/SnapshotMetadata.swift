// Information about snapshots apart from their content: whether a server could be reached when they
// were made.

/// Information about a snapshot apart from its content.
public struct SnapshotMetadata: Sendable, Hashable {
  /// Whether the server could not be reached when the snapshot was made, so that other processes
  /// may have changed the data since. Always false for a database in a directory or in memory. A
  /// listener receives a snapshot when an outage begins, and another one when the server answers
  /// again and the changes made meanwhile are shown.
  public let isStale: Bool

  init(isStale: Bool) { self.isStale = isStale }
}
