// Who is told of commits, and how a listener waits until there is something to be told.

internal import OndolEngine
internal import Synchronization

/// Somebody who is told of commits.
protocol CommitListener: AnyObject, Sendable {
  /// Takes in what a commit changed; adds whom to wake once every listener has.
  func take(_ changes: [ObservedChange], _ version: Version, _ wakeups: inout [Wakeup])

  /// Notes that a commit may have changed anything.
  func invalidate(_ version: Version, _ wakeups: inout [Wakeup])

  /// Notes that the server is away, or is not any more.
  func note(isAway: Bool)

  /// Ends all waiting for good.
  func finish()

  /// Has all who listen, now or later, get the error.
  func fail(with error: DatabaseError)

  /// Changes that have been taken in and not worked in.
  var pendingCount: Int { get }
}

typealias Wakeup = CheckedContinuation<Void, Never>

/// Whether a listener still waits for anything.
final class Listening: Sendable {
  private let cancelled = Atomic(false)

  var isCancelled: Bool { cancelled.load(ordering: .acquiring) }

  /// Waits until woken, or until the task is cancelled, which ends listening.
  ///
  /// - Parameters:
  ///   - enter: keeps the wakeup; false when there is nothing to wait for.
  ///   - leave: gives the wakeup back, unless somebody has taken it.
  func wait(
    _ enter: (Wakeup) -> Bool, leave: @escaping @Sendable () -> Wakeup?
  ) async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { (wakeup: Wakeup) in
        if !enter(wakeup) { wakeup.resume() }
      }
    } onCancel: {
      cancelled.store(true, ordering: .releasing)
      leave()?.resume()
    }
  }
}

/// Who waits for the same thing, each at most once.
struct WaitingListeners: Sendable {
  private var wakeups: [ObjectIdentifier: Wakeup] = [:]

  mutating func add(_ listener: Listening, _ wakeup: Wakeup) {
    wakeups[ObjectIdentifier(listener)] = wakeup
  }

  mutating func remove(_ listener: Listening) -> Wakeup? {
    wakeups.removeValue(forKey: ObjectIdentifier(listener))
  }

  /// All of them, to be woken.
  mutating func takeAll() -> [Wakeup] {
    guard !wakeups.isEmpty else { return [] }
    defer { wakeups = [:] }
    return Array(wakeups.values)
  }
}
