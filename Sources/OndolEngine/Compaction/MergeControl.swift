// What running merges ask between their steps: whether to stop, and whether keyspaces were dropped
// since they began.

/// Shared by all merges of a database.
final class MergeControl: Sendable {
  /// What a merge stands on. Taken before the view from which it is planned.
  struct Start: Sendable {
    /// Counts the drops of keyspaces: what a merge makes is only good if none came meanwhile.
    var generation = 0
    var dropped = DroppedKeyspaces()
  }

  private let state: Guarded<(start: Start, isStopped: Bool)>

  init(dropped: DroppedKeyspaces) {
    state = Guarded((Start(dropped: dropped), false))
  }

  var start: Start { state.withLock { $0.start } }

  /// Has merges under way come to nothing, once the view is without what was dropped.
  func setDropped(_ dropped: DroppedKeyspaces) {
    state.withLock { state in
      state.start.generation += 1
      state.start.dropped = dropped
    }
  }

  /// Set by closing: merges end at their next step.
  var isStopped: Bool { state.withLock { $0.isStopped } }

  func stop() { state.withLock { $0.isStopped = true } }
}
