// The directory of a database that is open for writing. A failed sync of it is never tried again:
// the system may have dropped names that it had not saved, and a second call would succeed without
// them. Several threads create names for various purposes, and the code that meets the failure may
// be able to continue without its file. So the failure is recorded here, where it cannot be
// ignored.

/// A directory whose sync fails at most once.
final class SyncedDirectory: ForwardingDirectory {
  private struct State {
    var failure: EngineError?
    var observer: (@Sendable (EngineError) -> Void)?
  }

  let base: any Directory
  private let state = Guarded(State())

  init(_ base: any Directory) {
    self.base = base
  }

  /// Calls `observer` with the failure, on the thread that meets it.
  func observeFailure(_ observer: @escaping @Sendable (EngineError) -> Void) {
    state.withLock { $0.observer = observer }
  }

  func sync() throws(EngineError) {
    if let failure = state.withLock({ $0.failure }) { throw failure }
    do throws(EngineError) {
      try base.sync()
    } catch {
      let failure = EngineError.poisoned(reason: error.description)
      let observer = state.withLock { state in
        state.failure = state.failure ?? failure
        return state.observer
      }
      observer?(failure)
      throw error
    }
  }
}
