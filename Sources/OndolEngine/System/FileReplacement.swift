// Files of the app outside any database: a newly written file replaces an old one atomically.

internal import COndol
internal import OndolPlatform

extension DiskFileSystem {
  /// Replaces the file at `target` with the file at `path` in one step (`rename`).
  package func replaceFile(at target: String, withFileAt path: String) throws(EngineError) {
    // Safe: both strings are null-terminated for the call.
    guard unsafe rename(path, target) == 0 else {
      throw .io(operation: "rename", file: target, offset: nil, errno: errno)
    }
  }
}
