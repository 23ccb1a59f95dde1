// Waiting for a writer that knows nothing of who waits. Where the system tells of written files, a
// watch waits for that; elsewhere time passes, and the files are looked at.

/// Says when it is worth a look whether the writer has gone on.
package final class FollowerWatch: Sendable {
  private let watch: (any DirectoryWatch)?
  private let environment: Environment

  /// Microseconds between two looks where nobody tells of changes.
  private static let interval: Int64 = 25_000

  fileprivate init(_ directory: any Directory, _ environment: Environment) {
    watch = directory.watch { name in
      // Files of rows are made and removed, and count once the manifest says so.
      name == Superblock.name || name.hasPrefix("LOG-") || name.hasPrefix("MANIFEST-")
    }
    self.environment = environment
  }

  /// Waits until the files may have changed since the watch was made or the last call returned, or
  /// the task is cancelled.
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
  /// Watches the files for what a writer does to them.
  package func watchFiles() -> FollowerWatch {
    FollowerWatch(storage.directory, storage.environment)
  }
}
