// Files of the app's own, outside any database: what is written for it takes the place of an old
// file at once or not at all.

internal import COndol
internal import OndolPlatform

extension DiskFileSystem {
  /// Has the file at `path` take the place of whatever is at `target`, in one step (`rename`).
  package func replaceFile(at target: String, withFileAt path: String) throws(EngineError) {
    // Safe: both texts are zero-terminated for the call.
    guard unsafe rename(path, target) == 0 else {
      throw .io(operation: "rename", file: target, offset: nil, errno: errno)
    }
  }
}
