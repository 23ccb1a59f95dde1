// The operating system's message for an error number, and its fast comparison of bytes.

internal import OndolPlatform

/// "No space left on device (28)".
func systemMessage(_ errno: Int32) -> String {
  // Safe: strerror returns a static or thread-local C string.
  let text = unsafe String(cString: strerror(errno))
  return "\(text) (\(errno))"
}

/// `memcmp`. Two empty ranges are equal.
func compareBytes(_ left: UnsafeRawPointer?, _ right: UnsafeRawPointer?, _ count: Int) -> Int {
  guard let left = unsafe left, let right = unsafe right else { return 0 }
  return unsafe Int(memcmp(left, right, count))
}

/// What a failed system call means to its caller. Errors with the same meaning are combined.
package enum SystemFailure: Sendable {
  /// The disk or the quota is full.
  case full
  /// Memory is exhausted, or the table of open files is full.
  case exhausted
  /// The process lacks permission.
  case denied
  /// There is no such file.
  case missing
  /// Anything else.
  case other

  /// The system's error number for a full disk.
  package static var fullDisk: Int32 { ENOSPC }

  /// The system's error number for a missing file.
  static var missingFile: Int32 { ENOENT }

  /// Whether the process or the system has reached its limit of open files.
  static func isLackOfDescriptors(_ errno: Int32) -> Bool { errno == EMFILE || errno == ENFILE }

  /// Classifies an error number.
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
