// An interrupt comes once and at any time; whoever works just then is to be told.

import OndolEngine

/// Passes one signal on to whoever is to hear it at the moment.
final class StopSign: Sendable {
  private struct State: Sendable {
    var isRaised = false
    var listener: (@Sendable () -> Void)?
  }

  private let state = Guarded(State())

  func raise() {
    let listener = state.withLock { state in
      state.isRaised = true
      return state.listener
    }
    listener?()
  }

  /// Has `listener` be told, in place of the one before; at once when the sign is raised already.
  func whenRaised(_ listener: @escaping @Sendable () -> Void) {
    let isRaised = state.withLock { state in
      state.listener = listener
      return state.isRaised
    }
    if isRaised { listener() }
  }
}
