// What the database says of itself while a command has it open, such as that a file is damaged: on
// standard error as everything else that the tool says, and so with names in a form that can be
// seen.

import Foundation
import Logging
import OndolTerminal

/// Has log messages said on standard error, each in one line.
struct ToolLog: LogHandler {
  var metadata: Logger.Metadata = [:]
  var metadataProvider: Logger.MetadataProvider?
  var logLevel = Logger.Level.info

  /// Takes over the messages of all loggers; called once, before anything is logged.
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
