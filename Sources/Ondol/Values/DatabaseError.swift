// The one error that every call throws. The code tells a program what it can do, and the message
// tells a person which document or file it concerns and what to change. One initialiser, at the
// end, converts the engine's errors.

package import OndolEngine
public import OndolFoundation

/// An underlying error. Errors cannot be compared, so all of them count as equal.
struct Cause: Sendable, Hashable {
  let error: any Error

  static func == (left: Cause, right: Cause) -> Bool { true }

  func hash(into hasher: inout Hasher) {}
}

/// What a call throws when it cannot do what was asked.
///
/// ```swift
/// do {
///   try await items.document("b").create(["name": "Desk"])
/// } catch {
///   guard error.code == .alreadyExists else { throw error }
///   print("there is a desk already")
/// }
/// ```
public struct DatabaseError: Error, Sendable, Hashable {
  /// The kind of failure: Firestore's codes, with its numbers.
  public enum Code: Int, Sendable, Hashable, CaseIterable {
    /// Never thrown; it exists so that the numbers agree with Firestore's.
    case ok = 0
    /// The task was cancelled before the write had its place in the order of commits, and the write
    /// has not happened. On a server, `DatabaseError/pendingWrite` identifies a write that was
    /// already on its way.
    case cancelled = 1
    /// A failure of unknown kind.
    case unknown = 2
    /// The argument is wrong whatever is stored. Do not repeat the call.
    case invalidArgument = 3
    /// A server has not answered within `Database/Options/serverTimeout`. A write has not happened,
    /// unless `DatabaseError/pendingWrite` says that the outcome is unknown.
    case deadlineExceeded = 4
    /// Something that the call needs does not exist.
    case notFound = 5
    /// What the call would create exists already.
    case alreadyExists = 6
    /// The system denies this process access to the files, a server denies its user access to the
    /// tables, or the key of the database or of a collection is missing. With OndolAccounts, the
    /// document belongs to another user.
    case permissionDenied = 7
    /// A limit is reached, too many files are open, or the disk is full. Nothing has happened, and
    /// the call can be repeated once there is room. Reads continue meanwhile, and so do deletes,
    /// drops and compaction, for which a little space is reserved.
    case resourceExhausted = 8
    /// The database or the document is not in the state that the call needs.
    case failedPrecondition = 9
    /// Another write came first. Read again and repeat.
    case aborted = 10
    /// Beyond the end of the existing data.
    case outOfRange = 11
    /// This version does not support it.
    case unimplemented = 12
    /// An invariant of the database itself is broken, or a system call failed. After a failed read,
    /// the message names the file and the byte, and the next attempt reads again.
    case `internal` = 13
    /// Not possible now; it may be after opening the database again.
    case unavailable = 14
    /// Stored bytes are damaged or missing.
    case dataLoss = 15
    /// No user is signed in any more, or a token proves nobody's sign-in. Thrown by OndolAccounts
    /// and by `Server.verify(_:)` only.
    case unauthenticated = 16
  }

  /// The two versions of a document when a write's precondition failed.
  public struct Conflict: Sendable, Hashable {
    /// The stored fields; nil when there is no document.
    public var stored: [String: Value]?
    /// The fields as the write would have left them; nil when it would have deleted the document.
    public var attempted: [String: Value]?

    /// Pairs the two versions.
    ///
    /// - Parameters:
    ///   - stored: the stored fields; nil when there is no document.
    ///   - attempted: the fields as the write would have left them; nil for a delete.
    public init(stored: [String: Value]?, attempted: [String: Value]?) {
      self.stored = stored
      self.attempted = attempted
    }
  }

  /// The kind of failure.
  public var code: Code
  /// What is wrong and what helps, for a person.
  public var message: String
  /// What helps if that is a call of this library, such as "setData or create makes one"; nil when
  /// the message says everything. A program that shows errors to people who cannot make calls omits
  /// it.
  public var suggestion: String?
  /// The path of the document, collection or file that it concerns.
  public var path: String?
  /// The field inside the document, as a field path.
  public var field: String?
  /// The stored and the attempted document, when a precondition on a version failed.
  public var conflict: Conflict?
  /// The underlying error, if it adds information: the `DecodingError` of a document that does not
  /// fit its type, or the error that the type's own decoding threw. Two errors that differ only in
  /// this are equal.
  public var underlyingError: (any Error)? { cause?.error }
  var cause: Cause?
  /// The write of this call, if it was on its way to a server and its outcome is unknown: see
  /// `Database/outcome(of:)`. Nil when the write has not happened.
  public internal(set) var pendingWrite: PendingWrite?
  /// Whether this only means that a block must be read from disk; see `Rows`.
  private(set) var isCold = false
  /// Whether this means that a document could not be upgraded to the current schema.
  var isUnreadable = false

  /// An error with its location.
  ///
  /// - Parameters:
  ///   - code: the kind of failure.
  ///   - message: what is wrong and what helps, for a person.
  ///   - suggestion: what helps if that is a call of this library.
  ///   - path: the document, collection or file that it concerns.
  ///   - field: the field inside the document, as a field path.
  ///   - conflict: the two documents, when a precondition on a version failed.
  public init(
    _ code: Code, _ message: String, suggestion: String? = nil, path: String? = nil,
    field: String? = nil, conflict: Conflict? = nil
  ) {
    self.code = code
    self.message = message
    self.suggestion = suggestion
    self.path = path
    self.field = field
    self.conflict = conflict
  }
}

extension DatabaseError {
  /// The error of a read that needs a block from disk and must not block. It never reaches an app.
  static var cold: DatabaseError {
    var error = DatabaseError(.unavailable, "a block must be read from disk")
    error.isCold = true
    return error
  }
}

extension DatabaseError: CustomStringConvertible, LocalizedError {
  /// The code, the message, the suggestion and the location, in one line.
  public var description: String { "\(code): \(sentence(suggestion))" }

  /// The message and the location: the text of `localizedDescription`.
  public var errorDescription: String? { sentence(nil) }

  /// What helps, if that is a call of this library.
  public var recoverySuggestion: String? { suggestion }

  private func sentence(_ suggestion: String?) -> String {
    let text = [message, suggestion].compactMap(\.self).joined(separator: "; ")
    let unnamed = path.flatMap { message.contains($0) ? nil : $0 }
    let place = [unnamed, field.map { "field \($0)" }].compactMap(\.self).joined(separator: ", ")
    return place.isEmpty ? text : "\(text) (\(place))"
  }
}

extension DatabaseError {
  /// The same error, concerning the document or collection at `path` if it names none yet.
  func at(path newPath: @autoclosure () -> String) -> DatabaseError {
    var error = self
    error.path = path ?? newPath()
    return error
  }

  /// The same error, one map further out: `name` is added before the field.
  func within(field name: String) -> DatabaseError {
    var error = self
    let outer = FieldPath.quoted(name)
    error.field =
      field.map { $0.utf8.first == UInt8(ascii: "[") ? outer + $0 : "\(outer).\($0)" } ?? outer
    return error
  }

  /// The same error, one array further out.
  func within(index: Int) -> DatabaseError {
    var error = self
    error.field =
      field.map { $0.utf8.first == UInt8(ascii: "[") ? "[\(index)]\($0)" : "[\(index)].\($0)" }
      ?? "[\(index)]"
    return error
  }
}

extension DatabaseError {
  /// Converts an error of the engine.
  package init(_ error: EngineError) {
    switch error {
    case .io(_, let file, _, let errno):
      self.init(Self.code(ofSystemError: errno), error.description, path: file)
    case .noSpace(let file, _):
      self.init(
        .resourceExhausted, error.description,
        suggestion: "delete documents, drop collections or make room, and repeat", path: file)
    case .corrupt(let file, _, _):
      self.init(
        .dataLoss, error.description, suggestion: "restore a backup or salvage what is left",
        path: file)
    case .notADatabase(let path, _):
      self.init(
        .dataLoss, error.description, suggestion: "name the directory of a database, or a new one",
        path: path)
    case .missing(let path):
      self.init(.notFound, error.description, path: path)
    case .needsNewerVersion(let file, _):
      self.init(.unimplemented, "\(error); open it with that version", path: file)
    case .unfinished(let path, _):
      self.init(
        .failedPrecondition, error.description,
        suggestion: "load it again, or remove it: ondol server remove", path: path)
    case .denied(let path, _):
      self.init(
        .permissionDenied, error.description,
        suggestion: "have the tables' owner grant it: ondol server prepare --role", path: path)
    case .locked(let path, _):
      self.init(.permissionDenied, error.description, path: path)
    case .notEncrypted(let path):
      self.init(
        .invalidArgument, error.description, suggestion: "open it without", path: path)
    case .notEmpty(let path):
      self.init(.alreadyExists, "\(error); name a new directory", path: path)
    case .inUse(let path, let holder):
      self.init(
        .failedPrecondition, "\(path) is open already\(LockHolder.words(holder))",
        suggestion: "close it there, or open it here with read-only access", path: path)
    case .closed:
      self.init(.failedPrecondition, error.description)
    case .readOnly:
      self.init(
        .failedPrecondition, error.description,
        suggestion: "open it with read-write access to write")
    case .poisoned, .outOfStep:
      self.init(.unavailable, error.description)
    case .superseded(let file):
      self.init(.aborted, "\(error); call refresh() and repeat it", path: file)
    case .wouldBlock:
      self = .cold
    case .cancelled:
      self.init(.cancelled, error.description)
    case .stale:
      self.init(.aborted, "another write changed what this one was derived from; repeat it")
    case .tooLarge:
      self.init(.resourceExhausted, "\(error); split it into several")
    case .invalid(let reason):
      self.init(.invalidArgument, reason)
    case .unreachable(let reason):
      self.init(.unavailable, reason, suggestion: "repeat it once the server answers again")
    case .late(let reason):
      self.init(.deadlineExceeded, reason)
    case .crowded(let reason):
      self.init(.resourceExhausted, reason, suggestion: "repeat it once others have been done")
    case .unsupported(let reason):
      self.init(.unimplemented, reason)
    case .notInHistory(let reason):
      self.init(.outOfRange, "\(reason); read everything again and continue from there")
    }
  }

  /// The process that has a database open, as the line in its LOCK says: "process 7, since
  /// 1764000000000000" with the time in microseconds since 1970.
  private enum LockHolder {
    static func words(_ line: String) -> String {
      guard !line.isEmpty else { return "" }
      let parts = line.split(separator: ", since ", maxSplits: 1)
      guard parts.count == 2, let moment = Int64(parts[1]),
        (0..<253_402_300_800_000_000).contains(moment)
      else { return " (\(line))" }
      let date = Date(timeIntervalSince1970: Double(moment / 1_000_000))
      let text = date.formatted(Date.ISO8601FormatStyle(dateTimeSeparator: .space))
      return " in \(parts[0]), since \(text.dropLast()) UTC"
    }
  }

  private static func code(ofSystemError errno: Int32) -> Code {
    switch SystemFailure(errno: errno) {
    case .full, .exhausted: .resourceExhausted
    case .denied: .permissionDenied
    case .missing: .notFound
    case .other: .internal
    }
  }
}

/// Throws `.cancelled` when the task was cancelled; `consequence` explains what that means.
func refuseWhenCancelled(_ consequence: String? = nil) throws(DatabaseError) {
  guard Task.isCancelled else { return }
  throw DatabaseError(
    .cancelled, "the task was cancelled" + (consequence.map { "; \($0)" } ?? ""))
}

extension Result where Failure == DatabaseError {
  /// The same with a change at `path`, or with the change's error. An earlier error stays.
  func changed(
    _ change: (inout Success) throws(DatabaseError) -> Void, path: (Success) -> String
  ) -> Self {
    guard case .success(var value) = self else { return self }
    do throws(DatabaseError) {
      try change(&value)
      return .success(value)
    } catch {
      return .failure(error.at(path: path(value)))
    }
  }
}
