// An immutable file as its readers hold it: opened when it is first needed, and removed with the
// last reader once nothing refers to it any more.

internal import Synchronization

/// A file of a segment or of values.
final class DataFile: Sendable {
  let name: String
  private let directory: any Directory
  private let opened = Guarded<(any File)?>(nil)
  private let isObsolete = Atomic(false)

  init(_ name: String, in directory: any Directory) {
    self.name = name
    self.directory = directory
  }

  /// The keys with which it is sealed, if it is.
  var keyring: Keyring? { directory.keyring }

  deinit {
    // The next open removes a file that stays, because nothing refers to it.
    if isObsolete.load(ordering: .relaxed) { try? directory.remove(name) }
  }

  /// Marks the file for removal once nothing reads it any more.
  func removeWhenUnused() {
    isObsolete.store(true, ordering: .relaxed)
  }

  /// Keeps the file open from now on, because another process may remove it. Use it only while the
  /// directory has room for held files.
  func hold() throws(EngineError) {
    _ = try open(held: true)
  }

  /// The open file, opened now if necessary. One that `check` refuses is opened again the next
  /// time.
  func open(
    held: Bool = false, _ check: (any File) throws(EngineError) -> Void = { _ in }
  ) throws(EngineError) -> any File {
    try opened.withLock { (opened) throws(EngineError) in
      let file = if let opened { opened } else { try directory.openForReads(name, held: held) }
      try check(file)
      opened = file
      return file
    }
  }
}
