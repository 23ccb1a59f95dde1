// The one error every call throws. The code says what a program can do about it, the message says
// to a person which document or file it was and what to change. The lower floor's errors become
// these in one initialiser, at the end.

package import OndolEngine
public import OndolFoundation

/// An error below another. Errors do not compare, so all of them are taken for equal.
struct Cause: Sendable, Hashable {
  let error: any Error

  static func == (left: Cause, right: Cause) -> Bool { true }

  func hash(into hasher: inout Hasher) {}
}

/// What a call throws when it cannot do as it was asked.
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
  /// What kind of failure it is: Firestore's codes, with its numbers.
  public enum Code: Int, Sendable, Hashable, CaseIterable {
    /// Never thrown; here so that the numbers agree with Firestore's.
    case ok = 0
    /// The task was cancelled before the write was in order, and the write has not happened; on a
    /// server, `DatabaseError/pendingWrite` tells of one that was on its way by then.
    case cancelled = 1
    /// A failure of unknown kind.
    case unknown = 2
    /// The argument is wrong whatever is stored. Repeating the call is pointless.
    case invalidArgument = 3
    /// A server has not answered within `Database/Options/serverTimeout`. A write has not happened,
    /// unless `DatabaseError/pendingWrite` says that this is not known.
    case deadlineExceeded = 4
    /// What the call needs is not there.
    case notFound = 5
    /// What the call was to create is there already.
    case alreadyExists = 6
    /// The system does not let this process at the files, a server does not let its user at the
    /// tables, or the key of the database or of a
    /// collection is not here; or, of OndolAccounts, the document is somebody else's.
    case permissionDenied = 7
    /// A limit is reached, too many files are open, or the disk is full. Nothing has happened, and
    /// the call can be repeated once there is room: reads go on meanwhile, and so do deletes, drops
    /// and compaction, for which a little space is kept back.
    case resourceExhausted = 8
    /// The database or the document is not in the state the call needs.
    case failedPrecondition = 9
    /// Another write came first. Read again and repeat.
    case aborted = 10
    /// Past the end of what is there.
    case outOfRange = 11
    /// This version cannot do it.
    case unimplemented = 12
    /// An invariant of the database itself is broken, or the system refused a call; when it was a
    /// read, the message names the file and the byte, and the next attempt reads anew.
    case `internal` = 13
    /// Not possible now; it may be after opening the database again.
    case unavailable = 14
    /// Stored bytes are damaged or missing.
    case dataLoss = 15
    /// Nobody is signed in any more. Thrown by OndolAccounts only.
    case unauthenticated = 16
  }

  /// The two versions of a document when a write's precondition failed.
  public struct Conflict: Sendable, Hashable {
    /// The fields as they are stored, or nil when there is no document.
    public var stored: [String: Value]?
    /// The fields as the write would have left them, or nil when it would have deleted the
    /// document.
    public var attempted: [String: Value]?

    /// Pairs the two versions.
    ///
    /// - Parameters:
    ///   - stored: the fields as they are stored; nil when there is no document.
    ///   - attempted: the fields as the write would have left them; nil for a delete.
    public init(stored: [String: Value]?, attempted: [String: Value]?) {
      self.stored = stored
      self.attempted = attempted
    }
  }

  /// What kind of failure it is.
  public var code: Code
  /// What was wrong and what helps, for a person.
  public var message: String
  /// What helps where that is a call of this library, such as "setData or create makes one"; nil
  /// where the message says all. A program that shows errors to people who cannot call it leaves it
  /// out.
  public var suggestion: String?
  /// The path of the document, collection or file it is about.
  public var path: String?
  /// The field inside the document, as a field path.
  public var field: String?
  /// The stored and the attempted document, when a precondition on a version failed.
  public var conflict: Conflict?
  /// What was thrown below, where that tells more: the `DecodingError` of a document that does not
  /// fit its type, or what the type's own decoding threw. Two errors that differ in nothing else
  /// are equal.
  public var underlyingError: (any Error)? { cause?.error }
  var cause: Cause?
  /// The write that this call was to make, when it was on its way to a server and whether it is
  /// made is not known yet: see `Database/outcome(of:)`. Nil where it is not made.
  public internal(set) var pendingWrite: PendingWrite?
  /// Whether this only says that a block must be read from disk; see `Rows`.
  private(set) var isCold = false
  /// Whether this says that a document could not be upgraded to today's schema.
  var isUnreadable = false

  /// An error with its place.
  ///
  /// - Parameters:
  ///   - code: what kind of failure it is.
  ///   - message: what was wrong and what helps, for a person.
  ///   - suggestion: what helps where that is a call of this library.
  ///   - path: the document, collection or file it is about.
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
  /// What a read throws that needs a block from disk and must not block. Never reaches an app.
  static var cold: DatabaseError {
    var error = DatabaseError(.unavailable, "a block must be read from disk")
    error.isCold = true
    return error
  }
}

extension DatabaseError: CustomStringConvertible, LocalizedError {
  /// The code, the message, what helps and the place, in one line.
  public var description: String { "\(code): \(sentence(suggestion))" }

  /// The message and the place: what `localizedDescription` says.
  public var errorDescription: String? { sentence(nil) }

  /// What helps, where that is a call of this library.
  public var recoverySuggestion: String? { suggestion }

  private func sentence(_ suggestion: String?) -> String {
    let text = [message, suggestion].compactMap(\.self).joined(separator: "; ")
    let unnamed = path.flatMap { message.contains($0) ? nil : $0 }
    let place = [unnamed, field.map { "field \($0)" }].compactMap(\.self).joined(separator: ", ")
    return place.isEmpty ? text : "\(text) (\(place))"
  }
}

extension DatabaseError {
  /// The same error, about the document or collection at `path` when it names none yet.
  func at(path newPath: @autoclosure () -> String) -> DatabaseError {
    var error = self
    error.path = path ?? newPath()
    return error
  }

  /// The same error, one map further out: `name` is put in front of the field.
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
  /// What the engine threw, as the product says it.
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
      self.init(.outOfRange, "\(reason); read everything anew and go on from there")
    }
  }

  /// Who has a database open, as the line in its LOCK says: "process 7, since 1764000000000000"
  /// with the moment in microseconds since 1970.
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

/// Throws `.cancelled` when the task was, and says with `consequence` what that means.
func refuseWhenCancelled(_ consequence: String? = nil) throws(DatabaseError) {
  guard Task.isCancelled else { return }
  throw DatabaseError(
    .cancelled, "the task was cancelled" + (consequence.map { "; \($0)" } ?? ""))
}

extension Result where Failure == DatabaseError {
  /// The same with a change, or what is wrong with the change, at `path`. An earlier problem stays
  /// the problem.
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
