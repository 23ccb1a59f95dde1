// Waits for a writer that does not know of its readers. If the system reports written files, the
// watch waits for that; otherwise it waits for a while, and the files are checked.

/// Signals when checking for new commits is worthwhile.
package final class FollowerWatch: Sendable {
  private let watch: (any DirectoryWatch)?
  private let environment: Environment

  /// Microseconds between two checks when the system does not report changes.
  private static let interval: Int64 = 25_000

  fileprivate init(_ directory: any Directory, _ environment: Environment) {
    watch = directory.watch { name in
      // Segments count only once the manifest names or drops them.
      name == Superblock.name || name.hasPrefix("LOG-") || name.hasPrefix("MANIFEST-")
    }
    self.environment = environment
  }

  /// Waits until the files may have changed since the watch was made or the last call returned, or
  /// until the task is cancelled.
  package func wait() async {
    guard let watch else { return await environment.sleep(Self.interval) }
    await withTaskCancellationHandler {
      await watch.wait()
    } onCancel: {
      watch.cancel()
    }
  }
}

extension Engine {
  /// Watches the files for a writer's changes.
  package func watchFiles() -> FollowerWatch {
    FollowerWatch(storage.directory, storage.environment)
  }
}
