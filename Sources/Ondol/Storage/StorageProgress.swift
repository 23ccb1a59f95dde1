// How far an upload or a download has come.

/// Moved bytes, and all bytes to move.
public struct StorageProgress: Sendable, Hashable {
  /// Bytes moved so far.
  public var completedBytes: Int
  /// Bytes to move; nil when the number is unknown.
  public var totalBytes: Int?

  /// The part of the bytes that has been moved, from 0 to 1; nil when it is unknown.
  public var fraction: Double? {
    totalBytes.map { $0 == 0 ? 1 : min(1, Double(completedBytes) / Double($0)) }
  }
}
