// The database's log messages while a command has it open, for example about a damaged file. Like
// all of the tool's messages they go to standard error, with names in a visible form.

import Foundation
import Logging
import OndolTerminal

/// Prints log messages to standard error, one line each.
struct ToolLog: LogHandler {
  var metadata: Logger.Metadata = [:]
  var metadataProvider: Logger.MetadataProvider?
  var logLevel = Logger.Level.info

  /// Takes over the messages of all loggers. It is called once, before anything is logged.
  static func install() {
    LoggingSystem.bootstrap { _ in ToolLog() }
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    let all = metadata.merging(event.metadata ?? [:]) { $1 }.sorted { $0.key < $1.key }
    let details = all.map { "\($0.key)=\($0.value)" }.joined(separator: " ")
    let time = Date.now.formatted(.iso8601)
    Console.say(
      "\(time) \(event.level): \(event.message)" + (details.isEmpty ? "" : " \(details)"))
  }
}
