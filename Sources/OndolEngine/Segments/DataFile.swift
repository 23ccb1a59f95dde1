// An immutable file as its readers hold it: opened when it is first needed, and gone with the last
// of them once nothing names it any more.

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

  /// The keys that it is sealed with, if it is.
  var keyring: Keyring? { directory.keyring }

  deinit {
    // A file that stays is removed by the next opening, since nobody names it.
    if isObsolete.load(ordering: .relaxed) { try? directory.remove(name) }
  }

  /// Has the file removed once nothing reads it any more.
  func removeWhenUnused() {
    isObsolete.store(true, ordering: .relaxed)
  }

  /// Has the file stay open from now on, because somebody else may remove it. To be asked for only
  /// while the directory has room for files that are held.
  func hold() throws(EngineError) {
    _ = try open(held: true)
  }

  /// The open file, opened now when it was not yet. One that `check` refuses is opened again the
  /// next time.
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
