// A database's background log while its device has power. Without power everything that it does
// fails, as the test has ordered, and hundreds of seeds would fill the output with those messages.

internal import Logging

/// Passes messages on as long as there is power.
struct PoweredLog: LogHandler {
  private var base: any LogHandler
  private let fileSystem: SimulatedFileSystem

  init(_ base: any LogHandler, _ fileSystem: SimulatedFileSystem) {
    self.base = base
    self.fileSystem = fileSystem
  }

  var logLevel: Logger.Level {
    get { base.logLevel }
    set { base.logLevel = newValue }
  }

  var metadata: Logger.Metadata {
    get { base.metadata }
    set { base.metadata = newValue }
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { base[metadataKey: key] }
    set { base[metadataKey: key] = newValue }
  }

  func log(event: LogEvent) {
    if fileSystem.hasPower { base.log(event: event) }
  }
}
