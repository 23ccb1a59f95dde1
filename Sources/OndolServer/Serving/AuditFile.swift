// A file with one line of JSON for each event of the audit. Each event opens the file, appends and
// closes it: rotating programs rename files at any time, and there are few events, because the
// limits hold for refused calls also.

#if Server
  import Foundation
  public import Ondol
  import Logging
  import Synchronization

  /// Appends a server's events to a file.
  ///
  /// ```swift
  /// options.audit = try AuditFile("audit.jsonl").record
  /// ```
  ///
  /// Only the owner of a new file may read it. When the file is renamed or deleted, the next event
  /// begins a new one. An event that cannot be written is logged as an error instead, and its call
  /// goes on.
  public final class AuditFile: Sendable {
    private let path: String
    private let turn = Mutex(())
    private let logger = Logger(label: "ondol.audit")

    /// - Parameter path: the file; it is created if there is none.
    /// - Throws: `DatabaseError` with `.unavailable` when nothing can be written there.
    public init(_ path: String) throws(DatabaseError) {
      self.path = path
      do {
        try append("")
      } catch {
        throw DatabaseError(
          .unavailable, "the audit cannot be written: \(error.localizedDescription)", path: path)
      }
    }

    /// Appends an event.
    ///
    /// - Complexity: opens, writes and closes the file, on the caller's thread.
    public var record: @Sendable (AuditEvent) -> Void {
      { [self] event in
        do {
          try append(event.line + "\n")
        } catch {
          logger.error("an event of the audit is not in \(path): \(error); \(event.line)")
        }
      }
    }

    private func append(_ text: String) throws {
      try turn.withLock { _ in
        if !FileManager.default.fileExists(atPath: path) {
          _ = FileManager.default.createFile(
            atPath: path, contents: nil, attributes: [.posixPermissions: 0o600])
        }
        let file = try FileHandle(forWritingTo: URL(filePath: path))
        defer { try? file.close() }
        try file.seekToEnd()
        try file.write(contentsOf: Data(text.utf8))
      }
    }
  }
#endif
