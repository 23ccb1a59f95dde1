// What commands must know of the shell they run in: whether they may write, and the picture of the
// database that `.snapshot on` holds.

import Ondol
import Synchronization

/// The shell of this process, if there is one.
enum ShellSession {
  private struct State {
    var directory: String?
    var mayWrite = true
    var held: Database?
  }

  private static let state = Mutex(State())

  static func begin(directory: String, mayWrite: Bool) {
    state.withLock { state in
      state.directory = directory
      state.mayWrite = mayWrite
    }
  }

  /// Whether commands may write to the database.
  static func mayWrite(to directory: String) -> Bool {
    state.withLock { $0.mayWrite || $0.directory != directory }
  }

  /// The database that is held open, when it is this one.
  static func held(at directory: String) -> Database? {
    state.withLock { $0.directory == directory ? $0.held : nil }
  }

  /// Holds the database as it is now.
  static func hold() async throws {
    try await release()
    guard let directory = state.withLock({ $0.directory }) else { return }
    let database = try await Database.open(at: directory, for: .readOnly)
    state.withLock { $0.held = database }
  }

  /// Looks at the newest again.
  static func release() async throws {
    let held = state.withLock { $0.held.take() }
    try await held?.close()
  }
}
