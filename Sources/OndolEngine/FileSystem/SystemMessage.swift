// The operating system's words for an error number, and the comparison of bytes it does best.

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

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
