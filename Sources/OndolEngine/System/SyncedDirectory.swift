// The directory of a database that is written. A sync of it that failed is never tried again: the
// system may have let go of names that it had not saved, and a second call would succeed without
// them. Names are made on several threads and for several purposes, and whoever meets the failure
// may have a way to do without what it was making; so it is kept here, where nobody can pass over
// it.

/// A directory that fails to sync once at most.
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

  /// Has `observer` told of the failure, on the thread that meets it.
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
