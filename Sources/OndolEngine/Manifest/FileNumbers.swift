// The counter behind the names of all files. Flushes, merges and logs take their numbers from it on
// threads of their own.

/// Gives out file numbers, each once.
///
/// A number is on the device with the manifest's next edit. Until then a crash may leave a file
/// that nobody names, which the next opening steps over.
final class FileNumbers: Sendable {
  private let counter: Guarded<UInt64>

  init(next: FileNumber) {
    counter = Guarded(next.rawValue)
  }

  /// Every number below has been given out.
  var next: FileNumber { FileNumber(rawValue: counter.withLock { $0 }) }

  func allocate() -> FileNumber {
    counter.withLock { counter in
      defer { counter += 1 }
      return FileNumber(rawValue: counter)
    }
  }

  /// Steps over `number` and those before.
  func reserve(through number: FileNumber) {
    counter.withLock { $0 = max($0, number.rawValue + 1) }
  }
}
