// What a failed call leaves behind hangs on what it was to do. A write that found no space, an open
// that found no descriptor and a read that the device refused have changed nothing: whoever asked
// can undo the rest and try again later. A sync that failed leaves everybody in doubt.

/// The name of a system call, as errors carry it.
package struct SystemCall: Sendable, Hashable {
  private static let syncs: Set<String> = ["fsync", "fdatasync", "fcntl", "pwritev2", "sync"]
  private static let reads: Set<String> = ["pread", "fstat", "readdir", "fdopendir", "read"]

  package let name: String

  package init(_ name: String) {
    self.name = name
  }

  /// Whether it was to make bytes durable: after it has failed nobody knows what the device holds.
  var isSync: Bool { Self.syncs.contains(name) }

  /// Whether it changes nothing, however it ends.
  var isRead: Bool { Self.reads.contains(name) }
}

extension SystemCall: ExpressibleByStringLiteral, CustomStringConvertible {
  package init(stringLiteral name: String) {
    self.init(name)
  }

  package var description: String { name }
}

extension EngineError {
  /// Whether the disk had no space for something that was not yet there.
  package var isLackOfSpace: Bool {
    switch self {
    case .noSpace: true
    case .io(let call, _, _, let errno): !call.isSync && SystemFailure(errno: errno) == .full
    default: false
    }
  }

  /// Whether a file was not there.
  package var isMissingFile: Bool {
    switch self {
    case .superseded: true
    case .io(_, _, _, let errno): SystemFailure(errno: errno) == .missing
    default: false
    }
  }

  /// Whether the process or the system has as many files open as it may.
  var isLackOfDescriptors: Bool {
    guard case .io(_, _, _, let errno) = self else { return false }
    return SystemFailure.isLackOfDescriptors(errno)
  }

  /// Whether the same may well succeed later, and what was begun can be undone until then. All
  /// other failures to write stop the database's writing.
  var isPassing: Bool {
    if isLackOfSpace { return true }
    guard case .io(let call, _, _, let errno) = self, !call.isSync else { return false }
    return call.isRead || SystemFailure(errno: errno) == .exhausted
  }

  /// The same, as a commit says it.
  var forCommitters: EngineError {
    guard isLackOfSpace, case .io(_, let file, _, let errno) = self else { return self }
    return .noSpace(file: file, errno: errno)
  }
}
