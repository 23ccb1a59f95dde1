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

  /// Steps over all numbers before `next`.
  func stepTo(_ next: FileNumber) {
    counter.withLock { $0 = max($0, next.rawValue) }
  }

  /// Steps over `number` and those before; not over one that nobody can have given out.
  func reserve(through number: FileNumber) {
    guard number.isPossible else { return }
    counter.withLock { $0 = max($0, number.rawValue + 1) }
  }
}

extension FileNumber {
  /// No database lives long enough to come to this number. Names with a greater one are nobody's,
  /// and a manifest that says so is refused.
  static let greatest = FileNumber(rawValue: 1 << 56)

  var isPossible: Bool { self <= Self.greatest }

  /// More numbers than are ever given out between two edits of a manifest.
  private static let mostUnnamed: UInt64 = 1 << 32

  /// Whether the file in whose name the number is can be of a database that has given out all
  /// numbers below `next`. What cannot be has got there in another way, and is left alone.
  func isOurs(next: FileNumber) -> Bool {
    rawValue < next.rawValue || rawValue - next.rawValue < Self.mostUnnamed
  }
}
