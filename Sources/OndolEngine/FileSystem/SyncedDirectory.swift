// The directory of a database that is written. A sync of it that failed is never tried again: the
// system may have let go of names that it had not saved, and a second call would succeed without
// them. Names are made on several threads and for several purposes, and whoever meets the failure
// may have a way to do without what it was making; so it is kept here, where nobody can pass over
// it.

/// A directory that fails to sync once at most.
final class SyncedDirectory: Directory {
  private struct State {
    var failure: EngineError?
    var observer: (@Sendable (EngineError) -> Void)?
  }

  private let base: any Directory
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

  var path: String { base.path }

  func list() throws(EngineError) -> [String] { try base.list() }

  func open(_ name: String, access: FileAccess) throws(EngineError) -> any File {
    try base.open(name, access: access)
  }

  func openForReads(_ name: String, held: Bool) throws(EngineError) -> any File {
    try base.openForReads(name, held: held)
  }

  var heldRoom: Int { base.heldRoom }

  func create(_ name: String) throws(EngineError) -> any File { try base.create(name) }

  func freeBytes() -> UInt64? { base.freeBytes() }

  func remove(_ name: String) throws(EngineError) { try base.remove(name) }

  func syncName() throws(EngineError) { try base.syncName() }

  func lock(owner: String) throws(EngineError) -> any DirectoryLock { try base.lock(owner: owner) }

  func watch(_ concerns: @escaping @Sendable (String) -> Bool) -> (any DirectoryWatch)? {
    base.watch(concerns)
  }
}
