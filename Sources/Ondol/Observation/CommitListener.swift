// The recipients of commits, and how a listener waits for its next change.

internal import OndolEngine
internal import Synchronization

/// Receives commits.
protocol CommitListener: AnyObject, Sendable {
  /// Takes a commit's changes; adds the listeners to wake once all have taken theirs.
  func take(_ changes: [ObservedChange], _ version: Version, _ wakeups: inout [Wakeup])

  /// Records that a commit may have changed anything.
  func invalidate(_ version: Version, _ wakeups: inout [Wakeup])

  /// Records that the server cannot be reached, or can be reached again.
  func note(isAway: Bool)

  /// Records whether a follow of its documents has not had all of them.
  func note(isLoading: Bool)

  /// Ends all waiting permanently.
  func finish()

  /// Throws the error in all current and future listeners.
  func fail(with error: DatabaseError)

  /// Changes that have been taken but not applied.
  var pendingCount: Int { get }
}

typealias Wakeup = CheckedContinuation<Void, Never>

/// Whether a listener is still waiting for anything.
final class Listening: Sendable {
  private let cancelled = Atomic(false)

  var isCancelled: Bool { cancelled.load(ordering: .acquiring) }

  /// Waits until woken, or until the task is cancelled, which ends listening.
  ///
  /// - Parameters:
  ///   - enter: stores the wakeup; false when there is nothing to wait for.
  ///   - leave: returns the wakeup, unless it has been taken already.
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

/// Listeners that wait for the same thing, each at most once.
struct WaitingListeners: Sendable {
  private var wakeups: [ObjectIdentifier: Wakeup] = [:]

  mutating func add(_ listener: Listening, _ wakeup: Wakeup) {
    wakeups[ObjectIdentifier(listener)] = wakeup
  }

  mutating func remove(_ listener: Listening) -> Wakeup? {
    wakeups.removeValue(forKey: ObjectIdentifier(listener))
  }

  /// Removes and returns all of them, to be woken.
  mutating func takeAll() -> [Wakeup] {
    guard !wakeups.isEmpty else { return [] }
    defer { wakeups = [:] }
    return Array(wakeups.values)
  }
}
