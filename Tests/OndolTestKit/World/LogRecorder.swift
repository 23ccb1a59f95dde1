// What a database says in its log, for tests that ask.

internal import Logging
package import Ondol
internal import OndolEngine

/// Keeps what is logged.
package final class LogRecorder: Sendable {
  private let entries = Guarded<[String]>([])

  package init() {}

  /// What was said so far: level and text.
  package var messages: [String] { entries.withLock { $0 } }

  /// Has a database that is opened with these options say it here.
  package func record(_ options: inout Database.Options) {
    options.logger = Logger(label: "ondol") { [entries] _ in RecordingLog(entries: entries) }
  }
}

private struct RecordingLog: LogHandler {
  let entries: Guarded<[String]>
  var logLevel = Logger.Level.trace
  var metadata: Logger.Metadata = [:]

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    entries.withLock { $0.append("\(event.level): \(event.message)") }
  }
}
