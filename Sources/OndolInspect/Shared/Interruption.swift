// What ^C does. A command that only looks has nothing to lose and ends at once with status 130. One
// that writes is cancelled: it ends between two commits, closes its database and then ends with
// 130; whoever presses ^C again does not want to wait, and a database survives that, too. In the
// shell ^C ends the command, not the shell.

import Foundation
import OndolTerminal
import Synchronization

/// The interrupt from the keyboard, and what is to end when it comes.
enum Interruption {
  private struct State {
    var command: Task<Void, any Error>?
    var isRequested = false
    /// How many are writing, one within the other.
    var writers = 0
    /// Whether something goes on when the command has ended.
    var isInShell = false
    var source: Interrupt?
  }

  private static let state = Mutex(State())

  /// Whether the command is to end.
  static var isRequested: Bool { state.withLock { $0.isRequested } }

  /// Takes over the signal. A closed pipe, too, becomes an error of the one who writes.
  static func install() {
    signal(SIGPIPE, SIG_IGN)
    state.withLock { $0.source = Interrupt { _ in interrupt() } }
  }

  /// Has interrupts end commands only, from here on.
  static func enterShell() { state.withLock { $0.isInShell = true } }

  /// Has interrupts wait until what is being written is whole, while `body` runs.
  static func whileWriting<Result>(_ body: () async throws -> Result) async rethrows -> Result {
    state.withLock { $0.writers += 1 }
    defer { state.withLock { $0.writers -= 1 } }
    return try await body()
  }

  /// Runs a command so that an interrupt can end it.
  static func run(_ body: sending @escaping () async throws -> Void) async throws {
    let task = Task { try await body() }
    state.withLock { state in
      state.command = task
      state.isRequested = false
    }
    defer { state.withLock { $0.command = nil } }
    do {
      try await task.value
    } catch {
      if isRequested { throw CommandFailure.interrupted }
      throw error
    }
    if isRequested { throw CommandFailure.interrupted }
  }

  /// Forgets an interrupt that has ended what it was to end.
  static func clear() { state.withLock { $0.isRequested = false } }

  /// Throws when the command is to end; for loops that write.
  static func check() throws(CommandFailure) {
    if isRequested { throw .interrupted }
  }

  private static func interrupt() {
    let endsNow = state.withLock { state in
      defer { state.isRequested = true }
      state.command?.cancel()
      return !state.isInShell && (state.isRequested || state.writers == 0)
    }
    if endsNow { ExitStatus.interrupted.endProcess() }
  }
}
