// What commands must know about the shell that they run in: whether they may write, and the state
// of the database that `.snapshot on` keeps.

import Ondol
import Synchronization

/// The shell of this process, if there is one.
enum ShellSession {
  private struct State {
    var place: String?
    var mayWrite = true
    var held: Database?
  }

  private static let state = Mutex(State())

  static func begin(at place: String, mayWrite: Bool) {
    state.withLock { state in
      state.place = place
      state.mayWrite = mayWrite
    }
  }

  /// Whether commands may write to the database.
  static func mayWrite(to place: String) -> Bool {
    state.withLock { $0.mayWrite || $0.place != place }
  }

  /// The database that is kept open, if it is this one.
  static func held(at place: String) -> Database? {
    state.withLock { $0.place == place ? $0.held : nil }
  }

  /// Keeps the database in its current state.
  static func hold() async throws {
    try await release()
    guard let place = state.withLock({ $0.place }) else { return }
    guard !ServerAddress.isOne(place) else {
      throw CommandFailure(.failed, "a database on a server always shows its current state")
    }
    let database = try await Database.open(at: place, writing: false)
    state.withLock { $0.held = database }
  }

  /// Returns to the newest state.
  static func release() async throws {
    let held = state.withLock { $0.held.take() }
    try await held?.close()
  }
}
