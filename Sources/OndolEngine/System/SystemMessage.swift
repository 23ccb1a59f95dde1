// The operating system's words for an error number, and the comparison of bytes it does best.

internal import OndolPlatform

/// "No space left on device (28)".
func systemMessage(_ errno: Int32) -> String {
  // Safe: strerror gives a static or thread-local C string.
  let text = unsafe String(cString: strerror(errno))
  return "\(text) (\(errno))"
}

/// `memcmp`; nothing equals nothing.
func compareBytes(_ left: UnsafeRawPointer?, _ right: UnsafeRawPointer?, _ count: Int) -> Int {
  guard let left = unsafe left, let right = unsafe right else { return 0 }
  return unsafe Int(memcmp(left, right, count))
}

/// What a failed system call means for whoever asked, errors that mean the same taken together.
package enum SystemFailure: Sendable {
  /// The disk or the quota is full.
  case full
  /// The memory or the table of open files is.
  case exhausted
  /// The process may not do this.
  case denied
  /// There is no such file.
  case missing
  /// Anything else.
  case other

  /// What the system says of a full disk.
  package static var fullDisk: Int32 { ENOSPC }

  /// What the system says of a file that is not there.
  static var missingFile: Int32 { ENOENT }

  /// Whether the process or the system has as many files open as it may.
  static func isLackOfDescriptors(_ errno: Int32) -> Bool { errno == EMFILE || errno == ENFILE }

  /// Sorts an error number.
  package init(errno: Int32) {
    switch errno {
    case ENOSPC, EDQUOT: self = .full
    case EMFILE, ENFILE, ENOMEM: self = .exhausted
    case EACCES, EPERM, EROFS: self = .denied
    case ENOENT: self = .missing
    default: self = .other
    }
  }
}
