// Temporary outages of a server. Listeners to a database on a server keep listening: the data shown
// stays, marked as possibly out of date, and reads happen once the server answers again.

internal import OndolEngine

/// Whether the server cannot be reached.
final class Outages: Sendable {
  private let away = Guarded(false)
  /// Weak, because the engine notifies this object about the server.
  private weak let engine: Engine?

  /// - Parameter engine: nil when there is no server.
  init(_ engine: Engine?) { self.engine = engine }

  var isAway: Bool { away.withLock { $0 } }

  /// Returns whether that is a change.
  func note(isAway: Bool) -> Bool {
    away.withLock { away in
      defer { away = isAway }
      return away != isAway
    }
  }

  /// Whether to repeat a read that failed with this error: the server cannot be reached, or the
  /// listener that started the read is gone.
  func outlast(_ error: DatabaseError) -> Bool {
    guard let engine, engine.isOnStore, !engine.hasEnded else { return false }
    switch error.code {
    case .unavailable, .deadlineExceeded, .cancelled: return true
    default: return false
    }
  }

  /// Microseconds between two such reads.
  private static let pause: Int64 = 200_000

  /// Waits before such a read is repeated.
  func rest() async { await engine?.rest(microseconds: Self.pause) }
}

extension Database {
  /// Reads for a listener: repeatedly while the server cannot be reached, until the task is
  /// cancelled.
  func readOutlasting<R: Sendable>(
    _ snapshot: Snapshot, _ body: @escaping @Sendable (Rows) throws(DatabaseError) -> R
  ) async throws(DatabaseError) -> R {
    while true {
      do throws(DatabaseError) {
        return try await read(snapshot, body)
      } catch {
        guard observers.outages.outlast(error), !Task.isCancelled else { throw error }
      }
      await observers.outages.rest()
    }
  }
}
