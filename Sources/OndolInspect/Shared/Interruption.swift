// The effect of ^C. A command that only reads has nothing to lose and ends at once with status 130.
// A command that writes is cancelled: it ends between two commits, closes its database and then
// ends with 130. A second ^C ends it without waiting, which a database survives as well. In the
// shell ^C ends the command, not the shell.

import Foundation
import OndolTerminal
import Synchronization

/// The interrupt from the keyboard, and what it ends.
enum Interruption {
  private struct State {
    var command: Task<Void, any Error>?
    var isRequested = false
    /// The number of nested writers.
    var writers = 0
    /// Whether the process continues after the command has ended.
    var isInShell = false
    var source: Interrupt?
  }

  private static let state = Mutex(State())

  /// Whether the command must end.
  static var isRequested: Bool { state.withLock { $0.isRequested } }

  /// Takes over the signal. It also turns a closed pipe into an error of the writing call.
  static func install() {
    signal(SIGPIPE, SIG_IGN)
    state.withLock { $0.source = Interrupt { _ in interrupt() } }
  }

  /// From here on, interrupts end only commands.
  static func enterShell() { state.withLock { $0.isInShell = true } }

  /// While `body` runs, delays interrupts until the current write is complete.
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

  /// Clears an interrupt after it has taken effect.
  static func clear() { state.withLock { $0.isRequested = false } }

  /// Throws if the command must end; for loops that write.
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
