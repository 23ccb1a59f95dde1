// A database's log messages, for tests that check them.

internal import Logging
package import Ondol
internal import OndolEngine

/// Keeps log messages.
package final class LogRecorder: Sendable {
  private let entries = Guarded<[String]>([])

  package init() {}

  /// The messages so far: level and text.
  package var messages: [String] { entries.withLock { $0 } }

  /// Makes a database with these options log here.
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
