// The consequences of a failed call depend on its purpose. A write without space, an open without a
// descriptor and a failed read have changed nothing: the caller can undo the rest and try again
// later. A failed sync leaves the state unknown.

/// The name of a system call, as contained in errors.
package struct SystemCall: Sendable, Hashable {
  private static let syncs: Set<String> = ["fsync", "fdatasync", "fcntl", "pwritev2", "sync"]
  private static let reads: Set<String> = ["pread", "fstat", "readdir", "fdopendir", "read"]

  package let name: String

  package init(_ name: String) {
    self.name = name
  }

  /// Whether its purpose was durability. After its failure, the contents of the device are unknown.
  var isSync: Bool { Self.syncs.contains(name) }

  /// Whether it changes nothing, whatever its result.
  var isRead: Bool { Self.reads.contains(name) }
}

extension SystemCall: ExpressibleByStringLiteral, CustomStringConvertible {
  package init(stringLiteral name: String) {
    self.init(name)
  }

  package var description: String { name }
}

extension EngineError {
  /// Whether the disk had no space for something that did not exist yet.
  package var isLackOfSpace: Bool {
    switch self {
    case .noSpace: true
    case .io(let call, _, _, let errno): !call.isSync && SystemFailure(errno: errno) == .full
    default: false
    }
  }

  /// Whether a file was missing.
  package var isMissingFile: Bool {
    switch self {
    case .superseded: true
    case .io(_, _, _, let errno): SystemFailure(errno: errno) == .missing
    default: false
    }
  }

  /// Whether the process or the system has reached its limit of open files.
  var isLackOfDescriptors: Bool {
    guard case .io(_, _, _, let errno) = self else { return false }
    return SystemFailure.isLackOfDescriptors(errno)
  }

  /// Whether the same call may well succeed later, and what was begun can be undone until then. All
  /// other write failures stop all writing to the database.
  var isPassing: Bool {
    if isLackOfSpace { return true }
    guard case .io(let call, _, _, let errno) = self, !call.isSync else { return false }
    return call.isRead || SystemFailure(errno: errno) == .exhausted
  }

  /// The same error, as a commit reports it.
  var forCommitters: EngineError {
    guard isLackOfSpace, case .io(_, let file, _, let errno) = self else { return self }
    return .noSpace(file: file, errno: errno)
  }
}
