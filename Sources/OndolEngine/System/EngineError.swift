// The errors of the engine. Each case contains the location, so that an administrator knows which
// file to examine. The upper layer converts them to `DatabaseError` in one initialiser.

/// An error that the engine throws.
package enum EngineError: Error, Sendable, Equatable {
  /// A system call failed. `offset` is the position in the file, if known.
  case io(operation: SystemCall, file: String, offset: UInt64?, errno: Int32)
  /// The disk or the quota is full. The commit did not happen and can be repeated once there is
  /// space. Reads continue, and so does all work that frees space.
  case noSpace(file: String, errno: Int32)
  /// Bytes that were written completely are damaged.
  case corrupt(file: String, offset: UInt64, reason: String)
  /// The file was written by a newer version, or needs a feature that this version lacks.
  case needsNewerVersion(file: String, reason: String)
  /// There is no database at the path, or the files do not belong to Ondol.
  case notADatabase(path: String, reason: String)
  /// There is no database where one was expected.
  case missing(path: String)
  /// The database is encrypted, and no key was given, or the wrong one.
  case locked(path: String, reason: String)
  /// A key was given, but the database is not encrypted.
  case notEncrypted(path: String)
  /// The database is being loaded, or its load did not complete.
  case unfinished(path: String, reason: String)
  /// The server does not grant this user a necessary permission.
  case denied(path: String, reason: String)
  /// The directory is not empty.
  case notEmpty(path: String)
  /// Another process has the directory open. `holder` is the description from the lock file.
  case inUse(path: String, holder: String)
  /// The engine was closed.
  case closed
  /// The engine was opened for reading, and this would be a write.
  case readOnly
  /// An earlier write or sync failed. No further writes happen until the database is opened again.
  case poisoned(reason: String)
  /// A store and this process no longer match: the store has lost or forgotten what was visible
  /// here, or another database has replaced it. No further writes happen until the database is
  /// opened again.
  case outOfStep(reason: String)
  /// The task was cancelled. What it had begun did not happen.
  case cancelled
  /// A row that the batch was derived from has changed since. The batch must be derived again.
  case stale
  /// The batch exceeds the limit for one commit.
  case tooLarge(bytes: Int, limit: Int)
  /// The key or value cannot be stored in a file.
  case invalid(reason: String)
  /// The requested commit is not, or no longer, part of the history.
  case notInHistory(reason: String)
  /// In a reader alongside a writer: the writer has removed a file that the current view needs and
  /// that could not be kept open. A refresh shows the current state.
  case superseded(file: String)
  /// The storage of the database's rows is unreachable. A commit with this error did not happen.
  case unreachable(reason: String)
  /// The storage of the database's rows did not answer within the time limit for calls. For a
  /// commit, the reason says what is known about it.
  case late(reason: String)
  /// The limit of waiting commits is reached. This one did not happen.
  case crowded(reason: String)
  /// The storage of the database does not support this.
  case unsupported(reason: String)
  /// A read that may not wait for the disk would have to. This error never leaves the engine: the
  /// read is repeated where it may wait.
  case wouldBlock
}

extension EngineError {
  /// The problem with bytes of `file` at `offset`.
  init(_ malformed: MalformedBytes, in file: String, from offset: UInt64 = 0) {
    self =
      malformed.isOfNewerVersion
      ? .needsNewerVersion(file: file, reason: malformed.reason)
      : .corrupt(
        file: file, offset: offset &+ UInt64(max(0, malformed.offset)), reason: malformed.reason)
  }
}

extension EngineError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .io(let operation, let file, let offset, let errno):
      let place = offset.map { " at byte \($0)" } ?? ""
      return "\(operation) of \(file)\(place) failed: \(systemMessage(errno))"
    case .noSpace(let file, let errno):
      return "there is no space for \(file): \(systemMessage(errno))"
    case .corrupt(let file, let offset, let reason):
      return "\(file) is damaged at byte \(offset): \(reason)"
    case .needsNewerVersion(let file, let reason):
      return "\(file) needs a newer version: \(reason)"
    case .notADatabase(let path, let reason):
      return "\(path) is not an Ondol database: \(reason)"
    case .missing(let path):
      return "there is no database at \(path)"
    case .locked(let path, let reason):
      return "\(path) is encrypted: \(reason)"
    case .unfinished(let path, let reason):
      return "\(path) is not whole: \(reason)"
    case .denied(let path, let reason):
      return "\(path) does not allow it: \(reason)"
    case .notEncrypted(let path):
      return "\(path) is not encrypted, and a key was given"
    case .notEmpty(let path):
      return "\(path) is not empty"
    case .inUse(let path, let holder):
      return "\(path) is already open\(holder.isEmpty ? "" : " (\(holder))")"
    case .closed:
      return "the database is closed"
    case .readOnly:
      return "the database is open for reading only"
    case .poisoned(let reason):
      return "a write failed, and the database must be opened again; whether what was being"
        + " written lasts is known only then: \(reason)"
    case .outOfStep(let reason):
      return "the database must be opened again: \(reason)"
    case .cancelled:
      return "the task was cancelled"
    case .stale:
      return "a row changed while the batch was prepared"
    case .tooLarge(let bytes, let limit):
      return "the commit has \(bytes) bytes and may have \(limit)"
    case .invalid(let reason), .notInHistory(let reason), .unreachable(let reason),
      .late(let reason), .crowded(let reason), .unsupported(let reason):
      return reason
    case .superseded(let file):
      return "the writer has put others in the place of \(file)"
    case .wouldBlock:
      return "a block is not in memory"
    }
  }
}
