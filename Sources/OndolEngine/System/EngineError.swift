// Everything that can go wrong on the lower floor. Each case carries the place, so that whoever
// reads the message at night knows which file to look into. The upper floor turns it into
// `DatabaseError` in one initialiser.

/// What the engine throws.
package enum EngineError: Error, Sendable, Equatable {
  /// A system call failed. `offset` is the place in the file where one is known.
  case io(operation: SystemCall, file: String, offset: UInt64?, errno: Int32)
  /// The disk or the quota is full. The commit has not happened, and can be repeated once there is
  /// space; reads go on, and so does whatever frees space.
  case noSpace(file: String, errno: Int32)
  /// Bytes that were written whole are damaged.
  case corrupt(file: String, offset: UInt64, reason: String)
  /// The file was written by a newer version, or needs a feature this one lacks.
  case needsNewerVersion(file: String, reason: String)
  /// There is no database at the path, or the files are not Ondol's.
  case notADatabase(path: String, reason: String)
  /// There is no database where one was to be found.
  case missing(path: String)
  /// The database is encrypted, and no key was given, or another one.
  case locked(path: String, reason: String)
  /// A key was given, and the database is not encrypted.
  case notEncrypted(path: String)
  /// A database that is being loaded, or whose load has not come to its end.
  case unfinished(path: String, reason: String)
  /// A server does not let this user do what is needed there.
  case denied(path: String, reason: String)
  /// The directory holds something already.
  case notEmpty(path: String)
  /// Another open holds the directory. `holder` is what the lock file says of it.
  case inUse(path: String, holder: String)
  /// The engine was closed.
  case closed
  /// The engine was opened for reading, and this would write.
  case readOnly
  /// An earlier write or sync failed; nothing is written any more until the database is opened
  /// again.
  case poisoned(reason: String)
  /// A store and this process no longer go together: it has lost or forgotten what was shown here,
  /// or another database has taken its place. Nothing is written any more until the database is
  /// opened again.
  case outOfStep(reason: String)
  /// The task was cancelled; what it had begun has not happened.
  case cancelled
  /// A row that the batch was derived from has changed since; derive it again.
  case stale
  /// A batch over the limit for one commit.
  case tooLarge(bytes: Int, limit: Int)
  /// A key or value no file can hold.
  case invalid(reason: String)
  /// The commit asked for is not, or no more, among those whose history is kept.
  case notInHistory(reason: String)
  /// Reading beside a writer: it has removed a file that what is shown needs and that could not be
  /// kept open. A refresh shows what is there now.
  case superseded(file: String)
  /// What keeps the database's rows cannot be reached. A commit that ends so has not happened.
  case unreachable(reason: String)
  /// What keeps the database's rows has not answered in the time that calls are given. Of a commit
  /// the reason says what is known.
  case late(reason: String)
  /// As much waits to be committed as may. This has not happened.
  case crowded(reason: String)
  /// There is no such thing where the database is kept.
  case unsupported(reason: String)
  /// A read that may not wait for the disk would have to. Never leaves the engine: the read is done
  /// again where it may wait.
  case wouldBlock
}

extension EngineError {
  /// What is wrong with bytes of `file` that stand at `offset`.
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
