// Servers that are away for a while. Those who listen to a database on one go on listening: what is
// shown stays, and says that it may be out of date; what has to be read is read once the server
// answers again.

internal import OndolEngine

/// Whether the server is away.
final class Outages: Sendable {
  private let away = Guarded(false)
  /// Not held: it tells this of the server.
  private weak let engine: Engine?

  /// - Parameter engine: nil where there is no server.
  init(_ engine: Engine?) { self.engine = engine }

  var isAway: Bool { away.withLock { $0 } }

  /// Answers whether that is new.
  func note(isAway: Bool) -> Bool {
    away.withLock { away in
      defer { away = isAway }
      return away != isAway
    }
  }

  /// Whether a read that failed so is to be made again: the server is away, or the one who asked
  /// for it has gone.
  func outlast(_ error: DatabaseError) -> Bool {
    guard let engine, engine.isOnStore, !engine.hasEnded else { return false }
    switch error.code {
    case .unavailable, .deadlineExceeded, .cancelled: return true
    default: return false
    }
  }

  /// Microseconds between two such reads.
  private static let pause: Int64 = 200_000

  /// Waits before such a read is made again.
  func rest() async { await engine?.rest(microseconds: Self.pause) }
}

extension Database {
  /// Reads for somebody who listens: again and again while the server is away, until the task is
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
