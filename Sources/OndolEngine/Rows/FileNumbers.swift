// The counter for the names of all files. Flushes, merges and logs take their numbers from it on
// their own threads.

/// Hands out file numbers, each once.
///
/// A number reaches the device with the manifest's next edit. Until then a crash may leave a file
/// that the manifest does not list, and the next open skips its number.
final class FileNumbers: Sendable {
  private let counter: Guarded<UInt64>

  init(next: FileNumber) {
    counter = Guarded(next.rawValue)
  }

  /// Every number below this one has been handed out.
  var next: FileNumber { FileNumber(rawValue: counter.withLock { $0 }) }

  func allocate() -> FileNumber {
    counter.withLock { counter in
      defer { counter += 1 }
      return FileNumber(rawValue: counter)
    }
  }

  /// Skips all numbers before `next`.
  func stepTo(_ next: FileNumber) {
    counter.withLock { $0 = max($0, next.rawValue) }
  }

  /// Skips `number` and all numbers before it, unless it cannot have been handed out.
  func reserve(through number: FileNumber) {
    guard number.isPossible else { return }
    counter.withLock { $0 = max($0, number.rawValue + 1) }
  }
}

extension FileNumber {
  /// No database lives long enough to reach this number. Files with a greater number belong to no
  /// database, and a manifest with a greater number is invalid.
  static let greatest = FileNumber(rawValue: 1 << 56)

  var isPossible: Bool { self <= Self.greatest }

  /// More numbers than are ever handed out between two edits of a manifest.
  private static let mostUnnamed: UInt64 = 1 << 32

  /// Whether a file with this number can belong to a database that has handed out all numbers below
  /// `next`. Any other file has a different origin and is left alone.
  func isOurs(next: FileNumber) -> Bool {
    rawValue < next.rawValue || rawValue - next.rawValue < Self.mostUnnamed
  }
}
