// An interrupt comes once and at any time. The command that works at that moment is notified.

import OndolEngine

/// Passes one signal on to the current listener.
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

  /// Registers `listener` instead of the previous one. Notifies it at once if the signal has
  /// already come.
  func whenRaised(_ listener: @escaping @Sendable () -> Void) {
    let isRaised = state.withLock { state in
      state.listener = listener
      return state.isRaised
    }
    if isRaised { listener() }
  }
}
