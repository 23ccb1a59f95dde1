// What running merges check between their steps: whether to stop, and whether keyspaces were
// dropped since they began.

/// Shared by all merges of a database.
final class MergeControl: Sendable {
  /// The state that a merge starts from. It is taken before the view from which the merge is
  /// planned.
  struct Start: Sendable {
    /// Counts the drops of keyspaces. The result of a merge is valid only if none happened
    /// meanwhile.
    var generation = 0
    var dropped = DroppedKeyspaces()
  }

  private let state: Guarded<(start: Start, isStopped: Bool)>

  init(dropped: DroppedKeyspaces) {
    state = Guarded((Start(dropped: dropped), false))
  }

  var start: Start { state.withLock { $0.start } }

  /// Invalidates running merges after the view no longer contains the dropped keyspaces.
  func setDropped(_ dropped: DroppedKeyspaces) {
    state.withLock { state in
      state.start.generation += 1
      state.start.dropped = dropped
    }
  }

  /// Set by closing. Merges end at their next step.
  var isStopped: Bool { state.withLock { $0.isStopped } }

  func stop() { state.withLock { $0.isStopped = true } }
}
